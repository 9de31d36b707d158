import FileNames

/// A defect of an item of a provider. A defective item is reported and not shown.
public struct ItemDefect: Error, Hashable, Sendable, CustomStringConvertible {
    /// The defect in words.
    public let description: String
}

extension FileProviderItem {
    /// The maximum length of a file name in bytes (`NAME_MAX`).
    public static let maximumFilenameLength = 255
    /// The maximum size of a file in bytes, so that the sum of a size and an offset fits in 64 bits.
    public static let maximumDocumentSize: Int64 = 1 << 62
    /// The maximum length of the target of a symbolic link in bytes (`PATH_MAX` - 1).
    public static let maximumLinkTargetLength = 4095

    /// The reason why the item cannot be shown in a mount; nil for a valid item.
    public var defect: ItemDefect? {
        if let unusable { return ItemDefect(description: unusable) }
        if itemIdentifier.rawValue.isEmpty { return ItemDefect(description: "empty identifier") }
        if itemIdentifier.rawValue.utf8.count > ItemIdentifier.maximumLength {
            return ItemDefect(description: "identifier of \(itemIdentifier.rawValue.utf8.count) bytes")
        }
        if max(itemVersion.contentVersion.count, itemVersion.metadataVersion.count) > ItemVersion.maximumComponentLength
        {
            return ItemDefect(description: "version of more than \(ItemVersion.maximumComponentLength) bytes")
        }
        if itemIdentifier != .rootContainer {
            if itemIdentifier.isReserved { return ItemDefect(description: "an identifier of the system") }
            if parentItemIdentifier == .workingSet { return ItemDefect(description: "a parent that is no directory") }
            if let defect = Self.defect(ofFilename: filename) { return defect }
        }
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

    /// As ``defect``, for a provider with ``ProviderFeatures/byteNames`` or without.
    package func reasonNotToShow(withByteNames hasByteNames: Bool) -> ItemDefect? {
        defect ?? (hasByteNames || FileNameText.isUTF8(filename) ? nil : Self.isNotUTF8)
    }

    /// The reason why a text is not valid as a file name; nil for a valid name.
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

    /// As ``defect(ofFilename:)``, for a provider without ``ProviderFeatures/byteNames``.
    package static func defect(ofUTF8Filename name: String) -> ItemDefect? {
        defect(ofFilename: name) ?? (FileNameText.isUTF8(name) ? nil : isNotUTF8)
    }

    /// Verifies a name that a new item is to have on the remote, or another one.
    ///
    /// - Throws: `cannotSynchronize` for a text that is not valid as a file name, `excludedFromSync` for a hidden name.
    package static func check(newFilename name: String) throws(FileProviderError) {
        if let defect = defect(ofFilename: name) {
            throw FileProviderError(.cannotSynchronize, defect.description)
        }
        if HiddenName.isOne(name) {
            throw FileProviderError(.excludedFromSync, "the provider needs names like '\(name)' for itself")
        }
    }

    private static let isNotUTF8 = ItemDefect(description: "name that is not UTF-8")
}
