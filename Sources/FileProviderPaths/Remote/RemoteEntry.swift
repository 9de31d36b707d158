import FileProvider

/// An item as a remote describes it.
public struct RemoteEntry: Hashable, Sendable {
    /// The last name of its path; empty for the root.
    public var name: String
    /// What kind of item it is.
    public var kind: ItemKind
    /// Changes when the content does, as far as the remote can tell: an ETag, a revision, or a date and a size. The tag of a
    /// directory changes when its entries do; it is empty if the remote has none.
    public var tag: [UInt8]
    /// Whether an equal tag means equal bytes. A tag of a date in seconds and a size is not strong.
    public var isTagStrong: Bool
    /// Whether the file may still get other bytes under the same tag, because it was written just before the request.
    public var isTagUnsettled = false
    /// The remote's own identifier of the item, which survives renames; nil if the remote has none.
    public var stableIdentifier: String?
    /// In bytes; nil if the item is not a file.
    public var size: Int64?
    /// The other attributes that the remote has of it.
    public var attributes: RemoteAttributes
    /// Whether the remote permits changes of it; nil if the remote does not say.
    public var isWritable: Bool?
    /// The tag with which the same content was acknowledged: an earlier upload of it, which had no answer, was carried out later.
    /// Nil for any other file.
    package var acknowledgedTag: [UInt8]?
    /// Whether the remote's trash, if it has one, keeps the item when it is deleted.
    package var isTrashable = true

    /// An entry.
    public init(
        name: String, kind: ItemKind, tag: [UInt8], isTagStrong: Bool, stableIdentifier: String? = nil,
        size: Int64? = nil, attributes: RemoteAttributes = RemoteAttributes(), isWritable: Bool? = nil
    ) {
        self.name = name
        self.kind = kind
        self.tag = tag
        self.isTagStrong = isTagStrong
        self.stableIdentifier = stableIdentifier
        self.size = size
        self.attributes = attributes
        self.isWritable = isWritable
    }
}
