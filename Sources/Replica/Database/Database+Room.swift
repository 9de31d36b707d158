import GRDB
import GRDBSQLite

/// What the metadata reserve asks of a database.
extension Database {
    /// Whether less than half of so many bytes are in free pages.
    func lacksFreePages(of bytes: Int64) throws -> Bool {
        let free: Int64 = try one("PRAGMA freelist_count", [], { $0[0] }) ?? 0
        return try free * pageSize() < bytes / 2
    }

    private func pageSize() throws -> Int64 { try one("PRAGMA page_size", [], { $0[0] }) ?? 4096 }

    /// Gives the database free pages, which are on the disk once the log has been moved into it. Precondition: no transaction is
    /// open.
    ///
    /// - Parameters:
    ///   - insert: a statement that inserts a blob of zeros; its argument is how many.
    ///   - delete: a statement that deletes it, before the commit.
    func addFreePages(of bytes: Int64, inserting insert: String, deleting delete: String) throws {
        let count: Int64 = try one("PRAGMA page_count", [], { $0[0] }) ?? 0
        // A page that is committed has to find room when the log is moved. A blob needs some pages more than its bytes.
        try allocate((count + 16) * pageSize() + bytes + bytes / 64)
        // Without it the pages of what is deleted are not written, and have no blocks on the disk.
        try execute(sql: "PRAGMA secure_delete = ON")
        defer { try? execute(sql: "PRAGMA secure_delete = OFF") }
        try transaction(beginning: "BEGIN IMMEDIATE") { db in
            try db.run(insert, [bytes])
            try db.run(delete, [])
        }
        _ = try checkpoint(.passive)
    }

    /// Gives the database's file blocks up to a length. What is behind the last page is cut off when the log is moved.
    private func allocate(_ length: Int64) throws {
        // Not by a descriptor of our own: closing it would release SQLite's locks.
        var (chunk, length) = (CInt(4096), length)
        guard sqlite3_file_control(sqliteConnection, nil, SQLITE_FCNTL_CHUNK_SIZE, &chunk) == SQLITE_OK,
            sqlite3_file_control(sqliteConnection, nil, SQLITE_FCNTL_SIZE_HINT, &length) == SQLITE_OK
        else { throw DatabaseError(resultCode: .SQLITE_FULL) }
    }

    /// Moves the log into the database, without waiting for readers, or for no more than a moment when the log is to be
    /// shortened.
    ///
    /// - Parameter longest: how many bytes the log has then; nil leaves it as long as it is.
    func checkpointEarly(longest: Int64?) throws {
        guard let longest else { return _ = try checkpoint(.passive) }
        try execute(sql: "PRAGMA busy_timeout = 100")
        defer { try? execute(sql: "PRAGMA busy_timeout = 10000") }
        _ = try checkpoint(.restart)
        try execute(sql: "PRAGMA journal_size_limit = \(longest)")
        defer { try? execute(sql: "PRAGMA journal_size_limit = -1") }
        // The first transaction in a log that begins anew shortens it.
        let version: Int64 = try one("PRAGMA user_version", [], { $0[0] }) ?? 0
        try execute(sql: "PRAGMA user_version = \(version)")
    }
}
