/// The kernel's number of a request, unique for the life of a mount, across the processes that serve it one after the other.
package struct KernelNumber: Hashable, Sendable {
    package let rawValue: UInt64
    /// Whether the kernel sends the request again, because a process that has ended received it and did not answer. Its effect
    /// may have been committed.
    package let isResent: Bool

    package init(rawValue: UInt64, isResent: Bool = false) {
        self.rawValue = rawValue
        self.isResent = isResent
    }
}
