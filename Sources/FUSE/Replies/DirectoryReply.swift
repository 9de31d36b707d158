import CFUSEShim
import SystemPackage

/// The reply to READDIR and READDIRPLUS, built entry by entry.
package struct DirectoryReply: ~Copyable, Reply {
    private var reply: KernelReply<Answers.Directory>
    private let buffer: Buffer
    private var used = 0

    /// Whether the kernel asks for attributes as well (READDIRPLUS). It then counts one lookup of every node that is
    /// listed with ``append(_:entry:offset:)``, except for `.` and `..`.
    package let wantsEntries: Bool

    /// The size of the kernel's buffer in bytes. An entry takes about 150 bytes and its name.
    package var capacity: Int { buffer.capacity }

    init(_ reply: consuming KernelReply<Answers.Directory>, wantsEntries: Bool) {
        buffer = Buffer(capacity: reply.capacity)
        self.reply = reply
        self.wantsEntries = wantsEntries
    }

    /// Appends an entry with its attributes. For a plain READDIR only the node and the kind are sent.
    ///
    /// - Parameter offset: the offset at which `readDirectory` continues after this entry; never 0.
    /// - Returns: false when the buffer is full: the entry was not appended, and the caller should call ``succeed()``.
    package mutating func append(_ name: FileName, entry: Entry, offset: Int64) -> Bool {
        add(name, entry.shim, offset)
    }

    /// Appends a name with its node and kind only. The kernel counts no lookup, and looks the name up when it needs more.
    ///
    /// - Returns: false when the buffer is full.
    package mutating func append(_ name: FileName, node: NodeID, kind: FileKind, offset: Int64) -> Bool {
        var entry = Entry(attributes: FileAttributes(node: node, kind: kind, permissions: 0))
        entry.node = .none
        entry.entryLifetime = .zero
        entry.attributesLifetime = .zero
        return add(name, entry.shim, offset)
    }

    /// Sends the appended entries; none means the end of the directory.
    ///
    /// - Returns: false when the kernel had given up on the request and counted no lookups.
    @discardableResult
    package consuming func succeed() -> Bool {
        let start = buffer.start
        let count = used
        return reply.answer { fuseshim_reply_bytes($0, start, count) }
    }

    package consuming func fail(_ error: Errno) { reply.fail(error) }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) { reply.onInterrupt(handler) }

    private mutating func add(_ name: FileName, _ entry: fuseshim_entry, _ offset: Int64) -> Bool {
        var entry = entry
        let added = name.bytes.withUnsafeBytes {
            fuseshim_add_entry(
                buffer.start + used, buffer.capacity - used, $0.baseAddress, $0.count, &entry, offset, wantsEntries)
        }
        used += added
        return added > 0
    }

    /// Memory for the entries, of the size of the kernel's buffer.
    // Unchecked: owned by one noncopyable reply.
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
