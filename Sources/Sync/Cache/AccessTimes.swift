import FileProvider
import Replica
import Synchronization

/// Records when files were opened, for the LRU order of eviction. Recording takes one lock; the times are written
/// later, in one transaction, for each file at most once a minute.
final class AccessTimes: Sendable {
    private struct State {
        var waiting: [InodeNumber: FileTimestamp] = [:]
        /// The files recorded in this minute.
        var noted: Set<InodeNumber> = []
        var minute: Int64 = 0
        var isScheduled = false
    }

    private let replica: Replica
    private let state = Mutex(State())
    private static let pause = Duration.seconds(2)
    /// So many files opened in a minute are remembered; the rest may be written once more.
    private static let mostNoted = 50_000

    init(replica: Replica) {
        self.replica = replica
    }

    /// A file was opened. Returns at once; from any thread.
    func note(_ number: InodeNumber) {
        let now = FileTimestamp.now
        let isFirst = state.withLock { state in
            let minute = now.seconds / 60
            if minute != state.minute || state.noted.count >= Self.mostNoted {
                state.noted.removeAll(keepingCapacity: true)
                state.minute = minute
            }
            guard state.noted.insert(number).inserted else { return false }
            state.waiting[number] = now
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        guard isFirst else { return }
        Task {
            try? await Task.sleep(for: Self.pause)
            await self.write()
        }
    }

    /// Writes down what was noted.
    func write() async {
        let times = state.withLock { state in
            defer { state.waiting = [:] }
            state.isScheduled = false
            return state.waiting
        }
        // A lost access time costs at most one download.
        try? await replica.recordUse(times)
    }
}
