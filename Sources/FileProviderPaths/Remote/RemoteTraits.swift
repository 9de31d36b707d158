/// What a remote can do. By default it can be written, reads ranges, and stores no attributes.
public struct RemoteTraits: Hashable, Sendable {
    /// Items can be made, changed and deleted.
    public var isWritable = true
    /// A range can be read from the middle of a file.
    public var readsRanges = true
    /// The remote itself checks conditions, in one step with the change.
    public var checksConditions = false
    /// The remote itself checks that a directory to delete is empty.
    public var checksEmptiness = false
    /// Symbolic links can be made.
    public var hasSymbolicLinks = false
    /// The modification date of an item can be set.
    public var storesModificationDates = false
    /// The permissions of an item can be set.
    public var storesPermissions = false
    /// Extended attributes of the `user.` namespace can be set.
    public var storesExtendedAttributes = false
    /// ``PathRemote/tree(below:from:limit:)`` lists whole trees without a request for each directory.
    public var listsTrees = false
    /// A file's tag depends on its bytes alone: equal files have equal tags.
    public var tagsAreOfContent = false
    /// A file's tag is made of its size and its date: setting the date of a file makes a new tag of the same content.
    public var datesMakeTags = false
    /// A file gets another tag when it is moved.
    package var movesChangeTags = false
    /// A directory's tag changes when something below it does, at any depth.
    public var directoryTagsCoverTrees = false
    /// Listings contain names that begin with a dot. If not, the provider asks for the known ones one by one.
    public var listsHiddenNames = true
    /// What ``PathRemote/read(_:tag:range:into:)`` returns has attributes that listings lack.
    public var attributesComeWithContents = false
    /// The remote keeps deleted items in a trash, from which they can be restored: a ``TrashingRemote``.
    package var hasTrash = false
    /// As ``ProviderFeatures/isAskedBesideCalls``. Read once, when the provider is made.
    package var isAskedBesideCalls = false
    /// The best number of concurrent calls. Read once, when the provider is made.
    public var concurrentCalls = 16
    /// The longest name, in bytes; nil for the limit of Linux, 255.
    public var longestName: Int?
    /// What the user should know of this remote, a sentence each.
    public var peculiarities: [String] = []

    /// The default traits.
    public init() {}
}
