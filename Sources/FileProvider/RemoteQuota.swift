/// The quota of a remote in bytes.
public struct RemoteQuota: Hashable, Sendable {
    /// The free space.
    public var free: Int64
    /// The total space; nil if the remote does not report it.
    public var total: Int64?

    /// A quota in bytes.
    public init(free: Int64, total: Int64? = nil) {
        self.free = free
        self.total = total
    }
}
