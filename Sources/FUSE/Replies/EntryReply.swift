import CFUSEShim
import SystemPackage

/// The answer to what looks up or makes a name: `lookup`, `makeNode`, `makeDirectory`, `makeSymbolicLink`, `link`.
package struct EntryReply: ~Copyable, Reply {
    private var pending: PendingReply

    init(_ pending: consuming PendingReply) { self.pending = pending }

    /// Answers with an entry, of which the kernel counts one lookup unless it is an absent one.
    ///
    /// - Returns: false when the kernel had given up on the request and has counted nothing.
    @discardableResult
    package consuming func succeed(_ entry: Entry) -> Bool {
        var entry = entry.shim
        return pending.answer { fuseshim_reply_entry($0, &entry) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }
}
