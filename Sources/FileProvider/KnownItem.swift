/// An item as last known on the remote.
public struct KnownItem: Hashable, Sendable {
    /// The largest number of items of one content version that
    /// ``FileProviderManager/knownItems(withContentVersions:)`` returns.
    public static let mostOfOneVersion = 64

    /// The identifier.
    public var itemIdentifier: ItemIdentifier
    /// The identifier of the parent.
    public var parentItemIdentifier: ItemIdentifier
    /// The name on the remote.
    public var filename: String
    /// The content version on the remote.
    public var contentVersion: [UInt8]
    /// The size of a file in bytes.
    public var documentSize: Int64

    /// A known item.
    public init(
        itemIdentifier: ItemIdentifier, parentItemIdentifier: ItemIdentifier, filename: String,
        contentVersion: [UInt8], documentSize: Int64
    ) {
        self.itemIdentifier = itemIdentifier
        self.parentItemIdentifier = parentItemIdentifier
        self.filename = filename
        self.contentVersion = contentVersion
        self.documentSize = documentSize
    }
}
