import CFUSEShim
import SystemPackage

/// The answer to `readLink`.
package struct LinkTargetReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    /// Answers with where it leads. More than 4095 bytes are ENAMETOOLONG: the kernel would not take them.
    package consuming func succeed(_ target: [UInt8]) {
        guard target.count < 4096 else { return fail(.fileNameTooLong) }
        _ = pending.answer { request in
            target.withUnsafeBytes { fuseshim_reply_bytes(request, $0.baseAddress, $0.count) }
        }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
