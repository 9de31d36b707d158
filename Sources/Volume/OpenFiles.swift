import Foundation
import Replica
import Synchronization
import SystemPackage

/// Registers local files with the kernel, which then reads and writes them without the daemon (FUSE passthrough).
package protocol PassthroughRegistry: Sendable {
    /// - Returns: the kernel's number of the backing file.
    /// - Throws: when the kernel or the daemon's rights do not allow passthrough.
    func register(_ descriptor: FileDescriptor) throws(Errno) -> Int32
    func unregister(_ backing: Int32)
}

/// An open inode and the content version that its handles read.
///
/// Whether it is served by passthrough is decided at the first open and kept until the last close, because the kernel
/// requires all opens of an inode to agree.
final class OpenFile: @unchecked Sendable {
    // Unchecked: `state` is only accessed under `lock`, a pthread mutex because concurrent readers of a file contend for it.
    private let lock = NSLock()
    private var state = State()
    let number: InodeNumber
    private let used = Atomic(false)

    /// Whether a process may have seen content of the version in `state`. As long as none has, an open file follows the
    /// newest version. It stands outside the lock because transactions read it.
    var isUsed: Bool {
        get { used.load(ordering: .sequentiallyConsistent) }
        set { used.store(newValue, ordering: .sequentiallyConsistent) }
    }

    struct State {
        var isDecided = false
        var version: [UInt8] = []
        var size: Int64 = 0
        var isComplete = false
        /// Whether the file was open for writing since: its length is that of its content file.
        var isWritten = false
        var descriptor: FileDescriptor?
        var backing: Int32?
    }

    init(number: InodeNumber) {
        self.number = number
    }

    /// Runs `body` with exclusive access to the state.
    func withState<Value, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }
}

/// The inodes that processes have open, and the lookup counts of the kernel.
///
/// The kernel may use a node without an open handle (path resolution, O_PATH, a working directory) until it has sent FORGET
/// for every answered lookup. The counts take twelve bytes per node at a load factor of at most three quarters: 16 to 32 MB
/// for a million cached nodes.
package final class OpenFiles: OpenInodes, @unchecked Sendable {
    // Unchecked: all state is only accessed under `lock`, a pthread mutex because every READ of the mount locks it.
    private let lock = NSLock()
    private var files: [InodeNumber: Entry] = [:]
    /// The number of lookups that the kernel has not forgotten, by inode.
    private var lookups: [InodeNumber: UInt32] = [:]
    /// Inodes without a name that are retained because they are open or the kernel knows them.
    private var nameless: Set<InodeNumber> = []

    private struct Entry {
        var file: OpenFile
        var count = 0
        var writers = 0
        /// The number of writers that have closed the file while their changes are not recorded yet.
        var closing = 0
    }

    package init() {}

    package func isOpen(_ number: InodeNumber) -> Bool { lock.withLock { files[number] != nil } }

    package func isOpenAndUsed(_ number: InodeNumber) -> Bool { file(number)?.isUsed ?? false }

    package func isOpenForWriting(_ number: InodeNumber) -> Bool {
        lock.withLock { files[number].map { $0.writers > $0.closing } ?? false }
    }

    /// A writer has closed the file. ``release(_:forWriting:)`` follows when the change is recorded.
    func noteClosing(_ number: InodeNumber) { lock.withLock { files[number]?.closing += 1 } }

    func file(_ number: InodeNumber) -> OpenFile? {
        lock.lock()
        defer { lock.unlock() }
        return files[number]?.file
    }

    /// Increments the open count.
    func retain(_ number: InodeNumber, forWriting: Bool) -> OpenFile {
        lock.lock()
        defer { lock.unlock() }
        var entry = files[number] ?? Entry(file: OpenFile(number: number))
        entry.count += 1
        if forWriting { entry.writers += 1 }
        files[number] = entry
        return entry.file
    }

    /// Whether a file has more writers than `closed` contains of it.
    func hasOtherWriters(_ number: InodeNumber, than closed: [InodeNumber]) -> Bool {
        lock.withLock { (files[number]?.writers ?? 0) > closed.count { $0 == number } }
    }

    /// Decrements the open count.
    ///
    /// - Returns: the file if this was the last handle, else nil.
    func release(_ number: InodeNumber, forWriting: Bool) -> OpenFile? {
        lock.lock()
        defer { lock.unlock() }
        guard var entry = files[number] else { return nil }
        entry.count -= 1
        if forWriting {
            entry.writers -= 1
            entry.closing = min(max(0, entry.closing - 1), entry.writers)
        }
        files[number] = entry.count > 0 ? entry : nil
        return entry.count > 0 ? nil : entry.file
    }

    // MARK: - Lookups

    /// Increments the lookup count of each inode. Called before the reply, because FORGET may follow at once.
    func noteLookup(of numbers: some Sequence<InodeNumber>) {
        lock.withLock { for number in numbers { lookups[number, default: 0] += 1 } }
    }

    /// Decrements the lookup count of an inode.
    ///
    /// - Returns: whether the inode has no name and was retained only for the kernel, so that it can be removed.
    func forget(_ number: InodeNumber, lookups count: UInt64) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard let known = lookups[number] else { return false }
        if UInt64(known) > count {
            lookups[number] = known - UInt32(count)
            return false
        }
        lookups[number] = nil
        shrink()
        return files[number] == nil && nameless.remove(number) != nil
    }

    /// The number of inodes that the kernel knows.
    var knownCount: Int { lock.withLock { lookups.count } }

    package func keepsNameless(_ number: InodeNumber) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard files[number] != nil || lookups[number] != nil else {
            nameless.remove(number)
            return false
        }
        nameless.insert(number)
        return true
    }

    /// Releases memory after the kernel has dropped its caches: a dictionary never shrinks by itself.
    private func shrink() {
        guard lookups.capacity > 65_536, lookups.count < lookups.capacity / 16 else { return }
        var smaller = [InodeNumber: UInt32](minimumCapacity: lookups.count * 2)
        for (number, count) in lookups { smaller[number] = count }
        lookups = smaller
    }

    // MARK: - Open files

    /// The open inodes.
    var numbers: [InodeNumber] { lock.withLock { Array(files.keys) } }
}
