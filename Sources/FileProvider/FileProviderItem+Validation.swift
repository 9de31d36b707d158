import FileNames

/// Something wrong with an item that a provider gave. Such an item is not shown, and reported.
public struct ItemDefect: Error, Hashable, Sendable, CustomStringConvertible {
    public let description: String
}

extension FileProviderItem {
    /// The longest file name that Linux takes, in bytes.
    public static let maximumFilenameLength = 255
    /// The largest file in bytes: sums of a size and an offset stay within 64 bits.
    public static let maximumDocumentSize: Int64 = 1 << 62
    /// The longest target of a symbolic link that Linux takes, in bytes.
    public static let maximumLinkTargetLength = 4095

    /// What keeps the item from being shown in a mount; `nil` when nothing does.
    public var defect: ItemDefect? {
        if itemIdentifier.rawValue.isEmpty { return ItemDefect(description: "empty identifier") }
        if itemIdentifier.rawValue.utf8.count > ItemIdentifier.maximumLength {
            return ItemDefect(description: "identifier of \(itemIdentifier.rawValue.utf8.count) bytes")
        }
        if max(itemVersion.contentVersion.count, itemVersion.metadataVersion.count) > ItemVersion.maximumComponentLength
        {
            return ItemDefect(description: "version of more than \(ItemVersion.maximumComponentLength) bytes")
        }
        if itemIdentifier != .rootContainer, let defect = Self.defect(ofFilename: filename) { return defect }
        switch kind {
        case .file:
            guard let documentSize else { return ItemDefect(description: "file without a size") }
            if documentSize < 0 || documentSize > Self.maximumDocumentSize {
                return ItemDefect(description: "file of \(documentSize) bytes")
            }
        case .symbolicLink:
            guard let symlinkTargetPath, !symlinkTargetPath.isEmpty else {
                return ItemDefect(description: "symbolic link without a target")
            }
            let length = FileNameText.byteCount(of: symlinkTargetPath)
            if length > Self.maximumLinkTargetLength {
                return ItemDefect(description: "link target of \(length) bytes")
            }
            if symlinkTargetPath.utf8.contains(0) { return ItemDefect(description: "link target with NUL") }
        case .directory:
            break
        }
        return nil
    }

    /// What keeps a text from being a file name; `nil` when nothing does.
    public static func defect(ofFilename name: String) -> ItemDefect? {
        let bytes = name.utf8
        if bytes.isEmpty { return ItemDefect(description: "empty name") }
        let length = FileNameText.byteCount(of: name)
        if length > maximumFilenameLength { return ItemDefect(description: "name of \(length) bytes") }
        if !FileNameText.isNormal(name) {
            return ItemDefect(description: "name with scalars that stand for bytes, where it need not have them")
        }
        if bytes.elementsEqual(".".utf8) || bytes.elementsEqual("..".utf8) {
            return ItemDefect(description: "name '\(name)'")
        }
        if bytes.contains(0x2F) { return ItemDefect(description: "name with a slash") }
        if bytes.contains(0) { return ItemDefect(description: "name with NUL") }
        return nil
    }
}
