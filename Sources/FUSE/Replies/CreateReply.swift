import CFUSEShim
import SystemPackage

/// The answer to `create`.
package struct CreateReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    /// Answers with the new file, open.
    ///
    /// - Returns: false when the kernel had given up on the request: no `release` will come and no lookup was counted.
    @discardableResult
    package consuming func succeed(
        _ entry: Entry, handle: FileHandle, options: OpenOptions = [], backing: BackingID? = nil
    ) -> Bool {
        var entry = entry.shim
        var opened = fuseshim_opened(
            handle: handle.rawValue, flags: options.rawValue, backing: backing?.rawValue ?? 0)
        return pending.answer { fuseshim_reply_created($0, &entry, &opened) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
