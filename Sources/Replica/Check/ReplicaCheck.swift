import FileProvider
import Foundation
import GRDB
import Syscalls
import SystemPackage

/// Compares a replica's database with itself and with the content files, and mends what can be mended. No file is ever
/// removed: what does not fit is moved to the recovered folder.
struct ReplicaCheck {
    let database: ReplicaDatabase
    let contents: ContentStore
    let open: any OpenInodes
    /// Whether what is found is mended.
    let isRepairing: Bool
    private(set) var findings: [CheckFinding] = []
    private(set) var effects = ReplicaEffects()
    private let stamp = FileTimestamp.now.nanosecondsSince1970

    /// So many findings of one kind are named; of the others there is a count.
    private static let mostOfAKind = 1000

    /// - Throws: ``ReplicaDamage`` for a database that has to be rebuilt; what the disk says.
    mutating func run() throws {
        try checkDatabase()
        // A repair may cause another violation, which the next pass finds.
        var passes = 0
        var found: Int
        repeat {
            found = findings.count(where: \.isMended)
            for rule in TreeRule.all { try check(rule) }
            passes += 1
        } while isRepairing && findings.count(where: \.isMended) > found && passes < Self.mostPasses
        try compareFiles()
        // Last: what is reported here was mended before.
        let kept = try database.keptFindings()
        findings += kept.map { CheckFinding(.contents, "when it was opened: \($0)", isMended: true) }
        if isRepairing, !kept.isEmpty { try database.forgetFindings() }
    }

    private static let mostPasses = 8

    // MARK: - The database

    private mutating func checkDatabase() throws {
        var complaints = try complaints()
        guard !complaints.isEmpty else { return }
        if isRepairing {
            // An index can be made anew from its table.
            try? database.write { db in try db.execute(sql: "REINDEX") }
            let left = try self.complaints()
            if left.isEmpty {
                findings += complaints.map {
                    CheckFinding(.database, "\($0): the indexes were made anew", isMended: true)
                }
                return
            }
            complaints = left
        }
        throw ReplicaDamage(complaints.prefix(3).joined(separator: "; "))
    }

    private func complaints() throws -> [String] {
        do {
            return try database.readCommitted { db in
                let lines = try String.fetchAll(db, sql: "PRAGMA integrity_check(20)")
                return try lines == ["ok"] ? SchemaComparison.differences(in: db) : lines
            }
        } catch let error as DatabaseError {
            return ["\(error.message ?? "it cannot be read")"]
        }
    }

    // MARK: - Rows

    private struct Subject {
        var number: InodeNumber
        var name: String?
    }

    private mutating func check(_ rule: TreeRule) throws {
        let numbers = try database.readCommitted { db in try Int64.fetchAll(db, sql: rule.query) }
        for (index, number) in numbers.enumerated() {
            // An earlier repair may have repaired this one, too.
            let subject = try database.readCommitted { db in try Self.subject(number, isItem: rule.isAboutItems, in: db)
            }
            var finding = CheckFinding(.tree, rule.what, inode: subject?.number, name: subject?.name)
            if isRepairing {
                switch try mend(number, rule) {
                case .mended(let text):
                    finding.text += text
                    finding.isMended = true
                case .inUse:
                    finding.text += ": it stays as it is while a process has it open"
                    // An earlier pass may have found it.
                    if findings.contains(finding) { continue }
                case .fits: continue
                }
            }
            if index < Self.mostOfAKind { findings.append(finding) }
        }
        if numbers.count > Self.mostOfAKind {
            findings.append(
                CheckFinding(.tree, "\(numbers.count - Self.mostOfAKind) more: \(rule.what)", isMended: isRepairing))
        }
    }

    private static func subject(_ number: Int64, isItem: Bool, in db: Database) throws -> Subject? {
        guard isItem else {
            let query = "SELECT \(Displacement.nameForUser) FROM item WHERE inode = ? LIMIT 1"
            return Subject(
                number: InodeNumber(rawValue: number), name: try db.one(query, [number], { $0[0] as String? }) ?? nil)
        }
        return try db.one("SELECT inode, \(Displacement.nameForUser) FROM item WHERE id = ?", [number]) {
            Subject(number: InodeNumber(rawValue: $0[0]), name: $0[1] as String?)
        }
    }

    private enum Outcome {
        /// What was done, in words.
        case mended(String)
        /// A process has it open.
        case inUse
        /// It was changed since it was found, and violates the rule no more.
        case fits
    }

    private mutating func mend(_ number: Int64, _ rule: TreeRule) throws -> Outcome {
        switch rule.mending {
        case .statement(let statement):
            let isMended = try database.write { db in
                guard try rule.isViolated(by: number, in: db) else { return false }
                try db.execute(sql: statement, arguments: [number])
                return true
            }
            guard isMended else { return .fits }
            if !rule.isAboutItems { effects.invalidations.append(.attributes(InodeNumber(rawValue: number))) }
            return .mended(": corrected")
        case .forgetContent:
            let inode = InodeNumber(rawValue: number)
            return try inTransaction { [stamp] transaction, withdrawals in
                guard !transaction.open.isOpen(inode) else { return .inUse }
                guard try rule.isViolated(by: number, in: transaction.db) else { return .fits }
                let place = try Self.setAside(inode, in: transaction, withdrawals, stamp: stamp)
                return .mended(place.map { ": its content was moved to '\($0)'" } ?? ": it is dataless now")
            }
        case .dropItem:
            return try inTransaction { [stamp] transaction, withdrawals in
                let db = transaction.db
                guard let item = try db.item(id: number), try rule.isViolated(by: number, in: db) else { return .fits }
                // A directory has no content that could be lost.
                guard item.inode.kind == .directory || !transaction.open.isOpen(item.inode.number) else {
                    return .inUse
                }
                let target = try db.linkTarget(of: item.inode.number)
                let place = try Self.drop(item, in: transaction, withdrawals, stamp: stamp)
                return .mended(
                    ": it was taken out" + (place.map { ", its content is '\($0)'" } ?? "")
                        + (target.map { ", it pointed to '\($0)'" } ?? ""))
            }
        }
    }

    /// Takes an item's row out; with its last name the inode, whose content is set aside.
    ///
    /// - Returns: where its content lies.
    private static func drop(
        _ item: ItemRecord, in transaction: LocalTransaction, _ withdrawals: ContentWithdrawals, stamp: Int64
    ) throws -> FilePath? {
        let (db, number) = (transaction.db, item.inode.number)
        if let parent = item.parent {
            transaction.effects.invalidations += [.entry(parent: parent, name: item.name), .contents(parent)]
            try db.noteIncompleteIfListed(parent)
        }
        try db.deleteItem(item)
        try db.run(Repair.countLinks, [number.rawValue])
        let isNameless = try db.one(
            "SELECT linkCount = 0 FROM inode WHERE number = ?", [number.rawValue], { $0[0] as Bool })
        guard isNameless == true else { return nil }
        let place = try setAside(number, in: transaction, withdrawals, stamp: stamp)
        // Items that still name it as their directory are found by the next rule, or the next check.
        try db.deleteNameless(number)
        return place
    }

    // MARK: - Content files

    private struct Row {
        var size: Int64
        var isWritten: Bool
        var isUnsent: Bool
        var name: String?
    }

    private mutating func compareFiles() throws {
        var rows: [InodeNumber: Row] = [:]
        try database.readCommitted { db in
            try db.query(
                """
                SELECT number, size, contentStamp IS NOT NULL, \(Recovery.isUnsent),
                    (SELECT \(Displacement.nameForUser) FROM item WHERE item.inode = inode.number LIMIT 1)
                FROM inode WHERE hasContentFile = 1
                """, []
            ) { columns in
                rows[InodeNumber(rawValue: columns[0])] = Row(
                    size: columns[1], isWritten: columns[2], isUnsent: columns[3], name: columns[4])
                return true
            }
        }
        for name in try FileManager.default.contentsOfDirectory(atPath: contents.directory.string).sorted() {
            guard let component = FilePath.Component(name) else { continue }
            guard let number = Int64(name).map(InodeNumber.init(rawValue:)), let row = rows[number] else {
                try extraFile(component)
                continue
            }
            // Its row is one of a content file that is missing.
            guard contents.hasFile(number) else {
                try report(component, "is no file") { [contents] _ in !contents.hasFile(number) }
                continue
            }
            do {
                try compare(number, row)
                rows[number] = nil
            } catch Errno.noSuchFileOrDirectory where !contents.hasFile(number) {
                // It has been removed since it was listed.
            }
        }
        let missing = rows.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
        // A repair takes longer, and all others wait for its transaction.
        let atOnce = isRepairing ? 1 : 100
        for start in stride(from: 0, to: missing.count, by: atOnce) {
            try missingFiles(missing[start...].prefix(atOnce))
        }
        try lostContents()
    }

    /// New files whose content is lost. Nothing mends that: they are not sent, and only the user may remove them.
    private mutating func lostContents() throws {
        for (number, name) in try database.lostNewFiles() where !open.isOpen(number) {
            findings.append(
                CheckFinding(
                    .contents, "its content is lost, and the remote never had it: it stays a name until it is removed",
                    inode: number, name: name))
        }
    }

    private mutating func extraFile(_ name: FilePath.Component) throws {
        let number = Int64(name.string).map(InodeNumber.init(rawValue:))
        try report(name, "has no row") { [contents] db in
            guard let number else { return true }
            // The row of a new file can come later than its content file, which holds nothing until then.
            return try !db.hasContentFile(number) && (try? contents.holdsNothing(number)) != true
        }
    }

    /// Reports a file that fits no row, and moves it to the recovered folder.
    ///
    /// - Parameter isDefect: asks again in a transaction, because others make and withdraw content files in theirs.
    private mutating func report(
        _ name: FilePath.Component, _ defect: String, if isDefect: (Database) throws -> Bool
    ) throws {
        let (contents, isRepairing, stamp) = (contents, isRepairing, stamp)
        let path = contents.directory.appending(name)
        let finding: CheckFinding? = try database.write { db in
            guard (try? FileStatus(at: path)) != nil, try isDefect(db) else { return nil }
            var finding = CheckFinding(.contents, "'contents/\(name.string)' \(defect)")
            if isRepairing {
                do {
                    let place = try contents.quarantine(fileNamed: name, stamp: stamp)
                    finding.text += ": it was moved to '\(place)'"
                } catch Errno.noSuchFileOrDirectory {
                    // It was removed meanwhile, after the transaction that withdrew it.
                    return nil
                }
                finding.isMended = true
            }
            return finding
        }
        if let finding { findings.append(finding) }
    }

    private mutating func compare(_ number: InodeNumber, _ row: Row) throws {
        // The length of a file that is being written is that of its content file.
        guard !row.isWritten, !open.isOpen(number) else { return }
        let length = try contents.status(of: number).size
        guard length != row.size else { return }
        // It may have been begun anew, or written, since the rows were read.
        guard try database.inode(number)?.size == row.size else { return }
        var finding = CheckFinding(
            .contents, "its content has \(length) bytes and not \(row.size)", inode: number, name: row.name)
        if isRepairing {
            guard let text = try mendLength(of: number, row) else { return }
            finding.isMended = true
            finding.text += text
        }
        findings.append(finding)
    }

    /// - Returns: what was done, in words; nil when a process has opened or changed the file since its row was read.
    private mutating func mendLength(of number: InodeNumber, _ row: Row) throws -> String? {
        // Before the transaction, for which all others wait: it may be large.
        let before = try contents.status(of: number)
        let wantsCopy = try database.read { try Self.isAllThereIs(number, before, row, in: $0) }
        var copy: FilePath?
        var isCopyKept = false
        defer { if !isCopyKept { try? copy?.unlinkIfPresent() } }
        if wantsCopy {
            do {
                copy = try contents.keep(number, stamp: stamp, mayLink: false)
            } catch is TakingError {
                return nil
            }
        }
        let copied = copy
        let done: (text: String, keepsCopy: Bool)? = try inTransaction { [contents, stamp] transaction, withdrawals in
            let db = transaction.db
            guard !transaction.open.isOpen(number), let inode = try db.inode(number), inode.contentStamp == nil,
                inode.size == row.size, try db.hasContentFile(number)
            else { return nil }
            let status = try contents.status(of: number)
            guard status.size != row.size else { return nil }
            if try Self.isAllThereIs(number, status, row, in: db) {
                guard wantsCopy, status.size == before.size, status.changedAt == before.changedAt else { return nil }
                try ContentChanges(transaction: transaction).contentWasWritten(number)
                return (": it is sent as it is" + (copied.map { ", with a copy in '\($0)'" } ?? ""), true)
            }
            let isUnsent = try db.isContentUnsent(number)
            let place = try Self.setAside(number, in: transaction, withdrawals, stamp: stamp)?.string ?? ""
            guard isUnsent else { return (": it was moved to '\(place)', and is fetched again", false) }
            try db.forgetChangedContent(of: number)
            return (": what is left was moved to '\(place)', and what the remote has is shown", false)
        }
        isCopyKept = done?.keepsCopy == true
        return done?.text
    }

    /// Whether a content file of another length than its row's is all there is of what was written here.
    private static func isAllThereIs(
        _ number: InodeNumber, _ status: ContentStatus, _ row: Row, in db: Database
    ) throws -> Bool {
        guard try db.isContentUnsent(number) else { return false }
        return try !ContentVerification.missesBytes(number, length: status.size, of: row.size, in: db)
    }

    private mutating func missingFiles(_ rows: ArraySlice<(InodeNumber, Row)>) throws {
        // Others have been begun since.
        let lost: [(InodeNumber, Row)] = try inTransaction { [contents, isRepairing, stamp] transaction, withdrawals in
            let db = transaction.db
            return try rows.filter { number, row in
                // In this order: what a transaction that has failed withdrew is put back at any moment.
                guard let inode = try db.inode(number), try db.hasContentFile(number),
                    !WithdrawnContent(number, generation: inode.contentGeneration, in: contents).isThere,
                    !contents.hasFile(number)
                else { return false }
                guard isRepairing else { return true }
                // What lies there is no file.
                _ = try Self.setAside(number, in: transaction, withdrawals, stamp: stamp)
                if row.isUnsent { try db.forgetChangedContent(of: number) }
                return true
            }
        }
        for (number, row) in lost {
            let text = row.isUnsent ? "what was written to it and is not on the remote is lost" : "its content is lost"
            let rest = row.isUnsent ? ": what the remote has of it is kept" : ": it is fetched again"
            let mending = isRepairing ? rest : ""
            findings.append(
                CheckFinding(.contents, text + mending, inode: number, name: row.name, isMended: isRepairing))
        }
    }

    /// Makes a file dataless; its content is set aside.
    private static func setAside(
        _ number: InodeNumber, in transaction: LocalTransaction, _ withdrawals: ContentWithdrawals, stamp: Int64
    ) throws -> FilePath? {
        let place = try withdrawals.setAside(number, stamp: stamp)
        try transaction.db.dropContent(of: number)
        transaction.effects.invalidations.append(.contents(number))
        return place
    }

    /// Asks and mends in one transaction: a process that opens a file that the body has asked about waits for its end.
    private mutating func inTransaction<Value>(
        _ body: (LocalTransaction, ContentWithdrawals) throws -> Value
    ) throws -> Value {
        let (database, contents, base) = (database, contents, open)
        let withdrawals = ContentWithdrawals(from: contents, of: database)
        let (value, done) = try withdrawals.run {
            try ClaimingOpenInodes.run(base) { open in
                try database.write(undoing: TransactionUndo { withdrawals.begin() }) { db in
                    withdrawals.begin()
                    let transaction = LocalTransaction(db: db, open: open, contents: contents, withdrawals: withdrawals)
                    return (try body(transaction, withdrawals), transaction.effects)
                }
            }
        }
        effects.append(done)
        return value
    }
}
