import FileProvider

extension ReplicaDatabase {
    /// Files whose content is here whole and is the remote's, in the order of their numbers.
    package func cleanFiles(after number: InodeNumber, limit: Int) throws -> [ItemRecord] {
        try readCommitted { db in
            let ids = try db.all(
                """
                SELECT MIN(item.id) FROM inode INDEXED BY inodeWithContentFile JOIN item ON item.inode = inode.number
                WHERE inode.hasContentFile = 1 AND inode.content = \(content: .materialized)
                    AND inode.kind = \(kind: .file) AND inode.number > ?
                    AND inode.contentStamp IS NULL AND item.isExcluded = \(exclusion: .none)
                GROUP BY inode.number
                HAVING MIN(item.identifier IS NOT NULL) = 1 AND MAX(item.changedFields & \(field: .contents)) = 0
                ORDER BY inode.number LIMIT ?
                """, [number.rawValue, limit], { $0[0] as Int64 })
            return try ids.compactMap { try db.item(id: $0) }
        }
    }
}
