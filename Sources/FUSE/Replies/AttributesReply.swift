import CFUSEShim
import SystemPackage

/// The answer to `getAttributes` and `setAttributes`.
package struct AttributesReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    package consuming func succeed(_ attributes: FileAttributes, lifetime: Lifetime = .infinite) {
        var attributes = attributes.shim
        _ = pending.answer { fuseshim_reply_attributes($0, &attributes, lifetime.shim) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
