import FileProvider

/// How what a remote says of an entry becomes an item.
struct PathItems: Sendable {
    let paths: PathMap
    let traits: @Sendable () -> RemoteTraits

    /// What is added to the version of a file that may get other bytes without another tag: later it has another version.
    private static let mark = UInt8(ascii: "?")
    private static let longestTag = 120

    func item(_ entry: RemoteEntry, as identifier: ItemIdentifier, in parent: ItemIdentifier) -> FileProviderItem {
        let attributes = entry.attributes
        let traits = traits()
        var capabilities = ItemCapabilities.readOnly
        if entry.isWritable ?? true, traits.isWritable {
            capabilities = .ordinary
            if traits.hasTrash, entry.isTrashable, entry.stableIdentifier != nil {
                capabilities.insert(.allowsTrashing)
            }
        }
        return FileProviderItem(
            itemIdentifier: identifier, parentItemIdentifier: parent,
            filename: identifier == .rootContainer ? "/" : entry.name, kind: entry.kind,
            itemVersion: ItemVersion(
                contentVersion: version(of: entry, identifier), metadataVersion: Self.metadataVersion(of: attributes)),
            capabilities: capabilities,
            documentSize: entry.kind == .file ? entry.size : nil, creationDate: attributes.creationDate,
            contentModificationDate: attributes.contentModificationDate, permissions: attributes.permissions,
            symlinkTargetPath: attributes.symbolicLinkTarget, extendedAttributes: attributes.extendedAttributes)
    }

    /// The version of what an entry holds.
    private func version(of entry: RemoteEntry, _ identifier: ItemIdentifier) -> [UInt8] {
        let version = Self.version(ofTag: entry.tag)
        guard entry.kind == .file, entry.isTagUnsettled, !paths.wrote(identifier, version: version) else {
            return version
        }
        return version + [Self.mark]
    }

    /// The version that a tag means once it means anything.
    static func version(ofTag tag: [UInt8]) -> [UInt8] {
        guard tag.count > longestTag else { return tag }
        return Array(
            MintedIdentifier.make(
                .file, named: "", in: ItemIdentifier(tag.map { String($0) }.joined(separator: ".")),
                attempt: 0
            ).rawValue.utf8)
    }

    /// Whether two versions have the same tag.
    static func hasTag(of one: [UInt8], _ other: [UInt8]) -> Bool {
        one.drop(mark) == other.drop(mark)
    }

    /// The tag of a version; nil where it cannot be told.
    static func tag(ofVersion version: [UInt8]) -> [UInt8]? {
        version.count > longestTag ? nil : Array(version.drop(mark))
    }

    /// Whether a version may still stand for several contents.
    static func isUnsettled(_ version: [UInt8]) -> Bool { version.last == mark }

    private static func metadataVersion(of attributes: RemoteAttributes) -> [UInt8] {
        var text = String(attributes.contentModificationDate?.nanosecondsSince1970 ?? 0)
        if let permissions = attributes.permissions { text += ".\(permissions)" }
        if let extended = attributes.extendedAttributes, !extended.isEmpty {
            let all = extended.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
                .map { "\($0.key)=\($0.value)" }.joined(separator: ",")
            text += "." + MintedIdentifier.make(.file, named: "", in: ItemIdentifier(all), attempt: 0).rawValue
        }
        return Array(text.utf8)
    }
}

extension [UInt8] {
    fileprivate func drop(_ mark: UInt8) -> ArraySlice<UInt8> { last == mark ? dropLast() : self[...] }
}
