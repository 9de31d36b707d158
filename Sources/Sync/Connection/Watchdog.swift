import FileProvider
import Synchronization

/// Tells a watchdog that something moves.
final class CallProgress: Sendable {
    private struct State {
        var last = ContinuousClock.now
        /// The number of the call's requests that wait for a connection or for another call.
        var waits = 0
    }

    private let state = Mutex(State())

    /// Something moved.
    func advance() {
        state.withLock { $0.last = .now }
    }

    /// A request of the call begins or ends waiting for a connection or for another call. That counts as progress.
    func wait(_ isWaiting: Bool) {
        state.withLock { state in
            state.waits += isWaiting ? 1 : -1
            state.last = .now
        }
    }

    var lastAdvance: ContinuousClock.Instant { state.withLock { $0.waits > 0 ? .now : $0.last } }
}

/// Cancels calls that make no progress. The caller does not wait for a call that ignores its cancellation.
struct Watchdog: Sendable {
    /// How long nothing may move. Longer than any server that is still worth waiting for takes to answer.
    static let usualPatience = Duration.seconds(90)

    private static let longestSleep = Duration.seconds(2)

    let patience: Duration

    /// Runs a call.
    ///
    /// - Throws: `timedOut` when nothing moved for too long; `CancellationError` at once when the task is cancelled.
    func run<Value: Sendable>(
        _ progress: CallProgress = CallProgress(), _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let answer = OneShot<Value>()
        let work = Task {
            do {
                answer.give(.success(try await body()))
            } catch {
                answer.give(.failure(error))
            }
        }
        let watch = Task { [patience] in
            while true {
                let due = progress.lastAdvance + patience
                guard due > .now else { break }
                // A sleep that is cancelled leaves its timer behind until it would have ended.
                try await Task.sleep(until: min(due, .now + Self.longestSleep), clock: .continuous)
            }
            // Before the cancellation, whose error would be the answer otherwise.
            answer.give(.failure(FileProviderError(.timedOut, "the remote made no progress for \(patience)")))
            work.cancel()
        }
        defer { watch.cancel() }
        return try await answer.value {
            work.cancel()
            answer.give(.failure(CancellationError()))
        }
    }
}
