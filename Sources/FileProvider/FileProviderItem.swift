/// The kind of an item. It never changes.
public enum ItemKind: Int, Hashable, Sendable, Codable {
    /// A regular file.
    case file = 1
    /// A directory.
    case directory = 2
    /// A symbolic link.
    case symbolicLink = 3
}

/// The properties of an item as the provider knows them.
///
/// A property that the remote does not have is nil. Nil never erases a local value; an empty value does.
///
///     FileProviderItem(
///         itemIdentifier: "17", parentItemIdentifier: .rootContainer, filename: "a.txt", kind: .file,
///         itemVersion: ItemVersion(contentVersion: etag, metadataVersion: "3"), documentSize: 12)
public struct FileProviderItem: Hashable, Sendable {
    /// The stable identifier.
    public var itemIdentifier: ItemIdentifier
    /// The parent directory; ``ItemIdentifier/trashContainer`` for a trashed item. Ignored for the root.
    public var parentItemIdentifier: ItemIdentifier
    /// The name: 1 to 255 bytes without `/` and NUL, and neither `.` nor `..`. An item with an invalid name is reported and
    /// not shown; see ``defect``.
    public var filename: String
    /// The kind of the item.
    public var kind: ItemKind
    /// The versions of content and metadata.
    public var itemVersion: ItemVersion
    /// The operations that the item allows.
    public var capabilities: ItemCapabilities
    /// The exact size of a file in bytes, at most ``maximumDocumentSize``. Required for files; if a fetch returns another
    /// number of bytes, the reader gets EIO. Ignored for other kinds.
    public var documentSize: Int64?
    /// The number of children of a directory; a hint.
    public var childItemCount: Int?
    /// The time of creation.
    public var creationDate: FileTimestamp?
    /// The time of the last change of the content (`st_mtime`).
    public var contentModificationDate: FileTimestamp?
    /// The time of the last use.
    public var lastUsedDate: FileTimestamp?
    /// The lower twelve bits of the POSIX mode.
    public var permissions: UInt16?
    /// The user ID of the owner, if the remote has one that is valid on this machine.
    public var owner: UInt32?
    /// The group ID, if the remote has one that is valid on this machine.
    public var group: UInt32?
    /// The target of a symbolic link, uninterpreted. Bytes that are not UTF-8 are encoded by `FileNameText` of the module
    /// `FileNames`.
    public var symlinkTargetPath: String?
    /// The extended attributes by key, including POSIX ACLs; see ``ExtendedAttributeName``.
    public var extendedAttributes: [String: [UInt8]]?
    /// The provider's content policy.
    public var contentPolicy: ContentPolicy
    /// The rank among the user's favourites; nil for an item that is none.
    public var favoriteRank: Int64?
    /// Opaque tags of the user.
    public var tagData: [UInt8]?
    /// Whether the item is shared, by a link or with an account. A provider ends sharing when it trashes the item.
    public var isShared: Bool
    /// The time at which a trashed item was trashed. For nil the system shows when it first learnt that the item is trashed.
    public var trashDate: FileTimestamp?
    /// Why the remote's description of the item cannot be used; nil for an ordinary item.
    package var unusable: String?

    /// An item with the given properties; see the properties for their meaning.
    public init(
        itemIdentifier: ItemIdentifier, parentItemIdentifier: ItemIdentifier, filename: String, kind: ItemKind,
        itemVersion: ItemVersion, capabilities: ItemCapabilities = .ordinary, documentSize: Int64? = nil,
        childItemCount: Int? = nil, creationDate: FileTimestamp? = nil, contentModificationDate: FileTimestamp? = nil,
        lastUsedDate: FileTimestamp? = nil, permissions: UInt16? = nil, owner: UInt32? = nil, group: UInt32? = nil,
        symlinkTargetPath: String? = nil, extendedAttributes: [String: [UInt8]]? = nil,
        contentPolicy: ContentPolicy = .inherited, favoriteRank: Int64? = nil, tagData: [UInt8]? = nil,
        isShared: Bool = false, trashDate: FileTimestamp? = nil
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
        self.trashDate = trashDate
    }

    /// Whether the parent is the trash.
    public var isTrashed: Bool { parentItemIdentifier == .trashContainer }
}
