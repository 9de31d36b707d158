import FileProvider
import GRDB

/// The last error of an item; it is removed after the next success.
package struct ItemFailure: Hashable, Sendable {
    /// A ``FileProviderError/Code``, as text.
    package var code: String
    package var message: String
    /// How often in a row.
    package var attempts: Int
    package var failedAt: FileTimestamp
}

extension ReplicaDatabase {
    /// The last error of an item; nil after a success.
    package func failure(of number: InodeNumber) throws -> ItemFailure? {
        try one(
            "SELECT code, message, attempts, failedAt FROM failure WHERE inode = ?", [number.rawValue],
            {
                ItemFailure(
                    code: $0[0], message: $0[1], attempts: $0[2],
                    failedAt: FileTimestamp(nanosecondsSince1970: $0[3]))
            })
    }

    /// How many items have failed last.
    package func failureCount() throws -> Int {
        try read { db in try db.one("SELECT COUNT(*) FROM failure", [], { $0[0] as Int }) ?? 0 }
    }
}

extension Database {
    func recordFailure(_ error: FileProviderError, of number: InodeNumber, at now: FileTimestamp) throws {
        try run(
            """
            INSERT INTO failure (inode, code, message, failedAt) SELECT number, ?, ?, ? FROM inode WHERE number = ?
            ON CONFLICT (inode) DO UPDATE SET code = excluded.code, message = excluded.message,
                attempts = attempts + 1, failedAt = excluded.failedAt
            """,
            [error.code.rawValue, error.message, now.nanosecondsSince1970, number.rawValue])
    }

    /// Whether a change of an inode was refused because removals on the remote are held.
    func waitsForRemovals(_ number: InodeNumber) throws -> Bool {
        try one(
            """
            SELECT 1 FROM failure WHERE inode = ?1 AND code = ?2 AND EXISTS (SELECT 1 FROM item
                WHERE inode = ?1 AND changedFields <> 0 AND isExcluded = \(exclusion: .none))
            """, [number.rawValue, FileProviderError.Code.removalsAreHeld.rawValue], { _ in true }) ?? false
    }

    /// Forgets an item's error after it was read. That of a change that waits says why it does.
    func forgetReadingFailure(of number: InodeNumber) throws {
        try run(
            """
            DELETE FROM failure WHERE inode = ?1 AND NOT EXISTS (SELECT 1 FROM item
                WHERE inode = ?1 AND changedFields <> 0 AND isExcluded = \(exclusion: .none))
            """, [number.rawValue])
    }

    /// Forgets an item's error after a success.
    func forgetFailure(of number: InodeNumber) throws {
        try run("DELETE FROM failure WHERE inode = ?", [number.rawValue])
    }
}
