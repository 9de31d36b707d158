import FileProvider
import Foundation

/// How rows become values: columns by position, because listings decode many.
enum Rows {
    static let inodeColumns = """
        inode.number, inode.kind, inode.size, inode.permissions, inode.owner, inode."group", inode.linkCount, \
        inode.modifiedAt, inode.changedAt, inode.createdAt, inode.content, inode.contentVersion, \
        inode.contentGeneration, inode.localBytes, inode.accessedAt, inode.device, inode.subdirectories, \
        inode.contentStamp, inode.hasUnusualAllocation
        """
    static let inodeColumnCount = 19

    /// For the remote a directory of trashed items is the trash, whosever it is.
    static let identifier = "CASE item.trashRole WHEN \(trash: .files) THEN 'yonder.trash' ELSE item.identifier END"

    static let itemColumns = """
        item.id, item.parent, item.name, \(identifier), \
        item.capabilities, COALESCE(item.userPolicy, item.policy), item.baseParent, \
        item.baseName, item.baseContentVersion, item.baseMetadataVersion, item.baseSize, item.baseModifiedAt, \
        item.changedFields, item.heldFields, item.template, item.wasSent, item.isExcluded, \
        item.trashRole, item.trashedAt, item.trashParent, item.trashAncestors, item.trashName, item.reimport, \
        item.conflictOf
        """

    /// The columns of ``inodeColumns`` and those of the item that a ``DirectoryRecord`` has.
    static let directoryColumns =
        inodeColumns + ", item.capabilities, item.changedFields, item.isExcluded, item.trashRole"

    static func inode(_ row: Columns, at first: Int = 0) throws -> InodeRecord {
        let kind: Int = row[first + 1]
        let content: Int = row[first + 10]
        guard let kind = InodeKind(rawValue: kind), let content = ContentState(rawValue: content) else {
            throw ReplicaDefect(
                "inode row \(row[first] as Int64) holds a kind or state that this version does not know")
        }
        let version: [UInt8] = row.bytes(first + 11)
        return InodeRecord(
            number: InodeNumber(rawValue: row[first]), kind: kind, size: row[first + 2],
            permissions: (row[first + 3] as Int?).map { UInt16(truncatingIfNeeded: $0) },
            owner: (row[first + 4] as Int64?).map { UInt32(truncatingIfNeeded: $0) },
            group: (row[first + 5] as Int64?).map { UInt32(truncatingIfNeeded: $0) },
            linkCount: row[first + 6], modifiedAt: FileTimestamp(nanosecondsSince1970: row[first + 7]),
            changedAt: FileTimestamp(nanosecondsSince1970: row[first + 8]),
            createdAt: FileTimestamp(nanosecondsSince1970: row[first + 9]),
            accessedAt: (row[first + 14] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:)),
            device: UInt32(truncatingIfNeeded: row[first + 15] as Int64), subdirectories: row[first + 16],
            content: content, contentVersion: version, contentGeneration: row[first + 12],
            localBytes: row[first + 13], contentStamp: row[first + 17], hasUnusualAllocation: row[first + 18])
    }

    /// The columns of ``inodeColumns`` and then those of ``itemColumns``.
    static func item(_ row: Columns) throws -> ItemRecord {
        let first = inodeColumnCount
        return ItemRecord(
            id: row[first], inode: try inode(row),
            parent: (row[first + 1] as Int64?).map(InodeNumber.init(rawValue:)), name: row[first + 2],
            identifier: (row[first + 3] as String?).map(ItemIdentifier.init(rawValue:)),
            capabilities: ItemCapabilities(rawValue: UInt32(truncatingIfNeeded: row[first + 4] as Int64)),
            policy: ContentPolicy(rawValue: row[first + 5]) ?? .inherited,
            base: ItemBase(
                parent: (row[first + 6] as String?).map(ItemIdentifier.init(rawValue:)), name: row[first + 7],
                version: ItemVersion(
                    contentVersion: row.bytes(first + 8),
                    metadataVersion: row.bytes(first + 9)),
                size: row[first + 10],
                modifiedAt: (row[first + 11] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:))),
            changedFields: ItemFields(rawValue: UInt32(truncatingIfNeeded: row[first + 12] as Int64)),
            heldFields: ItemFields(rawValue: UInt32(truncatingIfNeeded: row[first + 13] as Int64)),
            template: row[first + 14], wasSent: row[first + 15], isExcluded: row[first + 16],
            trashRole: TrashRole(rawValue: row[first + 17]) ?? .none, trash: trashPlace(row, at: first + 18),
            reimport: row[first + 22], conflictOf: row[first + 23])
    }

    /// The columns of ``directoryColumns``, of an inode of any kind.
    static func directory(_ row: Columns) throws -> DirectoryRecord {
        let first = inodeColumnCount
        return DirectoryRecord(
            inode: try inode(row),
            capabilities: ItemCapabilities(rawValue: UInt32(truncatingIfNeeded: row[first] as Int64)),
            changedFields: ItemFields(rawValue: UInt32(truncatingIfNeeded: row[first + 1] as Int64)),
            exclusion: Exclusion(rawValue: row[first + 2]) ?? .none,
            trashRole: TrashRole(rawValue: row[first + 3]) ?? .none)
    }

    private static func trashPlace(_ row: Columns, at first: Int) -> TrashPlace? {
        guard let date = row[first] as Int64? else { return nil }
        return TrashPlace(
            date: FileTimestamp(nanosecondsSince1970: date),
            parent: (row[first + 1] as String?).map(ItemIdentifier.init(rawValue:)),
            ancestors: TrashPlace.ancestors(in: (row[first + 2] as String?) ?? ""),
            name: (row[first + 3] as String?) ?? "")
    }
}

extension PendingDeletion {
    static let columns = """
        id, identifier, kind, baseParent, baseName, baseContentVersion, baseMetadataVersion, pendingSince, attempts, \
        nextTry, code, message, isToBeFound, inode
        """

    init(_ row: Columns) {
        id = row[0]
        identifier = ItemIdentifier(rawValue: row[1])
        kind = InodeKind(rawValue: row[2]) ?? .file
        parent = ItemIdentifier(rawValue: row[3])
        name = row[4]
        version = ItemVersion(
            contentVersion: [UInt8](row[5] as Data), metadataVersion: [UInt8](row[6] as Data))
        since = FileTimestamp(nanosecondsSince1970: row[7])
        attempts = row[8]
        nextTry = (row[9] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:))
        code = row[10]
        message = row[11]
        isToBeFound = row[12]
        inode = (row[13] as Int64?).map(InodeNumber.init(rawValue:))
    }
}
