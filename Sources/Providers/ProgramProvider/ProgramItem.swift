import FileProvider
import Foundation

/// An item as the level items describes it. A field of ``ItemFields`` has its name there; a date is in nanoseconds since 1970.
struct ProgramItem: Codable, Hashable, Sendable {
    var itemIdentifier: String
    /// Missing for the root.
    var parentItemIdentifier: String?
    var filename: String
    /// A key of ``ProgramEntry/kinds``.
    var kind: String
    var contentVersion: String?
    var metadataVersion: String?
    /// The names of ``capabilityNames``.
    var capabilities: [String]?
    var documentSize: Int64?
    var childItemCount: Int?
    var creationDate: Int64?
    var contentModificationDate: Int64?
    var lastUsedDate: Int64?
    var permissions: UInt16?
    var owner: UInt32?
    var group: UInt32?
    var symlinkTargetPath: String?
    /// In Base64.
    var extendedAttributes: [String: Data]?
    var contentPolicy: String?
    var favoriteRank: Int64?
    /// In Base64.
    var tagData: Data?
    var isShared: Bool?
    var trashDate: Int64?

    static let capabilityNames: [String: ItemCapabilities] = [
        "allowsReading": .allowsReading, "allowsWriting": .allowsWriting, "allowsReparenting": .allowsReparenting,
        "allowsRenaming": .allowsRenaming, "allowsTrashing": .allowsTrashing, "allowsDeleting": .allowsDeleting,
        "allowsEvicting": .allowsEvicting, "allowsExcludingFromSync": .allowsExcludingFromSync,
    ]

    init(_ item: FileProviderItem) {
        itemIdentifier = item.itemIdentifier.rawValue
        parentItemIdentifier = item.parentItemIdentifier.rawValue
        filename = item.filename
        kind = ProgramEntry.name(of: item.kind)
        contentVersion = item.itemVersion.contentVersion.text
        metadataVersion = item.itemVersion.metadataVersion.text
        documentSize = item.documentSize
        creationDate = item.creationDate?.nanosecondsSince1970
        contentModificationDate = item.contentModificationDate?.nanosecondsSince1970
        lastUsedDate = item.lastUsedDate?.nanosecondsSince1970
        permissions = item.permissions
        owner = item.owner
        group = item.group
        symlinkTargetPath = item.symlinkTargetPath
        extendedAttributes = item.extendedAttributes?.mapValues { Data($0) }
        favoriteRank = item.favoriteRank
        tagData = item.tagData.map { Data($0) }
    }

    /// The item for the system, which itself reports an invalid name, size or version.
    ///
    /// - Parameter features: decide what an item without capabilities allows.
    /// - Throws: `malformedResponse` for a kind, capability or policy that does not exist.
    func item(_ features: ProgramFeatures?) throws(FileProviderError) -> FileProviderItem {
        func wrong(_ what: String) -> FileProviderError {
            FileProviderError(
                .malformedResponse, "the program describes '\(filename)' with \(what)",
                itemIdentifier: ItemIdentifier(itemIdentifier))
        }
        guard let kind = ProgramEntry.kinds[kind] else { throw wrong("the kind '\(self.kind)'") }
        var allowed = features?.writing == true ? ItemCapabilities.ordinary : .readOnly
        if features?.features.trash == true { allowed.insert(.allowsTrashing) }
        if let capabilities {
            allowed = []
            for name in capabilities {
                guard let capability = Self.capabilityNames[name] else { throw wrong("the capability '\(name)'") }
                allowed.insert(capability)
            }
        }
        guard let policy = ContentPolicy(name: contentPolicy ?? ContentPolicy.inherited.name) else {
            throw wrong("the content policy '\(contentPolicy ?? "")'")
        }
        return FileProviderItem(
            itemIdentifier: ItemIdentifier(itemIdentifier),
            parentItemIdentifier: parentItemIdentifier.map { ItemIdentifier($0) } ?? .rootContainer,
            filename: filename, kind: kind,
            itemVersion: ItemVersion(contentVersion: contentVersion ?? "", metadataVersion: metadataVersion ?? ""),
            capabilities: allowed, documentSize: kind == .file ? documentSize : nil, childItemCount: childItemCount,
            creationDate: creationDate.map(FileTimestamp.init(nanosecondsSince1970:)),
            contentModificationDate: contentModificationDate.map(FileTimestamp.init(nanosecondsSince1970:)),
            lastUsedDate: lastUsedDate.map(FileTimestamp.init(nanosecondsSince1970:)),
            permissions: permissions.map { $0 & 0o7777 }, owner: owner, group: group,
            symlinkTargetPath: kind == .symbolicLink ? symlinkTargetPath : nil,
            extendedAttributes: extendedAttributes?.mapValues { Array($0) }, contentPolicy: policy,
            favoriteRank: favoriteRank, tagData: tagData.map { Array($0) }, isShared: isShared ?? false,
            trashDate: trashDate.map(FileTimestamp.init(nanosecondsSince1970:)))
    }
}

extension FileProviderItem {
    /// An item that a program lists and describes so that it cannot be used. The system reports it and shows the others.
    init(unusable reason: String, identifier: String?, parent: ItemIdentifier, filename: String?) {
        self.init(
            itemIdentifier: ItemIdentifier(identifier ?? ""),
            parentItemIdentifier: parent, filename: filename ?? "",
            kind: .file, itemVersion: ItemVersion(contentVersion: "", metadataVersion: ""))
        unusable = reason
    }
}

extension [UInt8] {
    /// A version, page or anchor as the program knows it; nil for an empty one.
    var text: String? { isEmpty ? nil : String(decoding: self, as: UTF8.self) }
}
