import CFUSEShim
import SystemPackage

/// The answer to what gives nothing but success.
package struct EmptyReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    package consuming func succeed() {
        _ = pending.answer { fuseshim_reply_error($0, 0) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
