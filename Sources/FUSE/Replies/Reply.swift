import SystemPackage

/// The obligation to answer one kernel request.
///
/// A reply is answered exactly once, from any thread, by ``fail(_:)`` or by one of the consuming `succeed` functions of
/// its type. A reply that is dropped answers EIO. Answering may wait for the disk and for nothing else. To answer after
/// the callback has returned, store the reply in a ``ParkedReply``.
package protocol Reply: ~Copyable, Sendable {
    consuming func fail(_ error: Errno)

    /// Registers a handler for FUSE_INTERRUPT: the calling thread has received a signal, possibly a fatal one. Signals
    /// that only stop the process or are ignored by default (`SIGCHLD`, `SIGWINCH`, `SIGURG`) do not count.
    ///
    /// The handler runs at most once, on a thread of the connection and with no lock held, so it may answer the reply.
    /// It also runs if the interrupt arrived before the registration, and it may run concurrently with the answer. It
    /// must be quick, because other handlers queue behind it. A second registration replaces the first.
    mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void)
}
