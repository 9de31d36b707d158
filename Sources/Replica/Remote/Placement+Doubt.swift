import FileProvider

/// Content that may have been written on the remote without another version.
extension Placement {
    /// Whether the content that is here may be that of an earlier version with the same name.
    enum Doubt {
        case none
        /// The file is not whole here: more bytes may be those of another version.
        case isPartial
        /// The bytes have to be compared, or were changed here.
        case remains
    }

    /// A metadata version that changed without anything that shows why may be that of a file that was written.
    func doubt(of known: ItemRecord, seeing item: FileProviderItem) throws -> Doubt {
        let (inode, old, new) = (known.inode, known.base.version, item.itemVersion)
        let isUnsent = known.changedFields.contains(.contents)
        guard transaction.versionsMayRepeat, inode.kind == .file, inode.content != .dataless || isUnsent,
            // Two contents without bytes are equal, and such a file may have no content file that could be compared.
            known.base.size > 0 || item.documentSize != 0,
            new.contentVersion == old.contentVersion, new.metadataVersion != old.metadataVersion,
            known.base.parent == item.parentItemIdentifier,
            known.base.name?.utf8.elementsEqual(item.filename.utf8) == true
        else { return .none }
        let local = known.localFields
        if !local.contains(.permissions), let permissions = item.permissions,
            permissions & 0o7777 != inode.permissions
        {
            return .none
        }
        if !local.contains(.ownership),
            item.owner ?? inode.owner != inode.owner || item.group ?? inode.group != inode.group
        {
            return .none
        }
        if !local.contains(.extendedAttributes), let attributes = item.extendedAttributes,
            try attributes != db.extendedAttributes(of: inode.number)
        {
            return .none
        }
        return inode.content == .partial && !isUnsent ? .isPartial : .remains
    }
}
