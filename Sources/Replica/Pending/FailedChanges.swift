import FileProvider

/// Changes that could not be sent.
extension ReplicaDatabase {
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
