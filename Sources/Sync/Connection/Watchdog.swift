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

    /// As ``lastAdvance``, also of a call that waits.
    var lastMove: ContinuousClock.Instant { state.withLock { $0.last } }

    var isWaiting: Bool { state.withLock { $0.waits > 0 } }
}

/// Asks whether the remote still answers while a call stands still, for a provider that repeats by itself what gets no answer.
struct StandstillProbe: Sendable {
    /// The pauses before the first question and before each further one.
    let pauses: Backoff
    /// Why the remote does not answer; nil if it does.
    let ask: @Sendable () async -> FileProviderError?
    /// Called if it does not, and the call has not moved meanwhile.
    let onSilence: @Sendable (FileProviderError) -> Void
}

/// Cancels calls that make no progress. The caller does not wait for a call that ignores its cancellation.
struct Watchdog: Sendable {
    /// How long nothing may move. Longer than any server that is still worth waiting for takes to answer.
    static let usualPatience = Duration.seconds(90)

    private static let longestSleep = Duration.seconds(2)

    let patience: Duration

    /// Runs a call.
    ///
    /// - Parameter probe: asks while the call stands still. If the remote does not answer, the call fails with its error, unless it waits:
    ///   what sends or copies much may go on when the remote is there again.
    /// - Throws: `timedOut` when nothing moved for too long; `CancellationError` at once when the task is cancelled.
    func run<Value: Sendable>(
        _ progress: CallProgress = CallProgress(), probe: StandstillProbe? = nil,
        _ body: @escaping @Sendable () async throws -> Value
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
            var (questions, asked) = (0, ContinuousClock.now)
            while true {
                let (due, last) = (progress.lastAdvance + patience, progress.lastMove)
                guard due > .now else { break }
                if last > asked { questions = 0 }
                if let probe, max(last, asked) + probe.pauses.pause(after: questions) <= .now {
                    questions += 1
                    asked = .now
                    if let failure = await probe.ask(), progress.lastMove == last, !Task.isCancelled {
                        let goesOn = progress.isWaiting
                        probe.onSilence(failure)
                        if !goesOn {
                            answer.give(.failure(failure))
                            work.cancel()
                            return
                        }
                    }
                }
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
