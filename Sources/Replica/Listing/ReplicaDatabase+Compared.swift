import FileProvider
import Foundation
import GRDB

/// A directory whose listing is here.
package struct ListedDirectory: Hashable, Sendable {
    package var number: InodeNumber
    package var identifier: ItemIdentifier
    /// Nil for the root, and where the directory above has no listing here.
    package var parent: InodeNumber?

    package init(number: InodeNumber, identifier: ItemIdentifier, parent: InodeNumber? = nil) {
        self.number = number
        self.identifier = identifier
        self.parent = parent
    }
}

/// Directories whose version tells whether anything below them has changed.
extension ReplicaDatabase {
    /// The directories whose listing is here, without those in the trash.
    package func listedDirectories() throws -> [ListedDirectory] {
        try readCommitted { db in
            let trashed = try db.inodesInTrash()
            return try Row.fetchAll(
                db,
                sql: """
                    SELECT inode.number, item.identifier, above.number FROM inode JOIN item ON item.inode = inode.number
                    LEFT JOIN inode AS above ON above.number = item.parent
                        AND above.content = \(content: .materialized)
                    WHERE inode.kind = \(kind: .directory) AND inode.content = \(content: .materialized)
                        AND item.identifier IS NOT NULL ORDER BY inode.number
                    """
            ).map {
                ListedDirectory(
                    number: InodeNumber(rawValue: $0[0]), identifier: ItemIdentifier($0[1] as String),
                    parent: ($0[2] as Int64?).map { InodeNumber(rawValue: $0) })
            }.filter { !trashed.contains($0.number.rawValue) }
        }
    }

    /// The highest number of an item; numbers of later items are higher.
    package func newestItem() throws -> Int64 {
        try query { db in try db.one("SELECT MAX(id) FROM item", [], { $0[0] as Int64? ?? 0 }) ?? 0 }
    }

    /// The remote's items that are in no directory here, by their row numbers, from the first after one of them.
    package func itemsWithoutDirectory(
        after row: Int64, limit: Int
    ) throws -> [(id: Int64, identifier: ItemIdentifier)] {
        try all(
            """
            SELECT id, identifier FROM item INDEXED BY itemInParent
            WHERE parent IS NULL AND id > ? AND inode <> \(inode: .root) AND identifier IS NOT NULL AND reimport <= 0
            ORDER BY id LIMIT ?
            """, [row, limit], { (id: $0[0] as Int64, identifier: ItemIdentifier($0[1] as String)) })
    }

    /// The remote's directories that are newer than an item and whose listing is not here, the newest first. Those in the trash, and
    /// those that the provider is to recognize again, are left out. Of very many newer items only the newest are searched.
    package func unlistedDirectories(after item: Int64, limit: Int) throws -> [InodeNumber] {
        try readCommitted { db in
            let newest = try db.one("SELECT MAX(id) FROM item", [], { $0[0] as Int64? ?? 0 }) ?? 0
            let trashed = try db.inodesInTrash()
            return try Int64.fetchAll(
                db,
                sql: """
                    SELECT inode.number FROM item JOIN inode ON inode.number = item.inode
                    WHERE item.id > ? AND item.isDirectory = 1 AND item.identifier IS NOT NULL AND item.reimport = 0
                        AND inode.content = \(content: .dataless)
                    ORDER BY item.id DESC LIMIT ?
                    """, arguments: [max(item, newest - Self.mostNewItems), limit]
            ).filter { !trashed.contains($0) }.map(InodeNumber.init(rawValue:))
        }
    }

    private static let mostNewItems: Int64 = 1_000_000

    /// The directories whose listing is here, by their identifiers.
    package func materializedDirectories() throws -> [(number: InodeNumber, identifier: ItemIdentifier)] {
        try listedDirectories().map { ($0.number, $0.identifier) }
    }

    /// The version that a directory has on the remote, as was said last, and the one it had when it was last compared.
    package func versions(ofDirectory number: InodeNumber) throws -> (present: [UInt8], compared: [UInt8]?) {
        try one(
            """
            SELECT item.baseContentVersion, inode.comparedVersion FROM inode JOIN item ON item.inode = inode.number
            WHERE inode.number = ?
            """, [number.rawValue]
        ) { ([UInt8]($0[0] as Data), ($0[1] as Data?).map { [UInt8]($0) }) } ?? ([], nil)
    }

    /// From where on the remote can be asked what has changed in a directory; the root's may be for all.
    package func mark(ofDirectory number: InodeNumber) throws -> ChangeMark? {
        try one("SELECT changeMark FROM inode WHERE number = ?", [number.rawValue]) {
            ($0[0] as Data?).map { [UInt8]($0) }
        } ?? nil
    }

    /// Whether a directory holds so many items, or more.
    package func hasItems(_ count: Int, in number: InodeNumber) throws -> Bool {
        try one(
            "SELECT COUNT(*) FROM (SELECT 1 FROM item WHERE parent = ? LIMIT ?)", [number.rawValue, count]
        ) { ($0[0] as Int) >= count } ?? false
    }
}
