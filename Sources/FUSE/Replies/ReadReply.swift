import CFUSEShim
import SystemPackage

/// The answer to `read`: the bytes asked for, fewer only at the end of the file. Of more than was asked for, only as
/// much is sent: the kernel would take none of it, and the reader would wait for ever.
package struct ReadReply: ~Copyable, Reply {
    private var pending: PendingReply
    private let capacity: Int

    init(_ pending: consuming PendingReply, capacity: Int) {
        self.pending = pending
        self.capacity = capacity
    }

    package consuming func succeed(_ bytes: [UInt8]) {
        let capacity = capacity
        _ = pending.answer { request in
            bytes.withUnsafeBytes { fuseshim_reply_bytes(request, $0.baseAddress, min($0.count, capacity)) }
        }
    }

    package consuming func succeed(_ bytes: borrowing RawSpan) {
        let capacity = capacity
        _ = pending.answer { request in
            bytes.withUnsafeBytes { fuseshim_reply_bytes(request, $0.baseAddress, min($0.count, capacity)) }
        }
    }

    /// Answers with a part of a file, spliced where the answer is given on the thread that asked, copied elsewhere. At
    /// the end of the file the answer is shorter; when it cannot be read, the answer is its error. May wait for the
    /// disk. The descriptor stays the caller's.
    package consuming func succeed(from file: FileDescriptor, at offset: Int64, count: Int) {
        let count = min(count, capacity)
        _ = pending.answer { fuseshim_reply_descriptor($0, file.rawValue, offset, count) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
