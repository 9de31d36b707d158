/// When an item's content is downloaded, and whether it may be evicted. Inherited from the parent unless said otherwise.
public enum ContentPolicy: Int, Hashable, Sendable, Codable, CaseIterable {
    /// The parent's policy; ``lazy`` for a root that says nothing else.
    case inherited = 0
    /// Downloaded when read; downloaded again when the remote changes and it is here.
    case lazy = 1
    /// Downloaded when read; evicted when the remote changes.
    case lazyEvictOnRemoteUpdate = 2
    /// Downloaded before it is read, whole subtrees, and never evicted.
    case keepDownloaded = 3

    /// The name that users, xattrs and JSON see.
    public var name: String {
        switch self {
        case .inherited: "inherited"
        case .lazy: "lazy"
        case .lazyEvictOnRemoteUpdate: "lazyEvictOnRemoteUpdate"
        case .keepDownloaded: "keepDownloaded"
        }
    }

    public init?(name: String) {
        guard let policy = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = policy
    }
}
