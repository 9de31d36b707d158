import Synchronization

/// Runs a worker's body each time it is woken. Several calls before the body runs are one.
///
/// It is made before the worker and before what wakes the worker, so that neither needs the other.
final class WakeSignal: Sendable {
    private struct State {
        var loop: Task<Void, Never>?
        var timer: Task<Void, Never>?
        var isStopped = false
    }

    private let wakes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let state = Mutex(State())

    init() {
        (wakes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Returns at once; from any thread.
    func wake() { continuation.yield() }

    /// Wakes the worker later, and not at the time of an earlier call; nil cancels that.
    func wake(after pause: Duration?) {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = nil
            guard let pause, !state.isStopped else { return }
            state.timer = Task {
                try? await Task.sleep(for: pause)
                if !Task.isCancelled { self.wake() }
            }
        }
    }

    /// Begins to run the body. Does nothing after ``stop()``.
    ///
    /// - Parameter body: returns how long it does not run again.
    func run(_ body: @escaping @Sendable () async -> Duration) {
        state.withLock { state in
            guard state.loop == nil, !state.isStopped else { return }
            state.loop = Task { [wakes] in
                for await _ in wakes {
                    guard !Task.isCancelled else { return }
                    let pause = await body()
                    if pause > .zero { try? await Task.sleep(for: pause) }
                }
            }
        }
    }

    /// Ends the loop and cancels a body that runs.
    func stop() {
        continuation.finish()
        state.withLock { state in
            state.isStopped = true
            state.loop?.cancel()
            state.timer?.cancel()
        }
    }

    /// Waits until the body runs no more, after ``stop()``.
    func ended() async {
        await state.withLock(\.loop)?.value
    }
}
