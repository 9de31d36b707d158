import Foundation
import Replica
import Synchronization
import SystemPackage

/// Makes the kernel read and write an open file's local content by itself.
package protocol PassthroughRegistry: Sendable {
    /// - Returns: the number under which the kernel knows the file.
    /// - Throws: when the kernel or the caller's rights do not allow it.
    func register(_ descriptor: FileDescriptor) throws(Errno) -> Int32
    func unregister(_ backing: Int32)
}

/// An inode that is open: by how many, how, and of which content version.
///
/// How it is served is decided at the first open and kept to the last close, because the kernel wants all opens of an
/// inode to agree.
final class OpenFile: @unchecked Sendable {
    // Unchecked: `state` is only touched under `lock`, a pthread mutex because readers of one file contend for it.
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
        /// Whether somebody has had it open for writing since: its length is its content file's.
        var isWritten = false
        var descriptor: FileDescriptor?
        var backing: Int32?
    }

    init(number: InodeNumber) {
        self.number = number
    }

    /// Runs a body that alone reads and changes the state.
    func withState<Value, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        lock.lock()
        defer { lock.unlock() }
        return try body(&state)
    }
}

/// The inodes that processes have open, and those that the kernel knows.
///
/// The kernel may use a node that nobody has open (a path that is being resolved, O_PATH, a working directory) until it has
/// sent FORGET for every lookup that was answered. The counts take twelve bytes a node at a load of three quarters or less:
/// 16 to 32 MB for a million nodes that the kernel caches.
final class OpenFiles: OpenInodes, @unchecked Sendable {
    // Unchecked: all state is only touched under `lock`, a pthread mutex because every read on the mount passes here.
    private let lock = NSLock()
    private var files: [InodeNumber: Entry] = [:]
    /// How many lookups the kernel has not forgotten, by inode.
    private var lookups: [InodeNumber: UInt32] = [:]
    /// Inodes without a name that are kept because they are open or known to the kernel.
    private var nameless: Set<InodeNumber> = []

    private struct Entry {
        var file: OpenFile
        var count = 0
        var writers = 0
        /// How many of the writers have closed it, though it is not recorded yet.
        var closing = 0
    }

    func isOpen(_ number: InodeNumber) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return files[number] != nil
    }

    func isOpenAndUsed(_ number: InodeNumber) -> Bool { file(number)?.isUsed ?? false }

    func isOpenForWriting(_ number: InodeNumber) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return files[number].map { $0.writers > $0.closing } ?? false
    }

    /// A writer has closed a file; ``release(_:forWriting:)`` comes when what he wrote is recorded.
    func noteClosing(_ number: InodeNumber) {
        lock.lock()
        defer { lock.unlock() }
        files[number]?.closing += 1
    }

    func file(_ number: InodeNumber) -> OpenFile? {
        lock.lock()
        defer { lock.unlock() }
        return files[number]?.file
    }

    /// Counts one more open.
    func retain(_ number: InodeNumber, forWriting: Bool) -> OpenFile {
        lock.lock()
        defer { lock.unlock() }
        var entry = files[number] ?? Entry(file: OpenFile(number: number))
        entry.count += 1
        if forWriting { entry.writers += 1 }
        files[number] = entry
        return entry.file
    }

    /// Whether somebody has a file open for writing beside those who have closed it.
    func hasOtherWriters(_ number: InodeNumber, than closed: [InodeNumber]) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return (files[number]?.writers ?? 0) > closed.count { $0 == number }
    }

    /// Counts one open less.
    ///
    /// - Returns: the file when that was the last.
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

    /// Counts a lookup of each of the inodes, before the kernel is told of it.
    func noteLookup(of numbers: some Sequence<InodeNumber>) {
        lock.lock()
        defer { lock.unlock() }
        for number in numbers { lookups[number, default: 0] += 1 }
    }

    /// The kernel has forgotten lookups of an inode.
    ///
    /// - Returns: whether the inode was kept for the kernel alone, and nobody uses it any more.
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

    /// How many inodes the kernel knows.
    var knownCount: Int {
        lock.lock()
        defer { lock.unlock() }
        return lookups.count
    }

    func keepsNameless(_ number: InodeNumber) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        guard files[number] != nil || lookups[number] != nil else {
            nameless.remove(number)
            return false
        }
        nameless.insert(number)
        return true
    }

    /// Gives memory back after the kernel has dropped its caches: a dictionary never shrinks by itself.
    private func shrink() {
        guard lookups.capacity > 65_536, lookups.count < lookups.capacity / 16 else { return }
        var smaller = [InodeNumber: UInt32](minimumCapacity: lookups.count * 2)
        for (number, count) in lookups { smaller[number] = count }
        lookups = smaller
    }

    // MARK: - Open files

    /// The inodes that are open now.
    var numbers: [InodeNumber] {
        lock.lock()
        defer { lock.unlock() }
        return Array(files.keys)
    }
}
