import FileProvider
import Foundation
import GRDB

/// Items: inserted and deleted.
///
/// Precondition of each insertion: the directory exists and shows no item of the name. The caller has counted the link on
/// the inode.
extension Database {
    /// Inserts a file, directory, link or node that was made here, with its inode. The times of its directory stay.
    ///
    /// - Parameter number: one that was reserved; nil for the next.
    func insert(_ creation: Creation, as number: InodeNumber? = nil) throws -> (number: InodeNumber, row: Int64) {
        let number = try insertInode(creation, as: number)
        return (number, try insert(creation.item, of: number))
    }

    /// Inserts an item that was made here. It is pending with all fields of a new item, unless it is excluded.
    @discardableResult
    func insert(_ item: NewItem, of number: InodeNumber) throws -> Int64 {
        try run(
            """
            INSERT INTO item (inode, parent, name, capabilities, changedFields, template, isExcluded, pendingSince,
                trashRole) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                number.rawValue, item.parent.rawValue, item.name, Int64(item.capabilities.rawValue),
                Int64(ItemFields.ofNewItem(item.kind).rawValue), item.template,
                (item.kind.itemKind == nil ? .unwanted : item.exclusion).rawValue, item.madeAt.nanosecondsSince1970,
                item.role.rawValue,
            ])
        let row = lastInsertedRowID
        if item.kind == .directory { try setIsDirectory(of: row, to: true) }
        if item.kind == .file { try keepPinned(row, named: item.name, in: item.parent) }
        return row
    }

    /// Inserts an item of the remote's, with nothing pending.
    ///
    /// - Parameter name: under which it is shown.
    func insert(
        _ item: FileProviderItem, of number: InodeNumber, in parent: InodeNumber, named name: String
    ) throws -> Int64 {
        try run(
            """
            INSERT INTO item (inode, parent, name, identifier, capabilities, policy, baseParent, baseName,
                baseContentVersion, baseMetadataVersion, baseSize, baseModifiedAt)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                number.rawValue, parent.rawValue, name, item.itemIdentifier.rawValue, Int64(item.capabilities.rawValue),
                item.contentPolicy.rawValue, item.parentItemIdentifier.rawValue, item.filename,
                Data(item.itemVersion.contentVersion), Data(item.itemVersion.metadataVersion), item.documentSize ?? 0,
                item.contentModificationDate?.nanosecondsSince1970,
            ])
        let row = lastInsertedRowID
        if item.kind == .directory { try setIsDirectory(of: row, to: true) }
        return row
    }

    /// Inserts an item of the trash's own, with its inode: it is excluded, and never pending.
    func insertTrashItem(
        _ name: String, in parent: InodeNumber, kind: InodeKind, permissions: UInt16, size: Int64, role: TrashRole,
        owner: UInt32, group: UInt32, at now: FileTimestamp
    ) throws -> InodeNumber {
        let time = now.nanosecondsSince1970
        try run(
            """
            INSERT INTO inode (kind, size, permissions, owner, "group", modifiedAt, changedAt, createdAt, content,
                localBytes, hasContentFile) VALUES (?, ?, ?, ?, ?, ?, ?, ?, \(content: .materialized), ?, ?)
            """,
            [
                kind.rawValue, size, Int64(permissions), Int64(owner), Int64(group), time, time, time, size,
                kind == .file,
            ])
        let number = InodeNumber(rawValue: lastInsertedRowID)
        try run(
            """
            INSERT INTO item (inode, parent, name, capabilities, template, isExcluded, trashRole)
            VALUES (?, ?, ?, ?, ?, \(exclusion: .unwanted), ?)
            """,
            [
                number.rawValue, parent.rawValue, name, Int64(ItemCapabilities.ordinary.rawValue),
                ItemRecord.newTemplate(), role.rawValue,
            ])
        if kind == .directory { try setIsDirectory(of: lastInsertedRowID, to: true) }
        return number
    }

    /// Inserts the local content of an inode as a new item beside the one whose content it was. It is pending.
    ///
    /// - Parameter original: the name of that item; nil when the remote has removed it, so that nothing is in conflict.
    func insertConflictCopy(
        of number: InodeNumber, original: String?, named name: String, in parent: InodeNumber, collisions: Int64 = 0,
        pendingSince time: FileTimestamp
    ) throws {
        try run(
            """
            INSERT INTO item
                (inode, parent, name, capabilities, changedFields, template, pendingSince, conflictOf, collisions)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                number.rawValue, parent.rawValue, name, Int64(ItemCapabilities.ordinary.rawValue),
                Int64(ItemFields.ofNewItem(.file).rawValue), ItemRecord.newTemplate(), time.nanosecondsSince1970,
                original, collisions,
            ])
    }

    /// Inserts an imported item: without an identifier, and to be offered to the provider in the first reimport unless it
    /// is excluded.
    func insertImported(
        _ item: Manifest.Item, _ kind: InodeKind, of number: InodeNumber, in parent: InodeNumber, named name: String,
        remoteName: String
    ) throws -> Int64 {
        // Whether a file still has a name that is not sent is found out when the domain is mounted.
        let exclusion: Exclusion = !item.isExcluded ? .none : kind.itemKind == nil ? .unwanted : .name
        try run(
            """
            INSERT INTO item (inode, parent, name, capabilities, baseName, baseContentVersion, baseMetadataVersion,
                baseSize, baseModifiedAt, changedFields, heldFields, template, isExcluded, pendingSince, userPolicy,
                conflictOf, favoriteRank, tagData, reimport)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                number.rawValue, parent.rawValue, name, Int64(ItemCapabilities.ordinary.rawValue),
                item.identifier == nil ? nil : remoteName, item.contentVersion ?? Data(),
                item.metadataVersion ?? Data(), item.remoteSize ?? 0, item.remoteModified, Int64(item.changedFields),
                Int64(item.heldFields), ItemRecord.newTemplate(), exclusion.rawValue,
                item.changedFields == 0 ? nil : FileTimestamp.now.nanosecondsSince1970, item.userPolicy,
                item.conflictOf,
                item.favoriteRank, item.tagData, item.isExcluded ? 0 : 1,
            ])
        let row = lastInsertedRowID
        if kind == .directory { try setIsDirectory(of: row, to: true) }
        return row
    }

    /// Deletes an item's row. The caller unlinks its inode (``unlink(_:at:)``) or has given that another item.
    func deleteItem(_ item: ItemRecord) throws {
        if item.inode.kind == .directory { try setIsDirectory(of: item.id, to: false) }
        try run("DELETE FROM item WHERE id = ?", [item.id])
    }

    /// Marks the row of a directory, which counts in its parent's link count from then on; or takes the mark away before
    /// the row is deleted.
    ///
    /// No trigger does this with the insertion or deletion itself: SQLite copies each page that a statement with a trigger
    /// changes, which takes longer than all indexes of the row.
    func setIsDirectory(of row: Int64, to isDirectory: Bool) throws {
        try run("UPDATE item SET isDirectory = ? WHERE id = ?", [isDirectory, row])
    }

    /// Moves an item to a row of its own, which no request under way knows: their answers find the old row gone. The
    /// remote's side of the item stays with the old row.
    func moveToNewRow(_ item: ItemRecord) throws -> Int64 {
        try run(
            """
            INSERT INTO item (inode, parent, name, capabilities, changedFields, heldFields, template, pendingSince,
                userPolicy, conflictOf, favoriteRank, tagData, trashedAt, trashParent, trashAncestors, trashName)
            SELECT inode, parent, ?, capabilities, changedFields, heldFields, template, pendingSince,
                userPolicy, conflictOf, favoriteRank, tagData, trashedAt, trashParent, trashAncestors, trashName
            FROM item WHERE id = ?
            """, [Displacement.name(forItem: -item.id), item.id])
        let row = lastInsertedRowID
        if item.inode.kind == .directory { try setIsDirectory(of: row, to: true) }
        try deleteItem(item)
        try setName(of: row, to: item.name)
        return row
    }
}
