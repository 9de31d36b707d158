import FileProvider
import Replica
import Synchronization

/// Takes in remote changes that waited for the last close of a file, and removes what lost its name while the kernel knew it.
/// Closes are collected for some milliseconds, because a program that reads or removes a thousand files closes a thousand.
final class ClosedFileChanges: SyncPart {
    private struct State {
        var waiting: [InodeNumber] = []
        var isScheduled = false
        var lastSettled = ContinuousClock.now - .seconds(1)
    }

    private let state = Mutex(State())
    let context: SyncContext
    private static let pause = Duration.milliseconds(5)
    /// Soon after another time.
    private static let busyPause = Duration.milliseconds(50)

    init(_ context: SyncContext) { self.context = context }

    /// The last handle of an inode was closed. Returns at once; from any thread.
    func note(_ number: InodeNumber) {
        let pause = state.withLock { state -> Duration? in
            state.waiting.append(number)
            defer { state.isScheduled = true }
            guard !state.isScheduled else { return nil }
            return ContinuousClock.now - state.lastSettled < Self.busyPause * 2 ? Self.busyPause : Self.pause
        }
        guard let pause else { return }
        Task {
            try? await Task.sleep(for: pause)
            await settle()
        }
    }

    private func settle() async {
        let closed = state.withLock { state in
            defer { state = State(lastSettled: .now) }
            return state.waiting
        }
        do {
            let waiting = try replica.database.withNewsForClosing(closed)
            guard !waiting.isEmpty else { return }
            try await commits.commit { ingestion in
                for number in waiting { try ingestion.versions.settle(number) }
            }
        } catch {
            warnings.report("\(closed.count) files were closed and cannot be settled: \(error)")
        }
    }
}
