import CFUSEShim

/// How long the kernel may cache an answer.
package struct Lifetime: Hashable, Sendable {
    package var seconds: UInt64
    package var nanoseconds: UInt32

    package init(seconds: UInt64, nanoseconds: UInt32 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Not cached.
    package static var zero: Lifetime { Lifetime(seconds: 0) }

    /// Until a notification invalidates it: longer than the kernel can count.
    package static var infinite: Lifetime { Lifetime(seconds: UInt64(Int64.max)) }

    var shim: fuseshim_lifetime { fuseshim_lifetime(seconds: seconds, nanoseconds: nanoseconds) }
}
