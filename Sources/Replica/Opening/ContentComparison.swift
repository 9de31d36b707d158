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
    private let verification: ContentVerification
    private let logger: Logger
    /// The newest inode when the replica was opened. A content file of a newer one may be there before its row.
    private let newest: InodeNumber
    /// The last sync of all contents before a power cut; nil if there was none since the last comparison.
    let lastSync: FileTimestamp?
    private var findings: [String] = []
    private var files: DirectoryStream?
    /// The names that were read and are not compared yet.
    private var names: [FilePath.Component] = []
    /// The last row that was compared; nil once all are.
    private var lastRow: InodeNumber? = InodeNumber(rawValue: 0)

    static let rowsInStep = 512

    init(database: ReplicaDatabase, contents: ContentStore, open: any OpenInodes, logger: Logger) throws {
        self.database = database
        self.contents = contents
        verification = ContentVerification(contents: contents, open: open)
        self.logger = logger
        newest = try database.readCommitted { db in try Self.newestInode(in: db) }
        if try database.value(of: .mayMissBytes) != nil, let time = try database.value(of: .contentsSyncedAt) {
            lastSync = Int64(time).map { FileTimestamp(nanosecondsSince1970: $0) }
        } else {
            lastSync = nil
        }
        let directory = try FileDescriptor.openDirectory(contents.directory)
        defer { try? directory.close() }
        files = try DirectoryStream(of: directory)
    }

    /// Compares some hundred files or rows.
    ///
    /// - Returns: the findings, which were logged and kept; nil when everything has been compared.
    /// - Throws: what the database or the disk says: the next call compares the same files or rows again, and returns these findings,
    ///   too.
    mutating func step() throws -> [String]? {
        if files != nil || !names.isEmpty {
            try compareFiles()
        } else if lastRow != nil {
            try compareRows()
        } else if findings.isEmpty {
            if try database.value(of: .mayMissBytes) != nil { try database.set(.mayMissBytes, to: nil as String?) }
            return nil
        }
        for finding in findings { logger.warning("\(finding)") }
        try database.keep(findings: findings, at: FileTimestamp.now)
        defer { findings = [] }
        return findings
    }

    // MARK: - Files without a row

    private mutating func compareFiles() throws {
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
                return try verification.setAside(name, because: "no row of the database knows it")
            }
        }
        names = []
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
        SELECT number, size, content, localBytes, isDurable, modifiedAt FROM inode
        WHERE hasContentFile = 1 AND number > ? AND number <= ? ORDER BY number LIMIT ?
        """

    private mutating func compareRows() throws {
        guard let last = lastRow else { return }
        let rows = try database.readCommitted { db in
            try db.all(
                Self.rows, [last.rawValue, newest.rawValue, Int64(Self.rowsInStep)],
                { columns in
                    let isEmpty = (columns[2] as Int) == 2 && (columns[3] as Int64) == 0
                    return (
                        number: InodeNumber(rawValue: columns[0]), size: columns[1] as Int64, isEmpty: isEmpty,
                        isDurable: columns[4] as Bool, modifiedAt: FileTimestamp(nanosecondsSince1970: columns[5])
                    )
                })
        }
        for row in rows {
            let status = try? FileStatus(at: contents.path(of: row.number))
            if let status, status.kind == .regular, status.size == row.size, !(row.isEmpty && row.size > 0) {
                guard let lastSync, row.isDurable,
                    ContentVerification.isWrittenWithoutRow(
                        modifiedAt: FileTimestamp(status.modified), row: row.modifiedAt, after: lastSync)
                else { continue }
            }
            findings += try database.write { db in try verification.verify(row.number, after: lastSync, in: db) }
        }
        lastRow = rows.count < Self.rowsInStep ? nil : rows.last?.number
    }
}
