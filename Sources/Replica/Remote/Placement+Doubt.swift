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

    /// A metadata version that changed without anything that shows why may be that of a file that was written. Where the content was doubted
    /// before, a later change that attributes explain does not end that.
    func doubt(of known: ItemRecord, seeing item: FileProviderItem) throws -> Doubt {
        let (inode, old, new) = (known.inode, known.base.version, item.itemVersion)
        let isUnsent = known.changedFields.contains(.contents)
        guard transaction.versionsMayRepeat, inode.kind == .file, inode.content != .dataless || isUnsent,
            // Two contents without bytes are equal, and such a file may have no content file that could be compared.
            known.base.size > 0 || item.documentSize != 0,
            new.contentVersion == old.contentVersion, new.metadataVersion != old.metadataVersion
        else { return .none }
        guard try old.isContentDoubted || !isExplained(known, item) else { return .none }
        return inode.content == .partial && !isUnsent ? .isPartial : .remains
    }

    /// Whether its place or an attribute shows why an item has another metadata version.
    private func isExplained(_ known: ItemRecord, _ item: FileProviderItem) throws -> Bool {
        guard known.base.parent == item.parentItemIdentifier,
            known.base.name?.utf8.elementsEqual(item.filename.utf8) == true
        else { return true }
        let inode = known.inode
        let local = known.localFields
        if !local.contains(.permissions), let permissions = item.permissions,
            permissions & 0o7777 != inode.permissions
        {
            return true
        }
        if !local.contains(.ownership),
            item.owner ?? inode.owner != inode.owner || item.group ?? inode.group != inode.group
        {
            return true
        }
        guard !local.contains(.extendedAttributes), let attributes = item.extendedAttributes else { return false }
        return try attributes != db.extendedAttributes(of: inode.number)
    }
}

extension ItemVersion {
    /// Begins the metadata version of a base whose content may have been written on the remote since, also where providers are told of it
    /// (``ProviderFeatures/contentVersionsMayRepeat``).
    private static let mark = UInt8(ascii: "?")

    /// Whether the content of a base is to be compared with the remote's.
    package var isContentDoubted: Bool { metadataVersion.first == Self.mark }

    /// The metadata version of a base whose content is to be compared. It is durable: what is changed later must not hide that.
    var doubtedMetadataVersion: [UInt8] {
        isContentDoubted || metadataVersion.isEmpty ? metadataVersion : [Self.mark] + metadataVersion
    }
}
