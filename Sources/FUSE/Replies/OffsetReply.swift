import CFUSEShim
import SystemPackage

/// The answer to `seek`.
package struct OffsetReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    package consuming func succeed(offset: Int64) {
        _ = pending.answer { fuseshim_reply_offset($0, offset) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
