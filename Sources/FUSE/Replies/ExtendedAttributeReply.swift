import CFUSEShim
import SystemPackage

/// The answer to `getExtendedAttribute` and `listExtendedAttributes`. Those who ask for the length only, or whose
/// buffer is too small, are answered so: the file system always gives the whole.
package struct ExtendedAttributeReply: ~Copyable, Reply {
    private var pending: PendingReply
    private let capacity: Int

    init(_ pending: consuming PendingReply, capacity: Int) {
        self.pending = pending
        self.capacity = capacity
    }

    package consuming func succeed(_ value: [UInt8]) {
        let capacity = capacity
        _ = pending.answer { request in
            if capacity == 0 { return fuseshim_reply_length(request, value.count) }
            if value.count > capacity { return fuseshim_reply_error(request, Errno.outOfRange.rawValue) }
            return value.withUnsafeBytes { fuseshim_reply_bytes(request, $0.baseAddress, $0.count) }
        }
    }

    /// Answers with a list of names.
    package consuming func succeed(names: [FileName]) {
        var list: [UInt8] = []
        for name in names {
            list += name.bytes
            list.append(0)
        }
        succeed(list)
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
