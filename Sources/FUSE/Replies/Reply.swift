import SystemPackage

/// The duty to answer a request of the kernel.
///
/// A reply is answered exactly once, by `fail` or by one of its own consuming functions, on any thread; one that is
/// forgotten answers EIO. No answer waits for anybody but the disk. To answer later, hand it to a ``Parked``.
package protocol Reply: ~Copyable, Sendable {
    /// Answers with an error.
    consuming func fail(_ error: Errno)

    /// Registers what to do when the calling process is interrupted before the answer: a signal, also a fatal one, but
    /// not one that only stops it, or that is of no consequence by itself (`SIGCHLD`, `SIGWINCH`, `SIGURG`).
    ///
    /// The handler runs at most once, on a thread of the connection's own without any lock held, so that it may answer;
    /// also when the interruption was there before. It may still run when the answer was given at that very moment.
    /// It should be quick: others wait behind it. A second registration replaces the first.
    mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void)
}
