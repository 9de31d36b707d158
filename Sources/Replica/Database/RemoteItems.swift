import FileProvider
import Foundation
import GRDB

/// An item that the remote has in a directory, as the database knows it.
package struct KnownChild: Sendable {
    package var inode: InodeNumber
    package var name: String
    package var contentVersion: [UInt8]
    package var kind: InodeKind
    /// Whether something about it is on its way to the remote: what that says of it may be older or newer.
    package var isChanging: Bool
    /// Whether it has no name for now, because another takes its place.
    package var isHidden: Bool
}

extension ReplicaDatabase {
    package var remoteItems: RemoteItems { RemoteItems(database: self) }
}

/// The items of the remote, where and what they were when the provider last reported them.
package struct RemoteItems: Sendable {
    fileprivate let database: ReplicaDatabase

    /// The names from the remote's root down to an item, as the provider last gave them; also of one that was removed
    /// here and that the remote still has, or that is about to be read (``UnplacedItems``).
    package func path(of identifier: ItemIdentifier) throws -> [String]? {
        try path(of: identifier, from: .rootContainer)
    }

    func path(of identifier: ItemIdentifier, from top: ItemIdentifier) throws -> [String]? {
        try database.read { db in
            var names: [String] = []
            var current = identifier
            while current != top {
                let known = try db.one(
                    """
                    SELECT baseName, baseParent FROM item WHERE identifier = ?1
                    UNION ALL SELECT baseName, baseParent FROM deletion WHERE identifier = ?1
                    """, [current.rawValue], { ($0[0] as String?, $0[1] as String?) })
                let unplaced = known == nil ? database.unplacedItems.place(of: current) : nil
                guard let name = known?.0 ?? unplaced?.name, let parent = known?.1 ?? unplaced?.parent.rawValue else {
                    return nil
                }
                names.append(name)
                guard names.count <= Self.deepestPath else { return nil }
                current = ItemIdentifier(parent)
            }
            return names.reversed()
        }
    }

    /// The identifier of the item that the provider last placed under a name in a directory.
    package func identifier(ofChildNamed name: String, in directory: ItemIdentifier) throws -> ItemIdentifier? {
        try database.query { db in try Self.identifier(ofChildNamed: name, in: directory, db) }
    }

    /// Likewise for several names, in their order.
    package func identifiers(
        ofChildrenNamed names: [String], in directory: ItemIdentifier
    ) throws -> [ItemIdentifier?] {
        try database.read { db in try names.map { try Self.identifier(ofChildNamed: $0, in: directory, db) } }
    }

    private static func identifier(
        ofChildNamed name: String, in directory: ItemIdentifier, _ db: Database
    ) throws -> ItemIdentifier? {
        try db.one(
            """
            SELECT identifier FROM item WHERE baseParent = ?1 AND baseName = ?2 AND identifier IS NOT NULL
            UNION ALL SELECT identifier FROM deletion WHERE baseParent = ?1 AND baseName = ?2
            """, [directory.rawValue, name],
            { ($0[0] as String?).map(ItemIdentifier.init(rawValue:)) }) ?? nil
    }

    /// The items that the provider last placed in a directory, also those that are still to be deleted there. The root, which a provider
    /// may say is in itself, is none of them.
    package func items(in directory: ItemIdentifier) throws -> [KnownItem] {
        var items: [KnownItem] = []
        try visitItems(in: directory) { item in
            items.append(item)
            return true
        }
        return items
    }

    /// Calls a closure with each of them, until it returns false. The closure must not use the database.
    package func visitItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool) throws {
        try database.readCommitted { db in
            try db.query(
                """
                SELECT \(Self.knownColumns) FROM item WHERE baseParent = ?1 AND identifier <> ?1
                UNION ALL SELECT identifier, baseParent, baseName, baseContentVersion, 0 FROM deletion
                WHERE baseParent = ?1
                """, [directory.rawValue]
            ) { visit(Self.knownItem($0)) }
        }
    }

    /// Which of these identifiers are those of items, or of items that are still to be deleted on the remote.
    package func knownIdentifiers(among identifiers: [ItemIdentifier]) throws -> Set<ItemIdentifier> {
        try database.read { db in
            var known: Set<ItemIdentifier> = []
            for identifier in identifiers {
                let isKnown = try db.one(
                    "SELECT 1 FROM item WHERE identifier = ?1 UNION ALL SELECT 1 FROM deletion WHERE identifier = ?1",
                    [identifier.rawValue], { _ in true })
                if isKnown == true { known.insert(identifier) }
            }
            return known
        }
    }

    /// The version that the provider last gave to an item, also to one that is still to be deleted on the remote.
    package func version(of identifier: ItemIdentifier) throws -> ItemVersion? {
        try database.one(
            """
            SELECT baseContentVersion, baseMetadataVersion FROM item WHERE identifier = ?1
            UNION ALL SELECT baseContentVersion, baseMetadataVersion FROM deletion WHERE identifier = ?1
            """, [identifier.rawValue],
            {
                ItemVersion(contentVersion: [UInt8]($0[0] as Data), metadataVersion: [UInt8]($0[1] as Data))
            })
    }

    /// The items to which the provider last gave one of these content versions, of each at most
    /// ``KnownItem/mostOfOneVersion``.
    package func items(withContentVersions versions: [[UInt8]]) throws -> [KnownItem] {
        if versions.isEmpty { return [] }
        guard database.indexVersions() else { return try items(withVersionsAmong: Set(versions)) }
        return try database.read { db in
            try Set(versions).flatMap { version in
                try db.all(
                    """
                    SELECT \(Self.knownColumns) FROM item
                    WHERE baseContentVersion = ?1 AND baseContentVersion <> x'' AND identifier IS NOT NULL
                        AND baseParent IS NOT NULL
                    LIMIT \(KnownItem.mostOfOneVersion)
                    """, [Data(version)], Self.knownItem)
            }
        }
    }

    /// As ``items(withContentVersions:)``, in one pass over all items.
    private func items(withVersionsAmong versions: Set<[UInt8]>) throws -> [KnownItem] {
        try database.read { db in
            var found: [KnownItem] = []
            var counts: [[UInt8]: Int] = [:]
            try db.query(
                """
                SELECT \(Self.knownColumns) FROM item
                WHERE baseContentVersion <> x'' AND identifier IS NOT NULL AND baseParent IS NOT NULL
                """, []
            ) { row in
                let version = [UInt8](row[3] as Data)
                guard versions.contains(version), counts[version, default: 0] < KnownItem.mostOfOneVersion else {
                    return true
                }
                counts[version, default: 0] += 1
                found.append(Self.knownItem(row))
                return true
            }
            return found
        }
    }

    /// Which of these content versions items have that are still to be deleted on the remote.
    package func contentVersionsToBeDeleted(among versions: [[UInt8]]) throws -> Set<[UInt8]> {
        let wanted = Set(versions)
        var found: Set<[UInt8]> = []
        try database.readCommitted { db in
            try db.query("SELECT baseContentVersion FROM deletion", []) {
                let version = [UInt8]($0[0] as Data)
                if wanted.contains(version) { found.insert(version) }
                return true
            }
        }
        return found
    }

    private static let knownColumns = "identifier, baseParent, baseName, baseContentVersion, baseSize"

    private static func knownItem(_ row: Columns) -> KnownItem {
        KnownItem(
            itemIdentifier: ItemIdentifier(row[0] as String), parentItemIdentifier: ItemIdentifier(row[1] as String),
            filename: row[2], contentVersion: [UInt8](row[3] as Data), documentSize: row[4])
    }

    /// The items that the remote has in a directory, as it last reported, by identifier; and those to be deleted there.
    package func children(
        of directory: ItemIdentifier
    ) throws -> (children: [ItemIdentifier: KnownChild], doomed: Set<ItemIdentifier>) {
        try database.readCommitted { db in
            var children: [ItemIdentifier: KnownChild] = [:]
            try db.query(
                """
                SELECT item.identifier, item.inode, item.baseName, item.baseContentVersion, inode.kind,
                    item.changedFields <> 0 OR item.wasSent <> 0, NOT \(Displacement.isNotDisplaced)
                FROM item JOIN inode ON inode.number = item.inode
                WHERE item.baseParent = ? AND item.identifier IS NOT NULL AND item.inode <> \(inode: .root)
                """, [directory.rawValue]
            ) { row in
                children[ItemIdentifier(rawValue: row[0])] = KnownChild(
                    inode: InodeNumber(rawValue: row[1]), name: row[2], contentVersion: [UInt8](row[3]),
                    kind: InodeKind(rawValue: row[4]) ?? .file, isChanging: row[5], isHidden: row[6])
                return true
            }
            let doomed = try db.all(
                "SELECT identifier FROM deletion WHERE baseParent = ?", [directory.rawValue],
                { ItemIdentifier(rawValue: $0[0]) })
            return (children, Set(doomed))
        }
    }

    /// Whether an item that the remote has in a directory may have to wait until something of its name was sent: what was made or
    /// changed here and has the name there, or the removal of what had it.
    package func isHeldBack(_ name: String, in directory: ItemIdentifier) throws -> Bool {
        try database.readCommitted { db in
            try db.one(
                """
                SELECT EXISTS (SELECT 1 FROM item JOIN item AS above ON above.inode = item.parent
                        JOIN inode ON inode.number = item.inode
                    WHERE above.identifier = ?1 AND item.name = ?2 AND item.isExcluded = \(exclusion: .none)
                        AND (item.identifier IS NULL OR item.changedFields <> 0 OR item.wasSent <> 0
                            OR inode.contentStamp IS NOT NULL))
                    OR EXISTS (SELECT 1 FROM deletion WHERE baseParent = ?1 AND baseName = ?2)
                """, [directory.rawValue, name], { $0[0] as Bool }) ?? false
        }
    }

    /// The names from the trash down to an item that is trashed on the remote, or lies below one that is.
    package func trashPath(of identifier: ItemIdentifier) throws -> [String]? {
        try path(of: identifier, from: .trashContainer)
    }

    /// The items that the remote had in its trash when it was last heard of them, and that are not among these.
    package func trashedItems(otherThan identifiers: Set<ItemIdentifier>) throws -> [ItemIdentifier] {
        try database.all(
            "SELECT identifier FROM item WHERE baseParent = ? AND identifier IS NOT NULL",
            [ItemIdentifier.trashContainer.rawValue], { ItemIdentifier(rawValue: $0[0]) }
        ).filter { !identifiers.contains($0) }
    }

    /// No path on Linux has more components; a longer one means a cycle.
    private static let deepestPath = 4096
}
