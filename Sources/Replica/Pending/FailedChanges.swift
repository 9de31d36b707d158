import FileProvider
import GRDB

/// A change that could not be sent when that was tried last.
package struct FailedChange: Hashable, Sendable {
    package var mark: PendingMark
    /// A ``FileProviderError/Code``, as text.
    package var code: String
    package var message: String
    package var nextTry: FileTimestamp?
}

/// Changes that could not be sent.
extension ReplicaDatabase {
    /// The first changes that could not be sent.
    ///
    /// - Parameter top: only those at or below this item; nil for all.
    package func failedChanges(below top: InodeNumber?, limit: Int) throws -> [FailedChange] {
        try read { db in
            let items = try db.all(
                """
                SELECT item.id, failure.code, failure.message, item.nextTry, item.inode
                FROM failure JOIN item ON item.inode = failure.inode
                WHERE item.attempts > 0 AND changedFields <> 0 AND isExcluded = \(exclusion: .none) LIMIT ?
                """, [Int64(limit)],
                {
                    let next: Int64? = $0[3]
                    let change = FailedChange(
                        mark: .item($0[0]), code: $0[1], message: $0[2],
                        nextTry: next.map(FileTimestamp.init(nanosecondsSince1970:)))
                    return (change: change, place: InodeNumber(rawValue: $0[4] as Int64))
                })
            let deletions = try db.all(
                """
                SELECT deletion.id, code, message, deletion.nextTry, item.inode
                FROM deletion LEFT JOIN item ON item.identifier = deletion.baseParent
                WHERE deletion.attempts > 0 AND code IS NOT NULL LIMIT ?
                """, [Int64(limit)],
                {
                    let (message, next, parent): (String?, Int64?, Int64?) = ($0[2], $0[3], $0[4])
                    let change = FailedChange(
                        mark: .deletion($0[0]), code: $0[1], message: message ?? "",
                        nextTry: next.map(FileTimestamp.init(nanosecondsSince1970:)))
                    return (change: change, place: parent.map { InodeNumber(rawValue: $0) })
                })
            let all = items.map { (change: $0.change, place: Optional($0.place)) } + deletions
            guard let top else { return all.map(\.change) }
            return try all.filter { try $0.place.map { try db.isBelow($0, top) } ?? false }.map(\.change)
        }
    }

    /// How many changes could not be sent when that was tried last.
    ///
    /// - Parameter sending: the few that are tried again now, and are not counted.
    package func failedChangeCount(except sending: Set<PendingMark> = []) throws -> Int {
        try read { db in
            let count =
                try db.one(
                    """
                    SELECT (SELECT COUNT(*) FROM failure WHERE EXISTS (SELECT 1 FROM item
                            WHERE item.inode = failure.inode AND changedFields <> 0 AND isExcluded = \(exclusion: .none)))
                        + (SELECT COUNT(*) FROM deletion WHERE attempts > 0)
                    """, [], { $0[0] as Int }) ?? 0
            var inodes: Set<Int64> = []
            var deletions = 0
            for mark in sending {
                switch mark {
                case .item(let row):
                    let inode = try db.one(
                        """
                        SELECT item.inode FROM item JOIN failure ON failure.inode = item.inode
                        WHERE item.id = ? AND changedFields <> 0 AND isExcluded = \(exclusion: .none)
                        """, [row], { $0[0] as Int64 })
                    if let inode { inodes.insert(inode) }
                case .deletion(let row):
                    let hasFailed = try db.one(
                        "SELECT 1 FROM deletion WHERE id = ? AND attempts > 0", [row], { _ in true })
                    if hasFailed == true { deletions += 1 }
                case .reimport: break
                }
            }
            return count - inodes.count - deletions
        }
    }
}
