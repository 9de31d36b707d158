/// How much room a remote has, in bytes.
public struct RemoteQuota: Hashable, Sendable {
    /// What can still be written.
    public var free: Int64
    /// What is there and what can be written, together; nil where the remote does not say.
    public var total: Int64?

    public init(free: Int64, total: Int64? = nil) {
        self.free = free
        self.total = total
    }
}
