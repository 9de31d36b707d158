/// What the system remembers of an item as the remote last had it.
public struct KnownItem: Hashable, Sendable {
    public var itemIdentifier: ItemIdentifier
    public var parentItemIdentifier: ItemIdentifier
    public var filename: String
    public var contentVersion: [UInt8]
    /// Of a file.
    public var documentSize: Int64

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
