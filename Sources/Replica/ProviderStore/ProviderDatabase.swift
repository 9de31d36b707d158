import FileProvider
import Foundation
import GRDB
import Synchronization
import SystemPackage

/// The store of a domain's provider: an SQLite database of its own beside the replica's, so that a provider's write does
/// not wait for the metadata writer (Docs/decisions/0007-provider-store.md).
package final class ProviderDatabase: ProviderStore {
    package static let fileName = "provider.sqlite"

    private let connections: Mutex<Connections?>
    private let reserve: MetadataReserve
    private static let readers = 4

    /// Opens the database, or makes it, and brings its schema up to date.
    ///
    /// - Throws: `DatabaseError`, ``ReplicaDamage``; a database of a newer Yonder is refused.
    init(at path: FilePath, reserve: MetadataReserve) throws {
        self.reserve = reserve
        let connections = try reserve.using { try Connections(path: path.string, readers: Self.readers) }
        try reserve.using { try connections.migrate(with: ProviderSchema.migrator) }
        self.connections = Mutex(connections)
        reserve.keepRoom(
            1, for: path, checkpoint: { [weak self] in try? self?.checkpointEarly(longest: $0) },
            addFreePages: { [weak self] in try self?.addFreePages(of: $0) })
    }

    // MARK: - Transactions

    package func read<Value>(_ body: (any ProviderStoreSnapshot) throws -> Value) throws -> Value {
        try naming {
            try current().read { db in
                try db.transaction(beginning: "BEGIN DEFERRED") { db in try body(ProviderTransaction(db: db)) }
            }
        }
    }

    package func write<Value>(
        _ durability: ProviderStoreDurability, _ body: (any ProviderStoreTransaction) throws -> Value
    ) throws -> Value {
        try transaction(durability) { try body(ProviderTransaction(db: $0)) }
    }

    func transaction<Value>(
        _ durability: ProviderStoreDurability, _ body: (Database) throws -> Value
    ) throws -> Value {
        try naming {
            try reserve.using(checkpoint: checkpoint) {
                try current().writer.writeWithoutTransaction { db in
                    // In WAL mode FULL syncs the log after the commit. The pragma works when it is prepared: a statement
                    // that is kept would do nothing.
                    if durability == .synced { try db.execute(sql: "PRAGMA synchronous = FULL") }
                    defer {
                        if durability == .synced { try? db.execute(sql: "PRAGMA synchronous = NORMAL") }
                    }
                    return try db.transaction(beginning: "BEGIN IMMEDIATE", body)
                }
            }
        }
    }

    func query<Value>(_ body: (Database) throws -> Value) throws -> Value { try current().read(body) }

    /// Moves the log into the database file and closes it. Later calls fail with `domainDisabled`.
    func close() throws {
        let last = connections.withLock { $0.take() }
        do {
            try reserve.using { try last?.writer.writeWithoutTransaction { db in _ = try db.checkpoint(.truncate) } }
        } catch Errno.noSpace {
            // The changes stay in the log, which is as durable.
        }
    }

    private func checkpoint() throws {
        try current().writer.writeWithoutTransaction { db in _ = try db.checkpoint(.restart) }
    }

    private func checkpointEarly(longest: Int64?) throws {
        try current().writer.writeWithoutTransaction { db in try db.checkpointEarly(longest: longest) }
    }

    private func addFreePages(of bytes: Int64) throws {
        try current().writer.writeWithoutTransaction { db in
            guard try db.lacksFreePages(of: bytes) else { return }
            try db.addFreePages(
                of: bytes, inserting: "INSERT INTO record (namespace, key, value) VALUES ('', x'', zeroblob(?))",
                deleting: "DELETE FROM record WHERE namespace = '' AND key = x''")
        }
    }

    private func current() throws -> Connections {
        guard let current = connections.withLock({ $0 }) else { throw FileProviderError(.domainDisabled) }
        return current
    }

    /// Gives a provider SQLite's errors as `FileProviderError`s.
    private func naming<Value>(_ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch Errno.noSpace {
            throw FileProviderError.posix(
                .noSpace, "the provider's store cannot be written: the disk with the state directory is full")
        } catch let error as DatabaseError {
            let text = error.message ?? "\(error.resultCode)"
            throw FileProviderError.posix(
                .ioError,
                ReplicaDamage(error) == nil
                    ? "the provider's store failed: \(text)"
                    : "the provider's store is damaged: \(text); unmount the domain and run 'yonder check --repair'")
        }
    }
}

/// The tables of a provider's store. A migration that was released is never edited.
enum ProviderSchema {
    static let record = """
        CREATE TABLE record (
            id INTEGER PRIMARY KEY,
            namespace TEXT NOT NULL,
            key BLOB NOT NULL,
            value TEXT NOT NULL,
            UNIQUE (namespace, key)
        )
        """
    private static let unreadable = """
        CREATE TABLE unreadable (
            id INTEGER PRIMARY KEY,
            namespace TEXT,
            key BLOB,
            value,
            foundAt INTEGER NOT NULL
        )
        """

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("0001 records") { db in
            try db.execute(sql: record)
            try db.execute(sql: unreadable)
        }
        return migrator
    }
}

private struct ProviderTransaction: ProviderStoreTransaction {
    let db: Database

    func encodedRecord(at key: ProviderStoreKey, in namespace: String) throws -> [UInt8]? {
        try db.one(
            "SELECT value FROM record WHERE namespace = ? AND key = ?", [namespace, Data(key.bytes)], { $0.bytes(0) })
    }

    func visitEncodedRecords(
        in namespace: String, prefix: ProviderStoreKey, _ visit: (ProviderStoreKey, [UInt8]) throws -> Void
    ) throws {
        // All rows first: the closure may ask for other records.
        let decode = { (columns: Columns) in (ProviderStoreKey(columns.bytes(0)), columns.bytes(1)) }
        let rows =
            if let end = Self.end(of: prefix.bytes) {
                try db.all(
                    """
                    SELECT key, value FROM record WHERE namespace = ? AND key >= ? AND key < ? ORDER BY key
                    """, [namespace, Data(prefix.bytes), Data(end)], decode)
            } else {
                try db.all(
                    "SELECT key, value FROM record WHERE namespace = ? AND key >= ? ORDER BY key",
                    [namespace, Data(prefix.bytes)], decode)
            }
        for (key, value) in rows { try visit(key, value) }
    }

    func setEncodedRecord(_ record: [UInt8]?, at key: ProviderStoreKey, in namespace: String) throws {
        if let record {
            try db.run(
                """
                INSERT INTO record (namespace, key, value) VALUES (?, ?, ?)
                ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value
                """, [namespace, Data(key.bytes), String(decoding: record, as: UTF8.self)])
        } else {
            try db.run("DELETE FROM record WHERE namespace = ? AND key = ?", [namespace, Data(key.bytes)])
        }
    }

    /// The first key that is greater than all with a prefix; nil when there is none.
    private static func end(of prefix: [UInt8]) -> [UInt8]? {
        var end = prefix
        while let last = end.popLast() {
            if last < .max { return end + [last + 1] }
        }
        return nil
    }
}
