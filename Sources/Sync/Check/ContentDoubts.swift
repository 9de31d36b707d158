import FileProvider
import Replica
import Synchronization

/// Compares content that is here with the remote's where the remote may have written it without another content version
/// (``ProviderFeatures/contentVersionsMayRepeat``). What is not equal becomes dataless, as with a new version.
///
/// Its list is not durable: the base of such an item keeps its old metadata version until then, so that each comparison of the directory
/// doubts the content again.
actor ContentDoubts: SyncPart {
    /// The rows of the files to compare. It is made before what fills it.
    final class Queue: Sendable {
        let signal = WakeSignal()
        private let rows = Mutex<Set<Int64>>([])

        /// Returns at once; from any thread.
        func add(_ added: [Int64]) {
            insert(added)
            signal.wake()
        }

        /// As ``add(_:)``, for a worker that is awake.
        func insert(_ added: [Int64]) { rows.withLock { $0.formUnion(added) } }

        func take() -> Int64? { rows.withLock { $0.popFirst() } }

        func contains(_ row: Int64) -> Bool { rows.withLock { $0.contains(row) } }
    }

    private struct Retry {
        var attempts: Int
        var next: ContinuousClock.Instant
    }

    nonisolated let context: SyncContext
    private let queue: Queue
    private var retries: [Int64: Retry] = [:]
    /// The metadata versions with which rows were compared that were in the queue again by then.
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

    private func compareAll() async {
        let now = ContinuousClock.now
        queue.insert(retries.filter { $0.value.next <= now }.map(\.key))
        while !Task.isCancelled, connection.state == .online, let row = queue.take() {
            do {
                if try await compare(row) {
                    retries[row] = nil
                    continue
                }
            } catch {
                // It is compared again after a pause, also if it is not there: it may be one that is just being renamed.
            }
            let attempts = (retries[row]?.attempts ?? 0) + 1
            retries[row] = Retry(attempts: attempts, next: .now + Backoff.download.pause(after: attempts - 1))
        }
        // What is due while the remote cannot be reached waits for the word that it can.
        let next = retries.values.map(\.next).filter { $0 > now }.min()
        queue.signal.wake(after: next.map { max(.zero, $0 - .now) })
    }

    /// - Returns: false when the file is open for writing, and has to be compared later.
    private func compare(_ row: Int64) async throws -> Bool {
        let last = compared.removeValue(forKey: row)
        guard let item = try replica.database.item(row: row), let identifier = item.identifier,
            item.inode.content == .materialized, !item.changedFields.contains(.contents)
        else { return true }
        // The kernel may write it without a request.
        guard item.inode.contentStamp == nil else { return false }
        let request = FileProviderRequest(reason: .synchronization)
        let remote = try await calls.make(.item, for: request) { try await $0.item(for: identifier, request: request) }
        // A later change that attributes explain, such as a rename, may have given the base the present metadata version: the doubt stays.
        let (present, base) = (remote.itemVersion, item.base.version)
        guard present.contentVersion == base.contentVersion,
            present.metadataVersion != base.metadataVersion || present.metadataVersion != last
        else { return true }
        let (number, generation) = (item.inode.number, item.inode.contentGeneration)
        let isEqual = try await ContentComparison(context: context).isEqual(remote, to: number)
        try await commits.commit {
            try $0.versions.settleDoubt(of: number, generation: generation, with: remote, isEqual: isEqual)
        }
        if queue.contains(row) { compared[row] = present.metadataVersion }
        return true
    }
}
