import FileProvider
import Replica
import Synchronization

/// Takes in remote changes that waited for the last close of a file. Closes are collected for some milliseconds,
/// because a program that reads a thousand files closes a thousand.
final class ClosedFileChanges: SyncPart {
    private struct State {
        var waiting: [InodeNumber] = []
        var isScheduled = false
    }

    private let state = Mutex(State())
    let context: SyncContext
    private static let pause = Duration.milliseconds(5)

    init(_ context: SyncContext) { self.context = context }

    /// The last handle of an inode was closed. Returns at once; from any thread.
    func note(_ number: InodeNumber) {
        let isFirst = state.withLock { state in
            state.waiting.append(number)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        guard isFirst else { return }
        Task {
            try? await Task.sleep(for: Self.pause)
            await settle()
        }
    }

    private func settle() async {
        let closed = state.withLock { state in
            defer { state = State() }
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
