import FileProvider
import GRDB

/// An item that the remote has in a directory, as the database knows it.
package struct KnownChild: Sendable {
    package var inode: InodeNumber
    package var name: String
    package var contentVersion: [UInt8]
    package var kind: InodeKind
    /// Whether something about it is on its way to the remote: what that says of it may be older or newer.
    package var isChanging: Bool
}

extension ReplicaDatabase {
    /// The items that the remote has in a directory, as it last reported, by identifier; and those to be deleted there.
    package func knownChildren(
        of directory: ItemIdentifier
    ) throws -> (children: [ItemIdentifier: KnownChild], doomed: Set<ItemIdentifier>) {
        try read { db in
            var children: [ItemIdentifier: KnownChild] = [:]
            try db.query(
                """
                SELECT item.identifier, item.inode, item.baseName, item.baseContentVersion, inode.kind,
                    item.changedFields <> 0 OR item.wasSent <> 0
                FROM item JOIN inode ON inode.number = item.inode
                WHERE item.baseParent = ? AND item.identifier IS NOT NULL AND item.inode <> \(inode: .root)
                """, [directory.rawValue]
            ) { row in
                children[ItemIdentifier(rawValue: row[0])] = KnownChild(
                    inode: InodeNumber(rawValue: row[1]), name: row[2], contentVersion: [UInt8](row[3]),
                    kind: InodeKind(rawValue: row[4]) ?? .file, isChanging: row[5])
                return true
            }
            let doomed = try db.all(
                "SELECT identifier FROM deletion WHERE baseParent = ?", [directory.rawValue],
                { ItemIdentifier(rawValue: $0[0]) })
            return (children, Set(doomed))
        }
    }

    /// Files whose content is here whole and is the remote's, in the order of their numbers.
    package func cleanFiles(after number: InodeNumber, limit: Int) throws -> [ItemRecord] {
        try read { db in
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
