/// The kernel's number of a FUSE request, unique for the life of a mount. A daemon that takes a mount over receives the requests that
/// its predecessor had read and not answered again, with the same number (FUSE_NOTIFY_RESEND).
package struct RequestNumber: Hashable, Sendable {
    package let rawValue: UInt64
    /// Whether the kernel sends the request again, so that its effect may have been committed before.
    package let isResent: Bool

    package init(rawValue: UInt64, isResent: Bool = false) { self.rawValue = rawValue; self.isResent = isResent }
}
