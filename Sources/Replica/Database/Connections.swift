import FileProvider
import Foundation
import GRDB
import SystemPackage

/// The connections to a database: one that writes, and as many that read as are needed at once.
///
/// GRDB's own pool asks for the schema's version and looks for a free reader by key path at each read, which is more work
/// than most of our reads are; our schema does not change while a replica is open.
final class Connections: @unchecked Sendable {
    // Unchecked: `idle` and `count` are only touched under `available`, a pthread mutex because every read passes here.
    let writer: DatabaseQueue
    private let path: String
    private let readerConfiguration: Configuration
    private let most: Int
    private let available = NSCondition()
    private var idle: [DatabaseQueue] = []
    private var count = 0
    private let registration: OpenDatabaseFiles.Registration

    /// - Parameters:
    ///   - readers: how many threads read at once without waiting for each other.
    ///   - busyTimeout: how many seconds a statement waits for a lock of another process.
    ///   - prepareWriter: makes further settings of the connection that writes.
    init(
        path: String, readers: Int, busyTimeout: Double = 10,
        prepareWriter: @escaping @Sendable (Database) throws -> Void = { _ in }
    ) throws {
        var configuration = Configuration()
        configuration.busyMode = .timeout(busyTimeout)
        configuration.prepareDatabase { db in
            // A commit survives the daemon's death at once, and a power cut once the log is synced.
            try db.execute(sql: "PRAGMA synchronous = NORMAL")
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
            // Debian's SQLite writes the pages of what is deleted, too.
            try db.execute(sql: "PRAGMA secure_delete = OFF")
        }
        var writing = configuration
        writing.prepareDatabase(prepareWriter)
        writing.journalMode = .wal
        // Local changes wait in an open transaction for those that follow.
        writing.allowsUnsafeTransactions = true
        registration = OpenDatabaseFiles.Registration(FilePath(path))
        writer = try DatabaseQueue(path: path, configuration: writing)
        registration.noteMade(FilePath(path))
        var reading = configuration
        reading.readonly = true
        // The readers share the kernel's page cache; each keeps no more than the upper pages of the trees.
        reading.prepareDatabase { db in try db.execute(sql: "PRAGMA cache_size = -2048") }
        readerConfiguration = reading
        self.path = path
        most = max(1, readers)
    }

    /// Runs a body with a connection for reading, on the calling thread.
    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
        let reader = try take()
        defer { giveBack(reader) }
        return try reader.unsafeRead(body)
    }

    /// Brings the schema up to date.
    ///
    /// - Throws: `newerExtensionVersionFound` for a database of a newer Yonder, ``ReplicaDamage``.
    func migrate(with migrator: DatabaseMigrator) throws {
        try writer.read { db in try Self.refuseNewer(db, than: migrator, at: path) }
        try migrator.migrate(writer)
    }

    /// - Throws: as ``migrate(with:)``, for a database with migrations that a migrator does not know.
    static func refuseNewer(_ db: Database, than migrator: DatabaseMigrator, at path: String) throws {
        guard try migrator.hasBeenSuperseded(db) else { return }
        // Every version applies the migrations in their order.
        let applied = try migrator.appliedIdentifiers(db)
        guard migrator.migrations.allSatisfy({ applied.contains($0) }) else {
            throw ReplicaDamage("its list of migrations is damaged")
        }
        throw FileProviderError(.newerExtensionVersionFound, "'\(path)' was written by a newer Yonder; run that one")
    }

    private func take() throws -> DatabaseQueue {
        available.lock()
        while idle.isEmpty, count >= most { available.wait() }
        if let reader = idle.popLast() {
            available.unlock()
            return reader
        }
        count += 1
        available.unlock()
        do {
            return try DatabaseQueue(path: path, configuration: readerConfiguration)
        } catch {
            available.lock()
            count -= 1
            available.signal()
            available.unlock()
            throw error
        }
    }

    private func giveBack(_ reader: DatabaseQueue) {
        available.lock()
        idle.append(reader)
        available.signal()
        available.unlock()
    }
}

extension Database {
    /// Runs a body in a transaction, with statements that are kept: GRDB prepares its own each time.
    func transaction<Value>(beginning: String, _ body: (Database) throws -> Value) throws -> Value {
        try run(beginning, [])
        do {
            let value = try body(self)
            try run("COMMIT", [])
            return value
        } catch {
            // SQLite itself rolls back after some errors.
            if isInsideTransaction { try? run("ROLLBACK", []) }
            throw error
        }
    }
}
