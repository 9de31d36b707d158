/// A part of a directory's listing.
public struct RemoteListing: Hashable, Sendable {
    /// The entries of this part; a part may have none and not be the last.
    public var entries: [RemoteEntry]
    /// The token of the next part; nil at the end.
    public var next: [UInt8]?
    /// Whether the directory contains an item that cannot be an entry: then it is not empty, even without entries.
    public var leavesOut = false

    /// A part of a listing, by default the last.
    public init(entries: [RemoteEntry], next: [UInt8]? = nil) {
        self.entries = entries
        self.next = next
    }
}

/// A part of the tree below a directory, in the order of the paths: all entries of a directory come before those of the next.
public struct RemoteTreeListing: Sendable {
    /// The entries of this part, each with the directory that contains it.
    public var entries: [(parent: RemotePath, entry: RemoteEntry)]
    /// The token of the next part; nil at the end.
    public var next: [UInt8]?

    /// A part of a tree, by default the last.
    public init(entries: [(parent: RemotePath, entry: RemoteEntry)], next: [UInt8]? = nil) {
        self.entries = entries
        self.next = next
    }
}
