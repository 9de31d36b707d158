import FileProvider
import GRDB
import Logging
import Syscalls
import SystemPackage

/// Compares all content files with their rows, in steps, while the replica is in use. A content file that fits no row is set
/// aside, never deleted; a row whose content file is missing becomes dataless.
///
/// A step reads without a lock. What it finds may be a change under way, so each finding is verified in a writing
/// transaction before it is corrected: content files of existing rows are created, truncated and removed inside
/// transactions, or while their row is dataless or has no recorded content, and such rows are skipped.
struct ContentComparison: RecoveryWork {
    private let database: ReplicaDatabase
    private let contents: ContentStore
    private let open: any OpenInodes
    private let logger: Logger
    /// The newest inode when the replica was opened. A content file of a newer one may be there before its row.
    private let newest: InodeNumber
    private let stamp = FileTimestamp.now.nanosecondsSince1970
    private var findings: [String] = []
    private var files: DirectoryStream?
    /// The last row that was compared; nil once all are.
    private var lastRow: InodeNumber? = InodeNumber(rawValue: 0)

    static let rowsInStep = 512

    init(database: ReplicaDatabase, contents: ContentStore, open: any OpenInodes, logger: Logger) throws {
        self.database = database
        self.contents = contents
        self.open = open
        self.logger = logger
        newest = try database.readCommitted { db in try Self.newestInode(in: db) }
        let directory = try FileDescriptor.openDirectory(contents.directory)
        defer { try? directory.close() }
        files = try DirectoryStream(of: directory)
    }

    /// Compares some hundred files or rows.
    ///
    /// - Returns: the findings, which were logged and kept; nil when everything has been compared.
    mutating func step() throws -> [String]? {
        findings = []
        if files != nil {
            try compareFiles()
        } else if lastRow != nil {
            try compareRows()
        } else {
            if try database.value(of: .mayMissBytes) != nil { try database.set(.mayMissBytes, to: nil as String?) }
            return nil
        }
        for finding in findings { logger.warning("\(finding)") }
        try database.keep(findings: findings, at: FileTimestamp.now)
        return findings
    }

    // MARK: - Files without a row

    private mutating func compareFiles() throws {
        var names: [FilePath.Component] = []
        while names.count < Self.rowsInStep {
            guard let bytes = try files?.next() else {
                files = nil
                break
            }
            if let name = FilePath.Component(String(decoding: bytes, as: UTF8.self)) { names.append(name) }
        }
        let unknown = try database.readCommitted { db in
            try names.filter { name in
                guard let number = Int64(name.string) else { return true }
                return try !db.hasContentFile(InodeNumber(rawValue: number)) && !wasMadeSince(number, in: db)
            }
        }
        for name in unknown {
            findings += try database.write { db in
                if let number = Int64(name.string).map(InodeNumber.init(rawValue:)) {
                    if try db.hasContentFile(number) || wasMadeSince(number.rawValue, in: db) { return [] }
                    if (try? contents.holdsNothing(number)) == true {
                        try contents.remove(number)
                        return []
                    }
                }
                return try setAside(name, because: "no row of the database knows it")
            }
        }
    }

    /// Whether an inode number was given or reserved since the replica was opened: its content file may be there before its
    /// row is.
    private func wasMadeSince(_ number: Int64, in db: Database) throws -> Bool {
        guard number > newest.rawValue else { return false }
        return try number <= Self.newestInode(in: db).rawValue
    }

    private static func newestInode(in db: Database) throws -> InodeNumber {
        let number = try db.one(
            """
            SELECT MAX(COALESCE((SELECT MAX(number) FROM inode), 0),
                COALESCE((SELECT seq FROM main.sqlite_sequence WHERE name = 'inode'), 0))
            """, [], { $0[0] as Int64 })
        return InodeNumber(rawValue: number ?? 0)
    }

    // MARK: - Rows without a file

    static let rows = """
        SELECT number, size, content, localBytes FROM inode WHERE hasContentFile = 1 AND number > ? AND number <= ?
        ORDER BY number LIMIT ?
        """

    private mutating func compareRows() throws {
        guard let last = lastRow else { return }
        let rows = try database.readCommitted { db in
            try db.all(
                Self.rows, [last.rawValue, newest.rawValue, Int64(Self.rowsInStep)],
                {
                    (
                        number: InodeNumber(rawValue: $0[0]), size: $0[1] as Int64,
                        isEmpty: ($0[2] as Int) == 2 && ($0[3] as Int64) == 0
                    )
                })
        }
        lastRow = rows.count < Self.rowsInStep ? nil : rows.last?.number
        for row in rows {
            let status = try? FileStatus(at: contents.path(of: row.number))
            if status?.kind == .regular, status?.size == row.size, !(row.isEmpty && row.size > 0) { continue }
            findings += try database.write { db in try verify(row.number, in: db) }
        }
    }

    /// Compares a row with its content file, and corrects the one or the other.
    private func verify(_ number: InodeNumber, in db: Database) throws -> [String] {
        // A file that is being written, or was and is not compared yet, has another length than its row.
        guard try db.hasContentFile(number), let inode = try db.inode(number), inode.contentStamp == nil,
            !open.isOpenForWriting(number)
        else { return [] }
        // Content that was just begun has no file yet, and dropped content is about to have none.
        switch inode.content {
        case .dataless: return []
        case .partial where inode.localBytes == 0: return []
        case .partial, .materialized: break
        }
        let isUnsent = try db.isContentUnsent(number)
        guard let name = FilePath.Component(number.description) else { return [] }
        let item = try db.item(ofInode: number)
        let words = item.map { "'\($0.name)'" } ?? "inode \(number)"
        guard contents.hasFile(number) else {
            var found: [String] = []
            if (try? FileStatus(at: contents.path(of: number))) != nil {
                found = try setAside(name, because: "it is no file")
            }
            try db.dropContent(of: number)
            guard isUnsent else {
                return found + ["the content of \(words) was not in its place: it will be fetched again"]
            }
            try loseContent(of: number, in: db)
            return found + ["what was written to \(words) and is not on the remote is not in its place any more"]
        }
        let length = try contents.status(of: number).size
        if length < inode.size, isUnsent, item?.isKnownToRemote == true, try mayMissBytes(db) {
            // What is left must not take the place of what the remote has.
            guard !open.isOpen(number) else { return [] }
            let found = try setAside(
                name,
                because: "of what was written to \(words) only \(length) of \(inode.size) bytes are there; what the "
                    + "remote has is shown")
            try db.dropContent(of: number)
            try db.forgetChangedContent(of: number)
            try db.forgetFailure(of: number)
            return found
        }
        if length != inode.size, isUnsent {
            // It is all there is of what was written here: it is taken as it is, and sent.
            let transaction = LocalTransaction(db: db, open: open, contents: contents)
            let changes = ContentChanges(transaction: transaction)
            try changes.contentWasWritten(number)
            return ["what was written to \(words) has \(length) bytes and not \(inode.size)"]
        }
        // Processes that have a file open keep the content that they read. It is compared when the replica is opened again.
        guard !open.isOpen(number) else { return [] }
        if length != inode.size {
            // A crash may have interrupted a truncation, which the kernel requests again.
            let found = length == 0 ? [] : try setAside(name, because: "it has \(length) bytes and not \(inode.size)")
            if length == 0 { try contents.remove(number) }
            try db.dropContent(of: number)
            return found
        }
        if inode.content == .materialized, inode.localBytes == 0, inode.size > 0, !isUnsent {
            try contents.remove(number)
            try db.dropContent(of: number)
        }
        return []
    }

    /// Whether a file may be shorter than its row because bytes are missing. SIGKILL takes no bytes: it leaves a truncation whose
    /// row was not written.
    private func mayMissBytes(_ db: Database) throws -> Bool {
        try DomainKey.mayMissBytes.bytes(in: db) != nil || DomainKey.isRebuilt.bytes(in: db) != nil
    }

    private func setAside(_ name: FilePath.Component, because reason: String) throws -> [String] {
        do {
            let place = try contents.quarantine(fileNamed: name, stamp: stamp)
            return ["'contents/\(name.string)' was moved to '\(place)': \(reason)"]
        } catch Errno.noSuchFileOrDirectory {
            // It was removed meanwhile.
            return []
        }
    }

    /// Bytes that are gone are not sent as an empty file: a new item cannot be sent, and one that the remote has is
    /// fetched again.
    private func loseContent(of number: InodeNumber, in db: Database) throws {
        try db.forgetChangedContent(of: number)
        try db.recordFailure(
            FileProviderError(.cannotSynchronize, "its content is not on this machine's disk any more"), of: number,
            at: FileTimestamp.now)
    }
}
