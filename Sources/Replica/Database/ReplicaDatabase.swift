import FileProvider
import GRDB
import Synchronization
import SystemPackage

/// The domain's database: what the mount shows, what the provider agreed to, and what of it is here.
///
/// Reading runs on the calling thread and never waits for a writer (WAL). Writers take turns. Every method that takes a
/// `Database` runs inside a transaction of the caller's.
package final class ReplicaDatabase: Sendable {
    package static let fileName = "replica.sqlite"

    /// Gone after ``close()``. Who is at work then holds it until done, and the last one closes the connections.
    private let connections: Mutex<Connections?>

    /// Opens the database, or makes it, and brings its schema up to date.
    ///
    /// - Parameter readers: how many threads read at once without waiting for each other.
    /// - Throws: GRDB's `DatabaseError`; a database of a newer Yonder is refused.
    init(at path: FilePath, readers: Int) throws {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = true
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { db in
            // A commit survives the daemon's death at once, and a power cut once the log is synced.
            try db.execute(sql: "PRAGMA synchronous = NORMAL")
            try db.execute(sql: "PRAGMA cache_size = -4096")
            try db.execute(sql: "PRAGMA temp_store = MEMORY")
            // Moving the log into the database syncs both: seldom.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = 8000")
        }
        let connections = try Connections(path: path.string, readers: readers, configuration: configuration)
        let migrator = Schema.migrator
        let isNewer = try connections.writer.read { db in try migrator.hasBeenSuperseded(db) }
        if isNewer {
            throw FileProviderError(
                .newerExtensionVersionFound, "'\(path)' was written by a newer Yonder; run that one")
        }
        try migrator.migrate(connections.writer)
        self.connections = Mutex(connections)
    }

    /// Runs a reading transaction on the calling thread.
    func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try current().read { db in try db.transaction(beginning: "BEGIN DEFERRED", body) }
    }

    /// Runs a single query on the calling thread: one statement needs no transaction around it to see one state.
    func glance<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try current().read(body)
    }

    /// Runs a writing transaction, on the writer's own queue, and waits for it.
    func write<Value>(_ body: (Database) throws -> Value) throws -> Value {
        try current().writer.writeWithoutTransaction { db in
            try db.transaction(beginning: "BEGIN IMMEDIATE", body)
        }
    }

    /// Runs a writing transaction without blocking the calling thread.
    func write<Value: Sendable>(
        async body: @escaping @Sendable (Database) throws -> Value
    ) async throws -> Value {
        try await current().writer.writeWithoutTransaction { db in
            try db.transaction(beginning: "BEGIN IMMEDIATE", body)
        }
    }

    /// Moves the log into the database file and closes it. Whoever comes later gets an error.
    func close() throws {
        let last = connections.withLock { connections in
            defer { connections = nil }
            return connections
        }
        try last?.writer.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) }
    }

    private func current() throws -> Connections {
        guard let current = connections.withLock({ $0 }) else { throw FileProviderError(.domainDisabled) }
        return current
    }
}
