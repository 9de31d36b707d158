import Foundation
import Replica
import Synchronization
import Syscalls
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
/// requires all opens of an inode to agree. What the next owner of the mount has to know of it is also in the
/// ``HandleTable``, before a reply depends on it.
final class OpenFile: @unchecked Sendable {
    // Unchecked: `state` is only accessed under `lock`, a pthread mutex because concurrent readers of a file contend for it.
    private let lock = NSLock()
    private var state: State
    /// Held while the kernel gets a size. A reader for which it may wait then does not take it: ``ReadGrant/reachesEnd``.
    private let telling = NSLock()
    let number: InodeNumber
    // The owner outlives the file: only the volume, which retains it, uses either.
    private unowned let owner: OpenFiles
    fileprivate let used: Atomic<Bool>

    /// Whether a process may have seen content of the version in `state`. As long as none has, an open file follows the
    /// newest version. It stands outside the lock because transactions read it.
    var isUsed: Bool {
        get { used.load(ordering: .sequentiallyConsistent) }
        set { if newValue != isUsed { owner.setUsed(newValue, self) } }
    }

    struct State {
        var isDecided = false
        var version: [UInt8] = []
        var size: Int64 = 0
        /// The sizes that the kernel may know of a file that was not used when it was opened; nil for other files. An attempt at the first
        /// read changes `version` and `size`, which does not change what the kernel knows.
        var knownSizes: ClosedRange<Int64>?
        /// Behind all that was requested before the kernel knew the size.
        var requestedEnd: Int64 = 0
        /// Whether each open has the kernel drop its pages of earlier opens (``OpenGrant/cachedAnew``): until the first read is requested.
        /// The kernel drops them after the answer to OPEN, in the opening process, so one that opens the file at the same time may be ahead
        /// of the first. Each process that may request the first read has dropped them before, and what comes later into the cache is of
        /// the version that this read takes. An open after it keeps the pages: the process would wait for the reads of others.
        var dropsPages = false
        var isComplete = false
        /// Whether the file was open for writing since: its length is that of its content file.
        var isWritten = false { didSet { if isWritten { knownSizes = nil } } }
        var descriptor: OwnedDescriptor?
        var backing: Int32?

        /// Whether reading may need content from the remote.
        var mayBeFetched: Bool { !isComplete && !isWritten && size > 0 }

        /// `size`, where the kernel may know a smaller one.
        var sizeToTell: Int64? { knownSizes.flatMap { $0.lowerBound < size ? size : nil } }

        /// Whether the kernel may know a larger size than `size`.
        var isShorterThanKnown: Bool { knownSizes.map { $0.upperBound > size } ?? false }

        /// The kernel gets a size with the attributes of the file.
        mutating func noteAnswer(_ size: Int64) {
            knownSizes = knownSizes.map { min($0.lowerBound, size)...max($0.upperBound, size) }
        }

        /// The kernel has been told of a file that is longer.
        mutating func forgetSmallerSizes() {
            knownSizes = isShorterThanKnown ? knownSizes.map { size...$0.upperBound } : nil
        }

        /// The kernel has been told of a file that is shorter.
        mutating func forgetLargerSizes() {
            knownSizes = sizeToTell == nil ? nil : knownSizes.map { $0.lowerBound...size }
        }
    }

    fileprivate init(number: InodeNumber, owner: OpenFiles, content: HandleTable.OpenContent = .init()) {
        self.number = number
        self.owner = owner
        used = Atomic(content.isUsed)
        state = State(
            isDecided: content.isDecided, isComplete: content.isComplete, isWritten: content.isWritten,
            backing: content.backing)
    }

    /// The kernel is about to get a size with the attributes of the file.
    func noteAnswer(_ size: Int64) {
        telling.withLock { withState { $0.noteAnswer(size) } }
    }

    /// Calls `tell` with the state of a file of which the kernel may know a smaller size. The kernel learns no other size meanwhile.
    func tellSize(_ tell: (State) -> Void) {
        telling.withLock {
            let state = withState { $0 }
            guard state.sizeToTell != nil else { return }
            tell(state)
            withState { $0.forgetSmallerSizes() }
        }
    }

    /// Runs `body` with exclusive access to the state, and stores in the table what it changed.
    func withState<Value, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        lock.lock()
        defer { lock.unlock() }
        let before = (state.isDecided, state.isComplete, state.isWritten, state.backing)
        defer {
            if before != (state.isDecided, state.isComplete, state.isWritten, state.backing) {
                owner.store(state, of: self)
            }
        }
        return try body(&state)
    }
}

/// The inodes that processes have open, and the lookup counts of the kernel.
///
/// The kernel may use a node without an open handle (path resolution, O_PATH, a working directory) until it has sent FORGET
/// for every answered lookup. The counts of 64 nodes in sequence take 72 bytes, at a load factor of at most three quarters: 2 to 4 MB for a
/// million cached nodes where all are cached, and at most 230 bytes for a node whose neighbours are not.
///
/// All counts are in a ``HandleTable``, which outlives the process. A count and the fact that a request was counted are one
/// change of it, so that a request that the kernel sends again to the next owner is counted once. A crash can only leave
/// counts that are too high, and the inode then stays known or open until the unmount: after a request that was counted,
/// not answered and not sent again because its caller was killed; after a LOOKUP that finds another node when it is sent
/// again; after FORGET, which the kernel does not send again.
package final class OpenFiles: OpenInodes, @unchecked Sendable {
    // Unchecked: all state is only accessed under `lock`, a pthread mutex because every READ of the mount locks it.
    private let lock = NSLock()
    private var table: HandleTable
    /// Has the open inodes of the table.
    private var files: [InodeNumber: OpenFile] = [:]
    private struct Claim {
        var count = 0
        var waiters: [@Sendable () -> Void] = []
    }
    /// The files that this process is writing itself (``Volume/beginImport(of:)``). They are not in the table: they end with the
    /// process, and recovery compares what it has written.
    private var imports: Set<InodeNumber> = []
    /// The inodes that running transactions have claimed.
    private var claims: [InodeNumber: Claim] = [:]

    /// - Parameter table: empty, or the one of the process that owned the mount before.
    ///   ``Volume/restoreOpenFiles()`` completes its open files before the first request.
    package init(table: consuming HandleTable) {
        let open = table.openNumbers.map { ($0, table.entry(of: $0)?.content ?? .init()) }
        self.table = table
        for (key, content) in open {
            let number = InodeNumber(key)
            files[number] = OpenFile(number: number, owner: self, content: content)
        }
    }

    /// No open files, in a new table.
    package convenience init() throws(Errno) { self.init(table: try HandleTable()) }

    /// What the owner of the mount says about it in the table.
    package var mountDescription: [UInt8] { lock.withLock { table.description } }

    /// - Throws: ENAMETOOLONG for more bytes than the table has room for.
    package func setMountDescription(_ bytes: [UInt8]) throws(Errno) {
        guard bytes.count <= HandleTable.Layout.descriptionCapacity else { throw .fileNameTooLong }
        lock.withLock { table.description = bytes }
    }

    /// The descriptor of the table's memory, for the process that keeps it. Valid as long as this object.
    package var tableDescriptor: FileDescriptor { lock.withLock { table.descriptor } }

    package func isOpen(_ number: InodeNumber) -> Bool {
        lock.withLock { files[number] != nil || imports.contains(number) }
    }

    package func isOpenAndUsed(_ number: InodeNumber) -> Bool { file(number)?.isUsed ?? false }

    package func isOpenForWriting(_ number: InodeNumber) -> Bool {
        lock.withLock {
            imports.contains(number) || table.entry(of: number.key).map { $0.writers > $0.closing } ?? false
        }
    }

    /// A writer has closed the file. ``release(_:forWriting:wasNoted:request:undoing:)`` follows when the change is recorded.
    ///
    /// - Returns: false if the request was counted before.
    func noteClosing(_ number: InodeNumber, request: RequestNumber? = nil) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        if hasCounted(request, number) { return false }
        guard var entry = table.entry(of: number.key) else { return true }
        entry.closing = min(entry.closing + 1, entry.writers)
        table.set(entry, of: number.key, counting: request.map { .handle($0.rawValue) })
        return true
    }

    func file(_ number: InodeNumber) -> OpenFile? {
        lock.lock()
        defer { lock.unlock() }
        return files[number]
    }

    /// Increments the open count, unless the request was counted before.
    func retain(_ number: InodeNumber, forWriting: Bool, request: RequestNumber? = nil) -> OpenFile {
        lock.lock()
        defer { lock.unlock() }
        if let file = files[number], hasCounted(request, number) { return file }
        let file = files[number] ?? OpenFile(number: number, owner: self)
        var entry = table.entry(of: number.key) ?? HandleTable.Entry()
        entry.count += 1
        if forWriting { entry.writers += 1 }
        table.set(entry, of: number.key, counting: request.map { .handle($0.rawValue) })
        files[number] = file
        return file
    }

    /// Whether a file has more writers than `closed` contains of it, besides those that have closed it.
    ///
    /// - Parameter areNoted: whether those of `closed` are among the writers that have closed it (``noteClosing(_:request:)``).
    func hasOtherWriters(_ number: InodeNumber, than closed: [InodeNumber], areNoted: Bool) -> Bool {
        lock.withLock {
            let entry = table.entry(of: number.key) ?? HandleTable.Entry()
            let known = closed.count { $0 == number } + (areNoted ? 0 : Int(entry.closing))
            return imports.contains(number) || Int(entry.writers) > known
        }
    }

    /// Decrements the open count, unless the request was counted before.
    ///
    /// - Parameters:
    ///   - wasNoted: whether ``noteClosing(_:request:)`` preceded.
    ///   - request: the RELEASE.
    ///   - undone: the request that opened the file and failed. It is not counted any more.
    /// - Returns: the file if this was the last handle, else nil.
    func release(
        _ number: InodeNumber, forWriting: Bool, wasNoted: Bool = false, request: RequestNumber? = nil,
        undoing undone: RequestNumber? = nil
    ) -> OpenFile? {
        lock.lock()
        defer { lock.unlock() }
        guard !hasCounted(request, number), var entry = table.entry(of: number.key) else { return nil }
        entry.count -= 1
        if forWriting, entry.writers > 0 { entry.writers -= 1 }
        if wasNoted, entry.closing > 0 { entry.closing -= 1 }
        entry.writers = min(entry.writers, entry.count)
        entry.closing = min(entry.closing, entry.writers)
        table.set(
            entry, of: number.key, counting: request.map { .handle($0.rawValue) },
            uncounting: undone.map { .handle($0.rawValue) })
        guard entry.count == 0 else { return nil }
        return files.removeValue(forKey: number)
    }

    /// Whether a request that the kernel sends again was counted for an inode.
    private func hasCounted(_ request: RequestNumber?, _ number: InodeNumber) -> Bool {
        guard let request, request.isResent else { return false }
        return table.hasCounted(.handle(request.rawValue), for: number.key)
    }

    // MARK: - Imports

    func beginImport(of number: InodeNumber) { lock.withLock { _ = imports.insert(number) } }

    /// - Returns: whether the file was being imported, and is not open any more.
    func endImport(of number: InodeNumber) -> Bool {
        lock.withLock { imports.remove(number) != nil && files[number] == nil }
    }

    // MARK: - Claims

    package func claim(_ number: InodeNumber) { lock.withLock { claims[number, default: Claim()].count += 1 } }

    package func endClaims(_ numbers: [InodeNumber]) {
        guard !numbers.isEmpty else { return }
        let waiters = lock.withLock {
            numbers.flatMap { number -> [@Sendable () -> Void] in
                claims[number]?.count -= 1
                guard let claim = claims[number], claim.count == 0 else { return [] }
                claims[number] = nil
                return claim.waiters
            }
        }
        for waiter in waiters { waiter() }
    }

    package func whenUnclaimed(_ number: InodeNumber, _ body: @escaping @Sendable () -> Void) {
        let isFree = lock.withLock {
            claims[number]?.waiters.append(body)
            return claims[number] == nil
        }
        if isFree { body() }
    }

    func isClaimed(_ number: InodeNumber) -> Bool { lock.withLock { claims[number] != nil } }

    // MARK: - Lookups

    /// Increments the lookup count of each inode. Called before the reply, because FORGET may follow at once.
    ///
    /// - Parameter request: nil for READDIRPLUS: entries of one that the kernel sends again are counted twice.
    func noteLookup(of numbers: some Sequence<InodeNumber>, request: RequestNumber? = nil) {
        lock.lock()
        defer { lock.unlock() }
        for number in numbers {
            let counted = request.map { HandleTable.CountedRequest.lookup($0.rawValue) }
            if let counted, request?.isResent == true, table.hasCounted(counted, for: number.key) { continue }
            table.noteLookup(of: number.key, counting: counted)
        }
    }

    /// Decrements the lookup count of an inode.
    ///
    /// - Parameter undone: the request whose lookup the kernel has not received. It is not counted any more.
    /// - Returns: whether the inode has no name and was retained only for the kernel, so that it can be removed.
    func forget(_ number: InodeNumber, lookups count: UInt64, undoing undone: RequestNumber? = nil) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        return table.forget(number.key, lookups: count, uncounting: undone.map { .lookup($0.rawValue) })
            && files[number] == nil
    }

    /// The number of inodes that the kernel knows.
    var knownCount: Int { lock.withLock { table.knownCount } }

    package func keepsNameless(_ number: InodeNumber) -> Bool {
        lock.lock()
        defer { lock.unlock() }
        // The last close of an open inode is always reported; that of its last lookup only with this mark.
        let isKnown = table.noteNameless(number.key)
        return isKnown || files[number] != nil
    }

    // MARK: - Open files

    /// Closes the content files that are held for processes, after the end of the mount: no request follows.
    package func closeContents() {
        let open = lock.withLock { Array(files.values) }
        for file in open {
            file.withState { $0.descriptor = nil }
        }
    }

    var numbers: [InodeNumber] { lock.withLock { Array(files.keys) } }

    /// The open files, and the inodes of handles for writing that were closed and whose changes are not recorded yet, once
    /// for each handle.
    var restored: (files: [OpenFile], closing: [InodeNumber]) {
        lock.withLock {
            let closing = files.keys.flatMap { number in
                Array(repeating: number, count: Int(table.entry(of: number.key)?.closing ?? 0))
            }
            return (Array(files.values), closing)
        }
    }

    fileprivate func store(_ state: OpenFile.State, of file: OpenFile) {
        change(file) {
            $0.isDecided = state.isDecided
            $0.isComplete = state.isComplete
            $0.isWritten = state.isWritten
            $0.backing = state.backing
        }
    }

    fileprivate func setUsed(_ isUsed: Bool, _ file: OpenFile) {
        change(file) {
            file.used.store(isUsed, ordering: .sequentiallyConsistent)
            $0.isUsed = isUsed
        }
    }

    private func change(_ file: OpenFile, _ body: (inout HandleTable.OpenContent) -> Void) {
        lock.lock()
        defer { lock.unlock() }
        // The file of handles that are closed has no entry, or that of its successor.
        guard files[file.number] === file, var entry = table.entry(of: file.number.key) else {
            var content = HandleTable.OpenContent()
            return body(&content)
        }
        let before = entry.content
        body(&entry.content)
        if entry.content != before { table.set(entry, of: file.number.key) }
    }
}

extension InodeNumber {
    fileprivate var key: UInt64 { UInt64(bitPattern: rawValue) }
}
