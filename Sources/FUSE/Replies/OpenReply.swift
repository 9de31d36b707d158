import CFUSEShim
import SystemPackage

/// The answer to `open` and `openDirectory`.
package struct OpenReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    /// Answers that it is open.
    ///
    /// - Parameter backing: the file that the kernel is to read, write and map by itself. All opens of one node that
    ///   are held at a time must name the same, or none.
    /// - Returns: false when the kernel had given up on the open: no `release` will come, so undo it.
    @discardableResult
    package consuming func succeed(
        handle: FileHandle, options: OpenOptions = [], backing: BackingID? = nil
    ) -> Bool {
        var opened = fuseshim_opened(
            handle: handle.rawValue, flags: options.rawValue, backing: backing?.rawValue ?? 0)
        return pending.answer { fuseshim_reply_opened($0, &opened) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
