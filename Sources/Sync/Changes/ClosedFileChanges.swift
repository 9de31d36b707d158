import Replica
import Synchronization

/// Takes in remote changes that waited for the last close of a file, and removes what lost its name while the kernel knew it.
/// Closes are collected for some milliseconds, because a program that reads or removes a thousand files closes a thousand.
final class ClosedFileChanges: SyncPart {
    private struct State {
        var waiting: [InodeNumber] = []
        var isScheduled = false
        var isStopped = false
        var lastSettled = ContinuousClock.now - .seconds(1)
        var burst = BurstOfChanges()
    }

    private let state = Mutex(State())
    let context: SyncContext
    private static let pause = Duration.milliseconds(5)
    /// Soon after another time.
    private static let busyPause = Duration.milliseconds(50)
    /// So many are settled in one transaction: programs wait for it.
    private static let mostAtOnce = 128

    init(_ context: SyncContext) { self.context = context }

    /// The last handle of an inode was closed. Returns at once; from any thread.
    func note(_ number: InodeNumber) {
        let pause = state.withLock { state -> Duration? in
            guard !state.isStopped else { return nil }
            state.waiting.append(number)
            state.burst.note(at: .now)
            defer { state.isScheduled = true }
            guard !state.isScheduled else { return nil }
            return ContinuousClock.now - state.lastSettled < Self.busyPause * 2 ? Self.busyPause : Self.pause
        }
        guard let pause else { return }
        Task {
            try? await Task.sleep(for: pause)
            // While a program closes or removes many, it gets the machine.
            while let end = state.withLock({ $0.isStopped ? nil : $0.burst.endOfPrecedence(at: .now) }) {
                try? await Task.sleep(until: end)
            }
            await settle()
        }
    }

    /// Takes in what waits, and nothing after that: what is closed then is taken in when the domain is opened again.
    func stop() async {
        state.withLock { $0.isStopped = true }
        await settle()
    }

    func settle() async {
        let closed = state.withLock { state in
            defer { (state.waiting, state.isScheduled, state.lastSettled) = ([], false, .now) }
            return state.waiting
        }
        do {
            for begin in stride(from: 0, to: closed.count, by: Self.mostAtOnce) {
                let some = closed[begin..<min(begin + Self.mostAtOnce, closed.count)]
                let waiting = try replica.database.withNewsForClosing(Array(some))
                guard !waiting.isEmpty else { continue }
                try await commits.commit { ingestion in
                    for number in waiting { try ingestion.versions.settle(number) }
                }
            }
        } catch {
            warnings.report("\(closed.count) files were closed and cannot be settled: \(error)")
        }
    }
}
