import FileProvider
import Replica
import Synchronization

/// Compares content that is here with the remote's where the remote may have written it without another content version
/// (``ProviderFeatures/contentVersionsMayRepeat``). What is not equal becomes dataless, as with a new version.
///
/// Its list is not durable: the base of such an item keeps its old metadata version, with a mark, until then, so that each comparison of
/// the directory doubts the content again, whatever else was changed since.
actor ContentDoubts: SyncPart {
    /// The files to compare; first those that a process has open. It is made before what fills it.
    final class Queue: Sendable {
        private struct State {
            var inodes: [Int64: InodeNumber] = [:]
            var rows: [InodeNumber: Set<Int64>] = [:]
            /// The rows of files that a process has open, or had.
            var opened: Set<Int64> = []
            /// The rows of files that could not be compared because they were open for writing, or not whole here.
            var inUse: [InodeNumber: Set<Int64>] = [:]

            mutating func insert(_ file: DoubtfulContent) {
                endUse(of: file)
                guard inodes[file.row] != file.inode else { return }
                // It has got another inode.
                remove(file.row)
                inodes[file.row] = file.inode
                rows[file.inode, default: []].insert(file.row)
            }

            mutating func endUse(of file: DoubtfulContent) {
                inUse[file.inode]?.remove(file.row)
                if inUse[file.inode]?.isEmpty == true { inUse[file.inode] = nil }
            }

            mutating func remove(_ row: Int64) {
                guard let inode = inodes.removeValue(forKey: row) else { return }
                opened.remove(row)
                rows[inode]?.remove(row)
                if rows[inode]?.isEmpty == true { rows[inode] = nil }
            }
        }

        let signal = WakeSignal()
        private let state = Mutex(State())

        /// Returns at once; from any thread.
        ///
        /// - Parameter isOpen: whether a process has an inode open.
        func add(_ added: [DoubtfulContent], isOpen: (InodeNumber) -> Bool) {
            let opened = Set(added.filter { isOpen($0.inode) }.map(\.row))
            state.withLock { state in
                for file in added { state.insert(file) }
                state.opened.formUnion(opened)
            }
            signal.wake()
        }

        /// As ``add(_:isOpen:)``, for a worker that is awake.
        func insert(_ added: [DoubtfulContent]) {
            state.withLock { state in
                for file in added { state.insert(file) }
            }
        }

        func take() -> DoubtfulContent? {
            state.withLock { state in
                guard let row = state.opened.first ?? state.inodes.keys.first, let inode = state.inodes[row] else {
                    return nil
                }
                state.remove(row)
                return DoubtfulContent(row: row, inode: inode)
            }
        }

        func contains(_ row: Int64) -> Bool { state.withLock { $0.inodes[row] != nil } }

        /// Returns at once; from any thread.
        func fileWasOpened(_ number: InodeNumber) {
            state.withLock { state in
                if let rows = state.rows[number] { state.opened.formUnion(rows) }
            }
        }

        /// A file is compared, unless it is open for writing or not whole here: then it waits for the end of that.
        func noteInUse(_ file: DoubtfulContent) {
            state.withLock { _ = $0.inUse[file.inode, default: []].insert(file.row) }
        }

        /// A file was compared, or waits for another reason.
        func forgetInUse(_ file: DoubtfulContent) { state.withLock { $0.endUse(of: file) } }

        /// What waited for a file is compared now. Returns at once; from any thread.
        func useMayHaveEnded(of number: InodeNumber) {
            let isAny = state.withLock { state in
                guard let rows = state.inUse[number] else { return false }
                for row in rows { state.insert(DoubtfulContent(row: row, inode: number)) }
                return true
            }
            if isAny { signal.wake() }
        }
    }

    private struct Retry {
        var inode: InodeNumber
        var attempts: Int
        var next: ContinuousClock.Instant
    }

    nonisolated let context: SyncContext
    private let queue: Queue
    private var retries: [Int64: Retry] = [:]
    /// The metadata versions with which rows were compared that were in the queue again by then. Their content is that version's.
    private var compared: [Int64: [UInt8]] = [:]

    init(_ context: SyncContext, queue: Queue) {
        self.context = context
        self.queue = queue
    }

    func start() {
        queue.signal.run {
            await self.compareAll()
            return .zero
        }
        queue.signal.wake()
    }

    func stop() {
        queue.signal.stop()
    }

    /// The remote may be asked again. Returns at once; from any thread.
    nonisolated func wake() { queue.signal.wake() }

    /// A process has opened a file: it is compared before those that no process reads. Returns at once; from any thread.
    nonisolated func fileWasOpened(_ number: InodeNumber) { queue.fileWasOpened(number) }

    /// No process has a file open any more, or none for writing: a comparison that waited for that is made now. Returns at once; from any
    /// thread.
    nonisolated func useMayHaveEnded(of number: InodeNumber) { queue.useMayHaveEnded(of: number) }

    /// For tests. How often in a row the content of an item could not be compared.
    func attempts(ofItem row: Int64) -> Int { retries[row]?.attempts ?? 0 }

    private func compareAll() async {
        let now = ContinuousClock.now
        queue.insert(
            retries.filter { $0.value.next <= now }.map { DoubtfulContent(row: $0.key, inode: $0.value.inode) })
        while !Task.isCancelled, connection.state == .online, let file = queue.take() {
            let row = file.row
            // Noted before it is looked at: it may be closed, or become whole, just after that.
            queue.noteInUse(file)
            do {
                if try await compare(row) {
                    queue.forgetInUse(file)
                    retries[row] = nil
                    continue
                }
            } catch {
                // It is compared again after a pause, also if it is not there: it may be one that is just being renamed. A process that
                // opens and closes it all the time must not have it fetched each time.
                queue.forgetInUse(file)
            }
            let attempts = (retries[row]?.attempts ?? 0) + 1
            retries[row] = Retry(
                inode: file.inode, attempts: attempts, next: .now + Backoff.download.pause(after: attempts - 1))
        }
        // What is due while the remote cannot be reached waits for the word that it can.
        let next = retries.values.map(\.next).filter { $0 > now }.min()
        queue.signal.wake(after: next.map { max(.zero, $0 - .now) })
    }

    /// - Returns: false when the file is open for writing, or its content is being fetched: it has to be compared later.
    private func compare(_ row: Int64) async throws -> Bool {
        let last = compared.removeValue(forKey: row)
        guard let item = try replica.database.item(row: row), let identifier = item.identifier,
            !item.changedFields.contains(.contents)
        else { return true }
        // The kernel may write it without a request.
        guard item.inode.content != .partial, item.inode.contentStamp == nil else {
            return !item.base.version.isContentDoubted
        }
        let request = FileProviderRequest(reason: .synchronization)
        let remote = try await calls.make(.item, for: request) { try await $0.item(for: identifier, request: request) }
        // The answer to a change that was sent may have given the base the present metadata version: the doubt stays.
        let (present, base) = (remote.itemVersion, item.base.version)
        guard present.contentVersion == base.contentVersion else { return true }
        if item.inode.content == .dataless {
            return try await commits.commit {
                try $0.versions.settleDoubtWithoutContent(since: base.metadataVersion, with: remote)
            }
        }
        let (number, generation) = (item.inode.number, item.inode.contentGeneration)
        // A listing may have repeated the version that it was just compared with.
        let isKnown = present.metadataVersion == last
        let isEqual = try await isKnown ? true : ContentComparison(context: context).isEqual(remote, to: number)
        let isSettled = try await commits.commit { [queue] in
            try $0.versions.settleDoubt(
                of: number, generation: generation, since: base.metadataVersion, with: remote, isEqual: isEqual,
                isDoubtedAgain: queue.contains(row))
        }
        if isSettled, queue.contains(row) { compared[row] = present.metadataVersion }
        return isSettled
    }
}
