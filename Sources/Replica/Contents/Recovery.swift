import FileProvider
import Foundation
import GRDB
import Logging
import Syscalls
import SystemPackage

/// Brings database and contents together again when a replica is opened: after a crash they may differ by what was under
/// way. What fits no row is set aside, never deleted; what a row promises and is not there is dataless again.
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
        try compareWrittenFiles()
        try forgetWhatAPowerCutMayHaveTaken()
        try endWhatWasUnderWay()
        try compareFilesWithRows()
    }

    private struct FileRow {
        var size: Int64
        var isUnsent: Bool
    }

    /// The root is there from the start.
    func makeRoot() throws {
        try database.write { db in
            guard try db.inode(.root) == nil else { return }
            let now = Replica.now.nanosecondsSince1970
            try db.run(
                "INSERT INTO inode (number, kind, modifiedAt, changedAt, createdAt) VALUES (1, 2, ?, ?, ?)",
                [now, now, now])
            try db.run(
                "INSERT INTO item (inode, parent, name, identifier, capabilities) VALUES (1, NULL, '/', ?, ?)",
                ["yonder.root", 0xFF])
            try DomainKey.identity.set(UUID().uuidString, in: db)
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
                    SELECT inode.number FROM inode WHERE hasContentFile = 1 AND isDurable = 0 AND content <> 0
                        AND NOT \(Self.isUnsent)
                    """)
            for number in numbers { try db.forgetContent(of: InodeNumber(rawValue: number)) }
            return numbers.count
        }
        if forgotten > 0 {
            findings.append("the machine stopped without warning: \(forgotten) downloaded files will be fetched again")
        }
    }

    /// Whether this machine may have the only copy of an inode's content.
    static let isUnsent = """
        EXISTS (SELECT 1 FROM item WHERE item.inode = inode.number
            AND (changedFields & 1 <> 0 OR identifier IS NULL AND reimport <= 0))
        """

    /// What was written through the kernel after the last comparison is found by its file.
    private mutating func compareWrittenFiles() throws {
        for number in try database.filesBeingWritten() {
            do {
                findings += try database.write { db in
                    var changes = LocalChanges(db: db, open: NothingOpen(), contents: contents, now: Replica.now)
                    try changes.endWriting(number)
                    return changes.effects.defects
                }
            } catch let error as Errno where error == .noSuchFileOrDirectory {
                // The comparison of all files says what is missing.
                try database.write { db in
                    try db.run("UPDATE inode SET contentStamp = NULL WHERE number = ?", [number.rawValue])
                }
            }
        }
    }

    private func endWhatWasUnderWay() throws {
        try database.write { db in
            try db.execute(sql: "UPDATE inode SET content = 0 WHERE kind = 2 AND content = 1")
            let nameless = try Int64.fetchAll(db, sql: "SELECT number FROM inode WHERE linkCount = 0")
            for number in nameless {
                try contents.remove(InodeNumber(rawValue: number))
                try db.run("DELETE FROM inode WHERE number = ?", [number])
            }
            let empty = try Int64.fetchAll(
                db,
                sql:
                    """
                    SELECT number FROM inode WHERE hasContentFile = 1 AND (content = 0 OR localBytes = 0 AND size > 0)
                        AND NOT \(Self.isUnsent)
                    """
            )
            for number in empty {
                try contents.remove(InodeNumber(rawValue: number))
                try db.run("UPDATE inode SET hasContentFile = 0, content = 0 WHERE number = ?", [number])
                try db.run("DELETE FROM contentRange WHERE inode = ?", [number])
            }
        }
    }

    private mutating func compareFilesWithRows() throws {
        var rows: [Int64: FileRow] = [:]
        try database.read { db in
            let cursor = try Row.fetchCursor(
                db, sql: "SELECT number, size, \(Self.isUnsent) FROM inode WHERE hasContentFile = 1")
            while let row = try cursor.next() { rows[row[0]] = FileRow(size: row[1], isUnsent: row[2]) }
        }
        let stamp = Replica.now.nanosecondsSince1970
        for name in try FileManager.default.contentsOfDirectory(atPath: contents.directory.string) {
            guard let component = FilePath.Component(name) else { continue }
            guard let number = Int64(name), let row = rows.removeValue(forKey: number) else {
                try setAside(component, stamp: stamp, because: "no row of the database knows it")
                continue
            }
            let path = contents.directory.appending(component)
            let descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .noFollow])
            defer { try? descriptor.close() }
            let length = try descriptor.lengths().size
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
                findings.append("what was written to inode \(number) and is not on the remote has gone from its place")
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
            var changes = LocalChanges(db: db, open: NothingOpen(), contents: contents, now: Replica.now)
            try changes.contentWasWritten(InodeNumber(rawValue: number))
        }
    }

    /// Bytes that are gone are not sent as an empty file: a new item cannot be sent, and one that the remote has is
    /// fetched again.
    private func loseContent(of number: Int64) throws {
        try forget(number)
        try database.write { db in
            try db.run(
                "UPDATE item SET changedFields = changedFields & ~1 WHERE inode = ? AND identifier IS NOT NULL",
                [number])
            try db.recordFailure(
                FileProviderError(.cannotSynchronize, "its content has gone from this machine's disk"),
                of: InodeNumber(rawValue: number), at: Replica.now)
        }
    }

    private func forget(_ number: Int64) throws {
        try database.write { db in
            try db.forgetContent(of: InodeNumber(rawValue: number))
            try db.run("UPDATE inode SET hasContentFile = 0 WHERE number = ?", [number])
        }
    }
}
