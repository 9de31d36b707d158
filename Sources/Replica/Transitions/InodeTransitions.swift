import FileNames
import FileProvider
import Foundation
import GRDB

/// Inodes: made, linked, unlinked, deleted.
///
/// The number of an inode's items and its `linkCount` change in one transaction; each transition here says which of
/// the two its caller still owes.
extension Database {
    /// Inserts the inode of a local creation.
    ///
    /// The row counts one link: the caller inserts its item, or takes the link back (``unlink(_:at:)``).
    ///
    /// - Parameter number: one that was reserved; nil for the next.
    func insertInode(_ creation: Creation, as number: InodeNumber? = nil) throws -> InodeNumber {
        try run(InodeStatement.create, creation.inodeValues(number))
        return number ?? InodeNumber(rawValue: lastInsertedRowID)
    }

    /// Inserts the inode of an item of the remote's: dataless, unless it is an empty file or a link. It counts the link
    /// of the item that the caller inserts.
    ///
    /// - Parameter number: of an inode that was deleted (``isFreed(_:)``); nil for the next.
    func insertInode(
        of item: FileProviderItem, as number: InodeNumber? = nil, at now: FileTimestamp
    ) throws -> InodeNumber {
        let modifiedAt = item.contentModificationDate ?? item.creationDate ?? now
        let isLink = item.kind == .symbolicLink
        let size =
            isLink
            ? Int64(item.symlinkTargetPath.map(FileNameText.byteCount) ?? 0)
            : max(0, min(item.documentSize ?? 0, FileProviderItem.maximumDocumentSize))
        let content: ContentState = isLink || size == 0 && item.kind == .file ? .materialized : .dataless
        try run(
            """
            INSERT INTO inode (number, kind, size, permissions, owner, "group", modifiedAt, changedAt, createdAt,
                linkTarget, contentVersion, content, contentGeneration)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                number?.rawValue, item.kind.rawValue, size, item.permissions.map { Int64($0 & 0o7777) },
                item.owner.map { Int64($0) },
                item.group.map { Int64($0) }, modifiedAt.nanosecondsSince1970, modifiedAt.nanosecondsSince1970,
                (item.creationDate ?? modifiedAt).nanosecondsSince1970, item.symlinkTargetPath,
                Data(item.itemVersion.contentVersion), content.rawValue,
                // Larger than every generation that the number had: a transfer of the deleted inode records nothing.
                number == nil ? 0 : now.nanosecondsSince1970,
            ])
        return InodeNumber(rawValue: lastInsertedRowID)
    }

    /// Whether a number is that of an inode that has been deleted.
    func isFreed(_ number: InodeNumber) throws -> Bool {
        try one(
            """
            SELECT ?1 > \(inode: .root) AND seq >= ?1 AND NOT EXISTS (SELECT 1 FROM inode WHERE number = ?1)
            FROM main.sqlite_sequence WHERE name = 'inode'
            """, [number.rawValue], { $0[0] as Bool }) ?? false
    }

    /// Inserts the inode of an imported item, which keeps the dates it had. It counts the link of the item that the
    /// caller inserts.
    func insertInode(of item: Manifest.Item, _ kind: InodeKind, isHere: Bool) throws -> InodeNumber {
        let hasFile = kind == .file && isHere
        try run(
            """
            INSERT INTO inode (kind, size, permissions, owner, "group", modifiedAt, changedAt, createdAt, accessedAt,
                linkTarget, device, content, contentVersion, hasContentFile, localBytes)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                item.kind, item.size, item.permissions.map { Int64($0) }, item.owner.map { Int64($0) },
                item.group.map { Int64($0) }, item.modified, FileTimestamp.now.nanosecondsSince1970, item.created,
                item.accessed, item.linkTarget, Int64(item.device ?? 0),
                (isHere ? ContentState.materialized : .dataless).rawValue, item.contentVersion ?? Data(), hasFile,
                hasFile ? item.size : 0,
            ])
        let number = InodeNumber(rawValue: lastInsertedRowID)
        for (name, value) in item.attributes ?? [:] { try setExtendedAttribute(name, of: number, to: [UInt8](value)) }
        return number
    }

    /// Inserts a dataless inode with the attributes of an item's own, for another version of its content. It counts the
    /// link of the item that the caller moves to it (``setInode(of:to:)``).
    func copyInode(of item: ItemRecord, size: Int64, version: [UInt8], at now: FileTimestamp) throws -> InodeNumber {
        try run(
            """
            INSERT INTO inode (kind, size, permissions, owner, "group", modifiedAt, changedAt, createdAt, linkTarget,
                contentVersion, content)
            SELECT kind, ?, permissions, owner, "group", ?, ?, createdAt, linkTarget, ?, ? FROM inode WHERE number = ?
            """,
            [
                size, (item.base.modifiedAt ?? item.inode.modifiedAt).nanosecondsSince1970, now.nanosecondsSince1970,
                Data(version), (size == 0 ? ContentState.materialized : .dataless).rawValue,
                item.inode.number.rawValue,
            ])
        let number = InodeNumber(rawValue: lastInsertedRowID)
        try run(
            """
            INSERT INTO extendedAttribute (inode, name, value)
            SELECT ?, name, value FROM extendedAttribute WHERE inode = ?
            """, [number.rawValue, item.inode.number.rawValue])
        return number
    }

    /// Counts one more item of an inode.
    func link(_ number: InodeNumber, at now: FileTimestamp) throws {
        try run(InodeStatement.link, [now.nanosecondsSince1970, number.rawValue])
    }

    /// Counts one item of an inode less. An inode without items stays in use or is deleted by the caller.
    func unlink(_ number: InodeNumber, at now: FileTimestamp) throws {
        try run(InodeStatement.unlink, [now.nanosecondsSince1970, number.rawValue])
    }

    /// Deletes an inode that has no items and no children. Any other stays.
    ///
    /// - Returns: whether it was deleted.
    @discardableResult
    func deleteNameless(_ number: InodeNumber) throws -> Bool {
        try run(
            """
            DELETE FROM inode WHERE number = ?1 AND linkCount = 0
                AND NOT EXISTS (SELECT 1 FROM item WHERE parent = ?1 OR inode = ?1)
            """, [number.rawValue])
        return changesCount > 0
    }
}

/// Statements that run for each creation and removal.
private enum InodeStatement {
    static let create = """
        INSERT INTO inode (number, kind, size, permissions, owner, "group", modifiedAt, changedAt, createdAt,
            accessedAt, linkTarget, device, content, hasContentFile, contentStamp)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \(content: .materialized), ?, ?)
        """
    static let link = "UPDATE inode SET linkCount = linkCount + 1, changedAt = ? WHERE number = ?"
    /// Of several names each has a version of its own; of a single one the inode has the version.
    static let unlink = """
        UPDATE inode SET linkCount = linkCount - 1, changedAt = ?1, contentVersion =
            CASE linkCount WHEN 2 THEN COALESCE(
                (SELECT baseContentVersion FROM item WHERE inode = ?2 AND identifier IS NOT NULL
                    AND changedFields & \(field: .contents) = 0 LIMIT 1), contentVersion)
            ELSE contentVersion END
        WHERE number = ?2
        """
}
