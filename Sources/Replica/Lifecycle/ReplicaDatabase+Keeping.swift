import FileProvider
import Foundation
import SystemPackage

extension ReplicaDatabase {
    func hasContentFile(_ number: InodeNumber) throws -> Bool { try read { db in try db.hasContentFile(number) } }

    /// How much would be lost if the replica were: what the remote has not got, and what stays on this machine.
    package func unsyncedItems() throws -> Int {
        try one(
            """
            SELECT (SELECT COUNT(*) FROM item JOIN inode ON inode.number = item.inode WHERE \(Self.work))
                + (SELECT COUNT(*) FROM item WHERE \(Self.hasNoDirectory) AND \(Self.mayHaveWork))
                + (SELECT COUNT(*) FROM deletion)
            """, [], { $0[0] as Int }) ?? 0
    }

    /// The items that lie in no directory: the remote has moved them into one that is not known here. What is below them is
    /// shown nowhere either, and may be work of this machine's.
    func itemsWithoutDirectory() throws -> [ItemRecord] {
        try read { db in
            try db.all("SELECT id FROM item WHERE \(Self.hasNoDirectory)", [], { $0[0] as Int64 }).compactMap {
                try db.item(id: $0)
            }
        }
    }

    private static let hasNoDirectory = "parent IS NULL AND inode <> \(inode: .root)"

    private static let mayHaveWork = """
        (changedFields & \(field: .contents) OR identifier IS NULL OR isExcluded <> \(exclusion: .none))
        """

    /// The directories in which there is work of this machine's, and those above them.
    func directoriesWithWork() throws -> Set<Int64> {
        try read { db in
            var directories: Set<Int64> = []
            let parents = try db.all(
                "SELECT DISTINCT item.parent FROM item JOIN inode ON inode.number = item.inode WHERE \(Self.work)", [],
                { $0[0] as Int64? })
            for parent in try parents + db.directoriesWithGone() {
                var current = parent
                while let directory = current, directories.insert(directory).inserted {
                    current = try db.item(ofInode: InodeNumber(rawValue: directory))?.parent?.rawValue
                }
            }
            return directories
        }
    }

    private static let work = """
        item.parent IS NOT NULL AND item.trashRole = \(trash: .none)
            AND item.parent NOT IN (SELECT inode FROM item AS place WHERE place.trashRole = \(trash: .information))
            AND (item.changedFields <> 0 OR item.isExcluded <> \(exclusion: .none) OR item.identifier IS NULL
                AND item.reimport <= 0
                OR item.reimport > 0 AND inode.content = \(content: .materialized) AND inode.kind = \(kind: .file))
        """

    func describeForManifest(_ item: ItemRecord, at path: String, isHere: Bool) throws -> Manifest.Item {
        try read { db in
            let more = try db.one(
                "SELECT favoriteRank, tagData, userPolicy, conflictOf FROM item WHERE id = ?", [item.id],
                { ($0[0] as Int64?, $0[1] as Data?, $0[2] as Int?, $0[3] as String?) })
            let inode = item.inode
            let name = path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? path
            var remoteDirectory: String?
            if item.changedFields.contains(.parentItemIdentifier), let parent = item.base.parent,
                let directory = try db.known(parent)?.inode.number
            {
                remoteDirectory = try db.path(of: directory)?.joined(separator: "/")
            }
            let isKnown = item.identifier != nil || item.isToBeOffered && item.base.name != nil
            let attributes = try db.extendedAttributes(of: inode.number)
            return Manifest.Item(
                path: path, kind: inode.kind.rawValue, size: inode.size, isHere: isHere,
                identifier: isKnown ? item.identifier?.rawValue ?? "" : nil,
                remoteName: item.base.name.flatMap { $0.utf8.elementsEqual(name.utf8) ? nil : $0 },
                remoteDirectory: remoteDirectory, changedFields: item.changedFields.rawValue,
                heldFields: item.heldFields.rawValue, isExcluded: item.isExcluded,
                contentVersion: isKnown ? Data(item.base.version.contentVersion) : nil,
                metadataVersion: isKnown ? Data(item.base.version.metadataVersion) : nil,
                remoteSize: isKnown ? item.base.size : nil,
                remoteModified: isKnown ? item.base.modifiedAt?.nanosecondsSince1970 : nil,
                permissions: inode.permissions, owner: inode.owner, group: inode.group,
                modified: inode.modifiedAt.nanosecondsSince1970, created: inode.createdAt.nanosecondsSince1970,
                accessed: inode.accessedAt?.nanosecondsSince1970, linkTarget: try db.linkTarget(of: inode.number),
                device: inode.device == 0 ? nil : inode.device,
                attributes: attributes.isEmpty ? nil : attributes.mapValues { Data($0) },
                link: inode.linkCount > 1 && inode.kind != .directory ? inode.number.rawValue : nil,
                userPolicy: more?.2, conflictOf: more?.3, favoriteRank: more?.0, tagData: more?.1)
        }
    }
}

extension Replica {
    /// The amount of data that would be lost with the replica.
    package func unsynced() throws -> UnsyncedSummary {
        UnsyncedSummary(
            items: try database.unsyncedItems(),
            recovered: try FileManager.default.contentsOfDirectory(atPath: contents.recovered.string).count)
    }
}
