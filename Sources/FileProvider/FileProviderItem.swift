/// What an item is. It never changes for the life of an item.
public enum ItemKind: Int, Hashable, Sendable, Codable {
    case file = 1
    case directory = 2
    case symbolicLink = 3
}

/// An item's properties as the provider knows them: a value, complete at the moment it was made.
///
/// What a remote cannot say is left `nil`, and `nil` never erases what is kept locally: absent is not empty.
public struct FileProviderItem: Hashable, Sendable {
    public var itemIdentifier: ItemIdentifier
    /// The directory that holds the item; ``ItemIdentifier/trashContainer`` for a trashed one. Ignored for the root.
    public var parentItemIdentifier: ItemIdentifier
    /// The full name with its extension. Not empty, at most 255 bytes, without `/` and NUL, neither `.` nor `..`:
    /// an item with any other name is not shown, and reported.
    public var filename: String
    public var kind: ItemKind
    public var itemVersion: ItemVersion
    public var capabilities: ItemCapabilities
    /// The exact number of bytes that fetching a file gives. Required for files: a reader that gets another number
    /// gets EIO. At most ``maximumDocumentSize``. Ignored for everything else.
    public var documentSize: Int64?
    /// How many children a directory has; a hint.
    public var childItemCount: Int?
    public var creationDate: FileTimestamp?
    public var contentModificationDate: FileTimestamp?
    public var lastUsedDate: FileTimestamp?
    /// The lower twelve bits of a POSIX mode.
    public var permissions: UInt16?
    /// The numeric owner, where the remote has such a thing and it means something on this machine.
    public var owner: UInt32?
    /// The numeric group, likewise.
    public var group: UInt32?
    /// What a symbolic link points to, as it is; never followed. Bytes that are not UTF-8 are as ``FileNameText`` has them.
    public var symlinkTargetPath: String?
    /// Extended attributes by their keys: attributes of the `user.` namespace by their name without it, others by two
    /// slashes and their full name (``ExtendedAttributeName``). They include POSIX ACLs.
    public var extendedAttributes: [String: [UInt8]]?
    public var contentPolicy: ContentPolicy
    public var favoriteRank: Int64?
    public var tagData: [UInt8]?
    /// Whether the remote gives others access to the item, by a link or by an account. A provider ends that when it moves the
    /// item to the trash.
    public var isShared: Bool

    public init(
        itemIdentifier: ItemIdentifier, parentItemIdentifier: ItemIdentifier, filename: String, kind: ItemKind,
        itemVersion: ItemVersion, capabilities: ItemCapabilities = .ordinary, documentSize: Int64? = nil,
        childItemCount: Int? = nil, creationDate: FileTimestamp? = nil, contentModificationDate: FileTimestamp? = nil,
        lastUsedDate: FileTimestamp? = nil, permissions: UInt16? = nil, owner: UInt32? = nil, group: UInt32? = nil,
        symlinkTargetPath: String? = nil, extendedAttributes: [String: [UInt8]]? = nil,
        contentPolicy: ContentPolicy = .inherited, favoriteRank: Int64? = nil, tagData: [UInt8]? = nil,
        isShared: Bool = false
    ) {
        self.itemIdentifier = itemIdentifier
        self.parentItemIdentifier = parentItemIdentifier
        self.filename = filename
        self.kind = kind
        self.itemVersion = itemVersion
        self.capabilities = capabilities
        self.documentSize = documentSize
        self.childItemCount = childItemCount
        self.creationDate = creationDate
        self.contentModificationDate = contentModificationDate
        self.lastUsedDate = lastUsedDate
        self.permissions = permissions
        self.owner = owner
        self.group = group
        self.symlinkTargetPath = symlinkTargetPath
        self.extendedAttributes = extendedAttributes
        self.contentPolicy = contentPolicy
        self.favoriteRank = favoriteRank
        self.tagData = tagData
        self.isShared = isShared
    }

    /// Whether the item lies in the trash.
    public var isTrashed: Bool { parentItemIdentifier == .trashContainer }
}
