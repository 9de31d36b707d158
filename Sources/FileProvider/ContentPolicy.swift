/// When an item's content is downloaded, and whether it may be evicted.
public enum ContentPolicy: Int, Hashable, Sendable, Codable, CaseIterable {
    /// The policy of the parent; ``lazy`` for the root.
    case inherited = 0
    /// Downloaded when read; a materialized file is downloaded again when the remote changes.
    case lazy = 1
    /// Downloaded when read; evicted when the remote changes.
    case lazyEvictOnRemoteUpdate = 2
    /// Downloaded in the background, with all descendants, and never evicted.
    case keepDownloaded = 3

    /// The name in commands, extended attributes and JSON.
    public var name: String { String(describing: self) }

    /// The policy with a ``name``; nil if there is none.
    public init?(name: String) {
        guard let policy = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = policy
    }
}
