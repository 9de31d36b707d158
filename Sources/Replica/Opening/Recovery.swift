import FileProvider
import Foundation
import GRDB
import Logging
import Syscalls
import SystemPackage

/// Makes database and contents consistent when a replica is opened: after a crash they differ by the operations that were
/// running. A content file that fits no row is set aside, never deleted; a row whose content file is missing becomes
/// dataless.
struct Recovery {
    let database: ReplicaDatabase
    let contents: ContentStore
    let logger: Logger
    private(set) var findings: [String] = []

    init(database: ReplicaDatabase, contents: ContentStore, logger: Logger) {
        self.database = database
        self.contents = contents
        self.logger = logger
    }

    mutating func run() throws {
        try makeRoot()
        try database.recoverNewFiles()
        try correctWhatWouldCostContent()
        try compareWrittenFiles()
        try forgetWhatAPowerCutMayHaveTaken()
        try endWhatWasUnderWay()
        try compareFilesWithRows()
        try database.keep(findings: findings, at: FileTimestamp.now)
    }

    private struct FileRow {
        var size: Int64
        var isUnsent: Bool
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
            let named = try db.all(
                """
                SELECT number FROM inode
                WHERE linkCount = 0 AND EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number)
                """, [], { $0[0] as Int64 })
            for number in named {
                try db.run(Repair.countLinks, [number])
            }
            let written = try db.all(
                """
                SELECT number FROM inode WHERE hasContentFile = 1 AND kind = \(kind: .file)
                    AND content <> \(content: .materialized) AND \(Self.isUnsent)
                """, [], { $0[0] as Int64 })
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

    /// Content is not synced file by file as it comes from the remote. After a boot that was not preceded by an orderly
    /// close, what had not been synced since is fetched again rather than trusted.
    private mutating func forgetWhatAPowerCutMayHaveTaken() throws {
        let boot = Machine.bootIdentifier
        let forgotten = try database.write { db in
            let lastBoot = try DomainKey.bootIdentifier.string(in: db)
            let wasClosed = try DomainKey.wasClosed.string(in: db) == "1"
            try DomainKey.bootIdentifier.set(boot, in: db)
            try DomainKey.wasClosed.set("0", in: db)
            guard let lastBoot, lastBoot != boot, !wasClosed else { return 0 }
            let numbers = try Int64.fetchAll(
                db,
                sql: """
                    SELECT inode.number FROM inode WHERE hasContentFile = 1 AND isDurable = 0
                        AND content <> \(content: .dataless)
                        AND NOT \(Self.isUnsent)
                    """)
            for number in numbers { try db.forgetContent(of: InodeNumber(rawValue: number)) }
            return numbers.count
        }
        if forgotten > 0 {
            findings.append(
                "the machine stopped without warning: \(forgotten) downloaded files will be fetched again")
        }
    }

    /// Whether this machine may have the only copy of an inode's content.
    static let isUnsent = """
        EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number
            AND (changedFields & \(field: .contents) <> 0 OR identifier IS NULL AND reimport <= 0))
        """

    /// Finds the writes through the kernel since the last comparison, by the state of each content file.
    private mutating func compareWrittenFiles() throws {
        for number in try database.filesBeingWritten() {
            do {
                findings += try database.write { db in
                    let transaction = LocalTransaction(
                        db: db, open: NothingOpen(), contents: contents, now: FileTimestamp.now)
                    try ContentChanges(transaction: transaction).endWriting(number)
                    return transaction.effects.defects
                }
            } catch let error as Errno where error == .noSuchFileOrDirectory || !contents.hasFile(number) {
                // The comparison of all files says what is missing.
                try database.write { db in
                    try db.setContentStamp(of: number, to: nil)
                }
            }
        }
    }

    private func endWhatWasUnderWay() throws {
        // The files go after the commit: a transaction that fails has removed nothing.
        let obsolete = try database.write { db -> [Int64] in
            try db.abandonListings()
            // Inodes that were removed while a process had them open. The check handles directories that have children.
            let nameless = try db.all(
                """
                SELECT number FROM inode WHERE linkCount = 0
                    AND NOT EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number OR item.parent = inode.number)
                """, [], { $0[0] as Int64 })
            for number in nameless { try db.deleteNameless(InodeNumber(rawValue: number)) }
            let empty = try db.all(
                """
                SELECT number FROM inode WHERE hasContentFile = 1 AND (content = \(content: .dataless)
                    OR localBytes = 0 AND size > 0)
                    AND NOT \(Self.isUnsent)
                """, [], { $0[0] as Int64 })
            for number in empty {
                try db.repairEmptyContent(of: InodeNumber(rawValue: number))
            }
            return nameless + empty
        }
        for number in obsolete where contents.hasFile(InodeNumber(rawValue: number)) {
            try contents.remove(InodeNumber(rawValue: number))
        }
    }

    private mutating func compareFilesWithRows() throws {
        var rows: [Int64: FileRow] = [:]
        try database.read { db in
            try db.query("SELECT number, size, \(Self.isUnsent) FROM inode WHERE hasContentFile = 1", []) { columns in
                rows[columns[0]] = FileRow(size: columns[1], isUnsent: columns[2])
                return true
            }
        }
        let stamp = FileTimestamp.now.nanosecondsSince1970
        for name in try FileManager.default.contentsOfDirectory(atPath: contents.directory.string) {
            guard let component = FilePath.Component(name) else { continue }
            guard let number = Int64(name), let row = rows[number] else {
                try setAside(component, stamp: stamp, because: "no row of the database knows it")
                continue
            }
            // Its row is one of a content file that is missing.
            guard contents.hasFile(InodeNumber(rawValue: number)) else {
                try setAside(component, stamp: stamp, because: "it is no file")
                continue
            }
            rows[number] = nil
            let length = try contents.status(of: InodeNumber(rawValue: number)).size
            if length != row.size, row.isUnsent {
                // It is all there is of what was written here: it is taken as it is, and sent.
                findings.append("what was written to inode \(number) has \(length) bytes and not \(row.size)")
                try accept(number)
            } else if length != row.size {
                try setAside(component, stamp: stamp, because: "it has \(length) bytes and not \(row.size)")
                try forget(number)
            }
        }
        for (number, row) in rows {
            if row.isUnsent {
                findings.append(
                    "what was written to inode \(number) and is not on the remote has gone from its place")
                try loseContent(of: number)
                continue
            }
            findings.append("the content of inode \(number) was not in its place: it will be fetched again")
            try forget(number)
        }
        for finding in findings { logger.warning("\(finding)") }
    }

    private mutating func setAside(_ name: FilePath.Component, stamp: Int64, because reason: String) throws {
        let place = try contents.quarantine(fileNamed: name, stamp: stamp)
        findings.append("'contents/\(name.string)' was moved to '\(place)': \(reason)")
    }

    private func accept(_ number: Int64) throws {
        try database.write { db in
            let transaction = LocalTransaction(db: db, open: NothingOpen(), contents: contents, now: FileTimestamp.now)
            try ContentChanges(transaction: transaction).contentWasWritten(InodeNumber(rawValue: number))
        }
    }

    /// Bytes that are gone are not sent as an empty file: a new item cannot be sent, and one that the remote has is
    /// fetched again.
    private func loseContent(of number: Int64) throws {
        try forget(number)
        try database.write { db in
            try db.forgetChangedContent(of: InodeNumber(rawValue: number))
            try db.recordFailure(
                FileProviderError(.cannotSynchronize, "its content has gone from this machine's disk"),
                of: InodeNumber(rawValue: number), at: FileTimestamp.now)
        }
    }

    private func forget(_ number: Int64) throws {
        try database.write { db in try db.dropContent(of: InodeNumber(rawValue: number)) }
    }
}
