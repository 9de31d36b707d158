import CFUSEShim
import SystemPackage

/// The answer to `readDirectory`, put together name by name.
package struct DirectoryReply: ~Copyable, Reply {
    private var pending: PendingReply
    private let buffer: Buffer
    private var used = 0

    /// Whether the kernel asks for whole entries (READDIRPLUS). It then counts one lookup of every node that is listed
    /// with ``append(_:entry:offset:)``, except of `.` and `..`.
    package let wantsEntries: Bool

    /// How many bytes the kernel has room for; an entry takes some 150 and its name.
    package var capacity: Int { buffer.capacity }

    init(_ pending: consuming PendingReply, capacity: Int, wantsEntries: Bool) {
        self.pending = pending
        self.buffer = Buffer(capacity: capacity)
        self.wantsEntries = wantsEntries
    }

    /// Adds a name with all that is known of it. Where the kernel did not ask for that much, its node and kind are
    /// sent.
    ///
    /// - Parameter offset: what `readDirectory` is to be given to go on after this name; never 0.
    /// - Returns: false when it does not fit any more: then it was not added, and it is time to `succeed`.
    package mutating func append(_ name: FileName, entry: Entry, offset: Int64) -> Bool {
        add(name, entry.shim, offset)
    }

    /// Adds a name with its node and kind only; the kernel looks it up when it needs more, and counts nothing.
    ///
    /// - Returns: false when it does not fit any more, as above.
    package mutating func append(_ name: FileName, node: NodeID, kind: FileKind, offset: Int64) -> Bool {
        var entry = Entry(attributes: FileAttributes(node: node, kind: kind, permissions: 0))
        entry.node = .none
        entry.entryLifetime = .zero
        entry.attributesLifetime = .zero
        return add(name, entry.shim, offset)
    }

    /// Sends what was added; nothing added means the end of the directory.
    ///
    /// - Returns: false when the kernel had given up on the request and has counted no lookups.
    @discardableResult
    package consuming func succeed() -> Bool {
        let start = buffer.start
        let count = used
        return pending.answer { fuseshim_reply_bytes($0, start, count) }
    }

    package consuming func fail(_ error: Errno) { pending.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { pending.onInterrupt(handler) }

    private mutating func add(_ name: FileName, _ entry: fuseshim_entry, _ offset: Int64) -> Bool {
        var entry = entry
        let added = name.bytes.withUnsafeBytes {
            fuseshim_add_entry(
                buffer.start + used, buffer.capacity - used, $0.baseAddress, $0.count, &entry, offset, wantsEntries)
        }
        used += added
        return added > 0
    }

    /// Memory for the names, as much as the kernel has asked for.
    // Unchecked: owned by one reply, and that is noncopyable.
    private struct Buffer: ~Copyable, @unchecked Sendable {
        let start: UnsafeMutableRawPointer
        let capacity: Int

        init(capacity: Int) {
            self.capacity = capacity
            start = .allocate(byteCount: capacity, alignment: 8)
        }

        deinit { start.deallocate() }
    }
}
