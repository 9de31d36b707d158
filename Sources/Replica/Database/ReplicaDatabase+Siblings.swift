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

/// A directory, and the files in it that come after one of them.
package struct SiblingFiles: Sendable {
    package var directory: InodeNumber
    package var byName: [SiblingFile]
    package var byListing: [SiblingFile]
    /// As they are listed, and from the first one after the last.
    package var around: [SiblingFile]
}

extension ReplicaDatabase {
    /// The directory of an inode, and the files in it that come after the inode; nil for one without a name.
    ///
    /// - Parameters:
    ///   - limit: at most so many files of each order.
    ///   - most: at most so many around it.
    package func siblings(after number: InodeNumber, limit: Int, around most: Int) throws -> SiblingFiles? {
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
            func listed(from first: Int64, to last: Int64, limit: Int) throws -> [SiblingFile] {
                try db.all(
                    """
                    SELECT inode.number, inode.size, inode.content
                    FROM item INDEXED BY itemInParent CROSS JOIN inode ON inode.number = item.inode
                    WHERE item.parent = ? AND item.id BETWEEN ? AND ? AND inode.kind = \(kind: .file)
                    ORDER BY item.id LIMIT ?
                    """, [parent, first, last, limit], Self.sibling)
            }
            var around = try listed(from: place.1 + 1, to: .max, limit: max(limit, most))
            let byListing = Array(around.prefix(limit))
            if around.count < most { around += try listed(from: 0, to: place.1 - 1, limit: most - around.count) }
            return SiblingFiles(
                directory: InodeNumber(rawValue: parent), byName: byName, byListing: byListing, around: around)
        }
    }

    private static func sibling(_ row: Columns) -> SiblingFile {
        SiblingFile(
            number: InodeNumber(rawValue: row[0]), size: row[1],
            isDataless: row[2] as Int64 == Int64(ContentState.dataless.rawValue))
    }
}
