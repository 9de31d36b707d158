import FileProvider
import Foundation
import GRDB
import Logging
import Syscalls
import SystemPackage

/// Makes the database consistent when a replica is opened: after a crash it has the marks of the operations that were
/// running. The queries here use indexes, so that a large replica opens at once; ``ContentComparison`` compares all content
/// files afterwards.
///
/// Processes may have files open that they opened before the daemon was killed, and write to them meanwhile.
struct Recovery {
    let database: ReplicaDatabase
    let contents: ContentStore
    var open: any OpenInodes = NothingOpen()
    /// Whether the mount lives on: then not all that is open need be known yet.
    var isTakenOver = false
    let logger: Logger
    private(set) var findings: [String] = []

    mutating func run() throws {
        try makeRoot()
        if let finding = database.redoFinding { findings.append(finding) }
        try database.beginRedoLog()
        try database.recoverNewFiles()
        try endWithdrawals()
        try correctWhatWouldCostContent()
        try compareWrittenFiles()
        try forgetWhatAPowerCutMayHaveTaken()
        try endWhatWasUnderWay()
        for finding in findings { logger.warning("\(finding)") }
        try database.keep(findings: findings, at: FileTimestamp.now)
    }

    /// The root is there from the start.
    func makeRoot() throws {
        try database.write { db in
            guard try db.repairRoot(at: FileTimestamp.now) else { return }
            if try DomainKey.identity.string(in: db) == nil { try DomainKey.identity.set(UUID().uuidString, in: db) }
        }
    }

    /// Corrects what the steps that follow would take for a reason to drop content: a count of 0 links of what has names,
    /// and a content state that says that something written here is not here.
    private mutating func correctWhatWouldCostContent() throws {
        let (named, written) = try database.write { db in
            let named = try db.all(Recovery.namedWithoutLinks, [], { $0[0] as Int64 })
            for number in named {
                try db.run(Repair.countLinks, [number])
            }
            let written = try db.all(Recovery.unsentIncomplete, [], { $0[0] as Int64 })
            for number in written {
                try db.repairWrittenContent(of: InodeNumber(rawValue: number))
            }
            return (named, written)
        }
        findings += named.map { "inode \($0) has names and a count of 0 links: the count was corrected" }
        findings += written.map {
            "inode \($0) was written here and its row said that its content is not here: the row was corrected"
        }
    }

    /// Puts back the content whose generation was not ended, and deletes that of the others, after their ends were put on the
    /// disk.
    private mutating func endWithdrawals() throws {
        let directory = try FileDescriptor.openDirectory(contents.withdrawn)
        defer { try? directory.close() }
        let left = try DirectoryStream(of: directory)
        var ended: [WithdrawnContent] = []
        while let name = try left.next() {
            guard let content = WithdrawnContent(left: String(decoding: name, as: UTF8.self), in: contents) else {
                continue
            }
            let inode = try database.inode(content.number)
            if inode?.contentGeneration == content.generation, inode?.content != .dataless {
                try setAsideUncommitted(content.number)
                try content.restore()
            } else {
                ended.append(content)
            }
        }
        guard !ended.isEmpty else { return }
        try database.synchronize(hasWithdrawn: true)
        for content in ended { try content.delete() }
    }

    /// Moves a file to the recovered folder that has bytes of a generation of content that was not committed. Most are empty.
    private mutating func setAsideUncommitted(_ number: InodeNumber) throws {
        let path = contents.path(of: number)
        guard (try? FileStatus(at: path)) != nil, (try? contents.holdsNothing(number)) != true,
            let name = path.lastComponent
        else { return }
        let place = try contents.quarantine(fileNamed: name, stamp: FileTimestamp.now.nanosecondsSince1970)
        findings.append("'contents/\(name.string)' was moved to '\(place)': the content before it was put back")
    }

    /// Content is not synced file by file as it comes from the remote. After a boot that was not preceded by an orderly
    /// close, what had not been synced since is fetched again rather than trusted, and set aside where it may be the last copy.
    ///
    /// That the database is in use is on the disk before the first answer: else a power cut soon after an orderly close would count
    /// as none.
    private mutating func forgetWhatAPowerCutMayHaveTaken() throws {
        let boot = Machine.bootIdentifier
        let withdrawals = ContentWithdrawals(from: contents, of: database)
        let (forgotten, setAside, isFirstUse) = try withdrawals.run {
            try database.write { db -> (Int, [String], Bool) in
                withdrawals.begin()
                let lastBoot = try DomainKey.bootIdentifier.string(in: db)
                let wasClosed = try DomainKey.wasClosed.string(in: db) == "1"
                let isFirstUse = wasClosed || lastBoot != boot
                try DomainKey.bootIdentifier.set(boot, in: db)
                try DomainKey.wasClosed.set("0", in: db)
                guard let lastBoot, lastBoot != boot, !wasClosed else { return (0, [], isFirstUse) }
                try DomainKey.mayMissBytes.set("1", in: db)
                let (forgotten, setAside) = try forgetUnsyncedContent(in: db, withdrawals)
                return (forgotten, setAside, isFirstUse)
            }
        }
        if isFirstUse { try database.synchronize() }
        findings += setAside
        if forgotten > 0 {
            findings.append(
                "the machine stopped without warning: \(forgotten) downloaded files will be fetched again")
        }
    }

    /// Makes the files dataless whose content was not synced. It may be the last copy while removals are held, because much has
    /// vanished on the remote, and where a reimport offers items to a remote that may not have them.
    ///
    /// - Returns: how many files are fetched again, and what was set aside, in words for the user.
    private func forgetUnsyncedContent(
        in db: Database, _ withdrawals: ContentWithdrawals
    ) throws -> (forgotten: Int, setAside: [String]) {
        let stamp = FileTimestamp.now.nanosecondsSince1970
        let isHeld = try DomainKey.changesAreHeld.bytes(in: db) != nil || db.isMarkingReimport()
        let rows = try db.all(
            Recovery.unsynced, [], { (number: InodeNumber(rawValue: $0[0]), isOffered: $0[1] as Bool) })
        var (forgotten, found): (Int, [String]) = (0, [])
        for row in rows {
            guard isHeld || row.isOffered, (try? contents.holdsNothing(row.number)) == false,
                let place = try withdrawals.setAside(row.number, stamp: stamp)
            else {
                try db.forgetContent(of: row.number)
                forgotten += 1
                continue
            }
            try db.dropContent(of: row.number)
            let words = try db.item(ofInode: row.number).map { "'\($0.nameForUser)'" } ?? "inode \(row.number)"
            found.append(
                "the machine stopped without warning: the content of \(words) may be the last copy and may miss bytes: it was "
                    + "moved to '\(place)'")
        }
        return (forgotten, found)
    }

    /// Finds the writes through the kernel since the last comparison, by the state of each content file. A file that is open
    /// for writing stays marked: it is compared when it is closed.
    private mutating func compareWrittenFiles() throws {
        let closed = try database.filesBeingWritten().filter { !open.isOpenForWriting($0) }
        guard !closed.isEmpty else { return }
        findings += try database.write { db in
            let transaction = LocalTransaction(db: db, open: open, contents: contents)
            let changes = ContentChanges(transaction: transaction)
            for number in closed {
                do {
                    // Asked before the comparison: a process that has closed the file by then has written everything.
                    let isWritten = !isTakenOver && FileTaking.isBeingWritten(contents.path(of: number))
                    let before = try contents.status(of: number)
                    try changes.endWriting(number)
                    if isWritten { try takeAway(number, writtenUntil: before, changes) }
                } catch let error as Errno where error == .noSuchFileOrDirectory || !contents.hasFile(number) {
                    // The comparison of all files says what is missing.
                    try db.setContentStamp(of: number, to: nil)
                }
            }
            return transaction.effects.texts
        }
    }

    /// A process writes into the content file through a mount that has ended: the kernel lets it. What it writes from now
    /// on is kept apart, because nothing would tell of it.
    private func takeAway(_ number: InodeNumber, writtenUntil before: ContentStatus, _ changes: ContentChanges) throws {
        let name = try changes.db.item(ofInode: number)?.nameForUser ?? "inode \(number)"
        do {
            let aside = try contents.takeAway(number, stamp: FileTimestamp.now.nanosecondsSince1970)
            let after = try FileStatus(at: aside)
            if after.size != before.size || FileTimestamp(after.modified) != before.modifiedAt {
                try changes.contentWasWritten(number)
            }
            changes.report(
                "'\(name)' was still open for writing through an earlier mount when it was mounted: what is written to it there from "
                    + "then on is in '\(aside)', and is not sent")
        } catch {
            // It stays marked as written, so that it is neither evicted nor forgotten.
            try changes.db.setContentStamp(of: number, to: before.stamp)
            changes.report(
                "'\(name)' was still open for writing through an earlier mount when it was mounted: end the program, and mount "
                    + "again; what it writes cannot be kept apart: \(error)")
        }
    }

    /// Removes inodes without names, and content that was begun and never came.
    private mutating func endWhatWasUnderWay() throws {
        let withdrawals = ContentWithdrawals(from: contents, of: database)
        findings += try withdrawals.run {
            try database.write { db in
                withdrawals.begin()
                let transaction = LocalTransaction(db: db, open: open, contents: contents, withdrawals: withdrawals)
                try end(in: transaction)
                return transaction.effects.texts
            }
        }
    }

    private func end(in transaction: LocalTransaction) throws {
        let (db, part) = (transaction.db, NameChanges(transaction: transaction))
        try db.abandonListings()
        // Inodes that were removed while a process had them open. The check handles directories that have children.
        for number in try db.all(Recovery.nameless, [], { InodeNumber(rawValue: $0[0]) })
        where !open.keepsNameless(number) {
            if let inode = try db.inode(number) { try part.deleteNameless(inode) }
        }
        let empty = try db.all(
            Recovery.empty, [],
            { (number: InodeNumber(rawValue: $0[0]), isBegun: $0[1] as Bool, isFetchedAgain: $0[2] as Bool) }
        ).filter { row in
            // A process that has the file open may have been told to read from its content file.
            !(row.isBegun && open.isOpen(row.number) && contents.hasFile(row.number))
        }
        for row in empty {
            guard let inode = try db.inode(row.number) else { continue }
            try part.withdrawContent(of: inode)
            try db.setFetchedAgain(row.isFetchedAgain, row.number)
        }
    }
}

/// The queries of an opening. Each reads an index of few rows. (``Schema``)
extension Recovery {
    static let namedWithoutLinks = """
        SELECT number FROM inode
        WHERE linkCount = 0 AND EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number)
        """

    /// Inodes without names. The check handles directories that have children.
    static let nameless = """
        SELECT number FROM inode WHERE linkCount = 0
            AND NOT EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number)
            AND NOT EXISTS (SELECT 1 FROM item WHERE item.parent = inode.number)
        """

    /// Files that were written here and whose rows say that their content is not here.
    static let unsentIncomplete = """
        SELECT number FROM inode WHERE hasContentFile = 1 AND content <> \(content: .materialized)
            AND kind = \(kind: .file) AND \(isUnsent)
        """

    /// Files with a content file in which nothing is recorded, whether their content was begun, and whether they are fetched
    /// without a reader.
    static let empty = """
        SELECT number, content = \(content: .partial), fetchAgain FROM inode
        WHERE hasContentFile = 1 AND content <> \(content: .materialized)
            AND (content = \(content: .dataless) OR localBytes = 0 AND size > 0) AND NOT \(isUnsent)
        """

    /// Files whose content was not synced and is the remote's, and whether the remote is offered them in a reimport. Read after a
    /// power cut only.
    static let unsynced = """
        SELECT number, EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number AND reimport > 0) FROM inode
        WHERE hasContentFile = 1 AND isDurable = 0 AND content <> \(content: .dataless) AND NOT \(isUnsent)
        """

    /// Whether this machine may have the only copy of an inode's content.
    static let isUnsent = """
        EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number
            AND (changedFields & \(field: .contents) <> 0 OR identifier IS NULL AND reimport <= 0))
        """
}

extension Database {
    /// Whether this machine may have the only copy of an inode's content.
    func isContentUnsent(_ number: InodeNumber) throws -> Bool {
        let query = "SELECT \(Recovery.isUnsent) FROM inode WHERE number = ?"
        return try one(query, [number.rawValue], { $0[0] as Bool }) ?? false
    }

    /// Whether an inode's content was on the disk at the last sync of all contents.
    func isContentDurable(_ number: InodeNumber) throws -> Bool {
        try one("SELECT isDurable FROM inode WHERE number = ?", [number.rawValue], { $0[0] as Bool }) ?? false
    }
}
