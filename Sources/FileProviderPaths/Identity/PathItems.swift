import FileProvider

/// Makes items of a remote's entries.
struct PathItems: Sendable {
    let paths: PathMap
    let traits: @Sendable () -> RemoteTraits

    /// Marks the version of a file that may get other bytes without another tag: once the tag is settled, the version is another.
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

    private func version(of entry: RemoteEntry, _ identifier: ItemIdentifier) -> [UInt8] {
        let version = entry.version
        guard entry.kind == .file, entry.isTagUnsettled, !paths.wrote(identifier, version: version) else {
            return version
        }
        return Self.unsettledVersion(of: version)
    }

    /// The content version of a settled tag: the tag, or a digest of one that is too long, or that ends as a version does whose tag is
    /// not settled. A digest is longer than every tag that is a version.
    static func version(ofTag tag: [UInt8]) -> [UInt8] {
        guard tag.count > longestTag || tag.last == mark else { return tag }
        let digest = Array(
            MintedIdentifier.make(
                .file, named: "", in: ItemIdentifier(tag.map { String($0) }.joined(separator: ".")),
                attempt: 0
            ).rawValue.utf8)
        return digest + Array(repeating: UInt8(ascii: "="), count: max(0, longestTag + 1 - digest.count))
    }

    /// Whether two versions have the same tag.
    static func hasTag(of one: [UInt8], _ other: [UInt8]) -> Bool {
        one.drop(mark) == other.drop(mark)
    }

    /// The tag of a version; nil for a version that is a digest of the tag.
    static func tag(ofVersion version: [UInt8]) -> [UInt8]? {
        let settled = Array(version.drop(mark))
        return settled.count > longestTag ? nil : settled
    }

    /// The version of a file whose tag is not settled yet.
    static func unsettledVersion(of version: [UInt8]) -> [UInt8] { version + [mark] }

    /// The version that a file has once its tag is settled, if it keeps the tag.
    static func settledVersion(of version: [UInt8]) -> [UInt8] { Array(version.drop(mark)) }

    /// Whether several contents may have this version.
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

extension RemoteEntry {
    /// The content version, once the tag is settled. A symbolic link without a tag has its target as version, with a last
    /// byte that is no mark.
    var version: [UInt8] {
        guard kind == .symbolicLink, tag.isEmpty else { return PathItems.version(ofTag: tag) }
        return PathItems.version(ofTag: Array((attributes.symbolicLinkTarget ?? "").utf8) + [UInt8(ascii: "/")])
    }

    func hasContent(of version: [UInt8]) -> Bool {
        PathItems.hasTag(of: self.version, version)
            || acknowledgedTag.map { PathItems.hasTag(of: PathItems.version(ofTag: $0), version) } ?? false
    }
}
