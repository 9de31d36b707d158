import GRDB

/// A file beside another one.
package struct SiblingFile: Hashable, Sendable {
    package var number: InodeNumber
    package var size: Int64
    /// Whether nothing of its content is here.
    package var isDataless: Bool

    package init(number: InodeNumber, size: Int64, isDataless: Bool) {
        self.number = number
        self.size = size
        self.isDataless = isDataless
    }
}

extension ReplicaDatabase {
    /// The directory of an inode, and the files in it that come after the inode, by name and as they are listed; nil for
    /// one without a name.
    ///
    /// - Parameter limit: at most so many files of each order.
    package func siblings(
        after number: InodeNumber, limit: Int
    ) throws -> (directory: InodeNumber, byName: [SiblingFile], byListing: [SiblingFile])? {
        try read { db in
            let place = try db.one(
                "SELECT parent, id, name FROM item WHERE inode = ? ORDER BY id LIMIT 1", [number.rawValue],
                { ($0[0] as Int64?, $0[1] as Int64, $0[2] as String) })
            guard let place, let parent = place.0 else { return nil }
            let byName = try db.all(
                """
                SELECT inode.number, inode.size, inode.content
                FROM item INDEXED BY itemByName CROSS JOIN inode ON inode.number = item.inode
                WHERE item.parent = ? AND item.name > ? AND inode.kind = \(kind: .file) ORDER BY item.name LIMIT ?
                """, [parent, place.2, limit], Self.sibling)
            let byListing = try db.all(
                """
                SELECT inode.number, inode.size, inode.content
                FROM item INDEXED BY itemInParent CROSS JOIN inode ON inode.number = item.inode
                WHERE item.parent = ? AND item.id > ? AND inode.kind = \(kind: .file) ORDER BY item.id LIMIT ?
                """, [parent, place.1, limit], Self.sibling)
            return (InodeNumber(rawValue: parent), byName, byListing)
        }
    }

    private static func sibling(_ row: Columns) -> SiblingFile {
        SiblingFile(
            number: InodeNumber(rawValue: row[0]), size: row[1],
            isDataless: row[2] as Int64 == Int64(ContentState.dataless.rawValue))
    }
}
