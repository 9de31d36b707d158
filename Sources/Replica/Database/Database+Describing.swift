import FileProvider
import Foundation
import GRDB

/// Items as providers and users of the API see them: the local side of a row.
extension Database {
    /// An item as it is here; nil for what no remote knows, FIFOs, sockets and devices.
    func describe(_ item: ItemRecord) throws -> FileProviderItem? {
        guard let kind = item.inode.kind.itemKind else { return nil }
        let inode = item.inode
        let isRoot = inode.number == .root
        let parent = try item.parent.flatMap { try self.item(ofInode: $0) }
        let ranks = try one(
            "SELECT favoriteRank, tagData FROM item WHERE id = ?", [item.id],
            { ($0[0] as Int64?, ($0[1] as Data?).map { [UInt8]($0) }) })
        var childCount: Int?
        if kind == .directory, inode.content == .materialized {
            childCount = try one(
                "SELECT COUNT(*) FROM item WHERE parent = ?", [inode.number.rawValue], { $0[0] as Int })
        }
        return FileProviderItem(
            itemIdentifier: item.identifier ?? item.placeholder,
            parentItemIdentifier: isRoot
                ? .rootContainer : parent.map { $0.identifier ?? $0.placeholder } ?? .rootContainer,
            filename: item.ownName, kind: kind, itemVersion: item.base.version, capabilities: item.capabilities,
            documentSize: kind == .file ? inode.size : nil, childItemCount: childCount, creationDate: inode.createdAt,
            contentModificationDate: inode.modifiedAt, lastUsedDate: inode.accessedAt, permissions: inode.permissions,
            owner: inode.owner, group: inode.group,
            symlinkTargetPath: kind == .symbolicLink ? try linkTarget(of: inode.number) : nil,
            extendedAttributes: kind == .symbolicLink ? nil : try extendedAttributes(of: inode.number),
            contentPolicy: item.policy, favoriteRank: ranks?.0, tagData: ranks?.1)
    }

    /// The item with an identifier: the provider's, or the one that a new item has until the provider has given one.
    func known(_ identifier: ItemIdentifier) throws -> ItemRecord? {
        let prefix = ItemRecord.placeholderPrefix
        guard identifier.rawValue.utf8.starts(with: prefix.utf8) else { return try item(identifier) }
        let parts = identifier.rawValue.dropFirst(prefix.count).split(separator: ".").map { Int64($0, radix: 16) }
        guard parts.count == 2, let id = parts[0], let item = try item(id: id), item.template == parts[1] else {
            return nil
        }
        return item
    }
}

extension ReplicaDatabase {
    /// An item as it is here, by its identifier or by the one it has until the provider has given one.
    package func describe(_ identifier: ItemIdentifier) throws -> FileProviderItem? {
        try read { db in try db.known(identifier).flatMap { try db.describe($0) } }
    }

    /// The name of the item that a conflict copy is a copy of; nil for any other item, as in ``conflictCopies()``.
    package func originalName(ofConflictCopy item: ItemRecord) throws -> String? {
        try one(
            "SELECT conflictOf FROM item WHERE id = ? AND conflictOf <> name AND trashedAt IS NULL", [item.id],
            { $0[0] as String? }) ?? nil
    }

    /// The marks that users give an item beside its attributes.
    package func marks(of item: ItemRecord) throws -> (favoriteRank: Int64?, tagData: Data?) {
        try one(
            "SELECT favoriteRank, tagData FROM item WHERE id = ?", [item.id],
            { (favoriteRank: $0[0] as Int64?, tagData: $0[1] as Data?) }) ?? (nil, nil)
    }

    /// The item with an identifier, or with the one that it had until the provider gave it one.
    package func known(_ identifier: ItemIdentifier) throws -> ItemRecord? {
        try read { db in try db.known(identifier) }
    }
}
