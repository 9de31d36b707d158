/// How a domain is mounted: what the user said when it was added, kept with it.
struct DomainOptions: Codable, Hashable, Sendable {
    /// How many bytes of content may be here; nil for no limit.
    var cacheLimit: Int64?
    /// How often to look for changes, in seconds; nil when the provider tells of them.
    var pollSeconds: Double?
    var isReadOnly = false
}
