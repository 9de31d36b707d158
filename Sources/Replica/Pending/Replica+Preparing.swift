import FileProvider
import GRDB

/// Local changes as the provider is to be told of them.
extension Replica {
    /// An item with those of its changes that are to be sent now, as it is at this moment; nil when it is gone, or
    /// nothing of them is left.
    ///
    /// - Parameters:
    ///   - fields: what of its changes may be sent.
    ///   - name: another name than its own, to make room: in the directory that it is to be in.
    package func prepare(_ row: Int64, fields: ItemFields, as name: String? = nil) throws -> SentChange? {
        try database.read { db in
            guard let item = try db.item(id: row), !item.isExcluded, let kind = item.inode.kind.itemKind else {
                return nil
            }
            var sending = item.changedFields.intersection(fields)
            if name != nil { sending = sending.intersection(.parentItemIdentifier).union(.filename) }
            guard !sending.isEmpty else { return nil }
            let parent: ItemIdentifier
            if item.inode.number == .root {
                parent = .rootContainer
            } else {
                guard let identifier = try item.parent.flatMap({ try db.item(ofInode: $0)?.identifier }) else {
                    return nil
                }
                parent = identifier
            }
            let inode = item.inode
            let attributes = try db.extendedAttributes(of: inode.number)
            if item.identifier == nil, !attributes.isEmpty { sending.insert(.extendedAttributes) }
            let described = FileProviderItem(
                itemIdentifier: item.identifier ?? item.placeholder, parentItemIdentifier: parent,
                filename: name ?? item.name, kind: kind, itemVersion: item.base.version,
                capabilities: item.capabilities, documentSize: kind == .file ? inode.size : nil,
                creationDate: inode.createdAt, contentModificationDate: inode.modifiedAt,
                permissions: inode.permissions, owner: inode.owner, group: inode.group,
                symlinkTargetPath: kind == .symbolicLink ? try db.linkTarget(of: inode.number) : nil,
                extendedAttributes: kind == .symbolicLink ? nil : attributes, contentPolicy: item.policy)
            return SentChange(
                row: row, inode: inode.number, identifier: item.identifier, item: described, base: item.base.version,
                fields: sending, contentStamp: nil, isReplay: item.wasSent)
        }
    }

    /// A deletion that waits, or nil when it does not any more.
    package func deletion(_ id: Int64) throws -> PendingDeletion? {
        try database.pendingDeletions(after: id - 1, limit: 1).first { $0.id == id }
    }
}
