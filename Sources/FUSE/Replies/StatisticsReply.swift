import CFUSEShim
import SystemPackage

/// The answer to `getUsage`.
package struct StatisticsReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    package consuming func succeed(_ usage: FileSystemUsage) {
        var statistics = usage.shim
        _ = pending.answer { fuseshim_reply_statistics($0, &statistics) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
