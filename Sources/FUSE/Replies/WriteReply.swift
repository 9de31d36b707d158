import CFUSEShim
import SystemPackage

/// The answer to `write` and `copyRange`.
package struct WriteReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    package consuming func succeed(count: Int) {
        _ = pending.answer { fuseshim_reply_written($0, count) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
