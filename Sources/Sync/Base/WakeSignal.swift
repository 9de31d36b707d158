import Synchronization

/// Runs a worker's body each time it is woken. Several calls before the body runs are one.
///
/// It is made before the worker and before what wakes the worker, so that neither needs the other.
final class WakeSignal: Sendable {
    private struct State {
        var loop: Task<Void, Never>?
        /// When the worker is to be woken; nil for never.
        var due: ContinuousClock.Instant?
        /// By their ends.
        var timers: [ContinuousClock.Instant: Task<Void, Never>] = [:]
        var isStopped = false
    }

    private let wakes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let state = Mutex(State())
    /// Whether the body has not begun since the last call: each local change wakes several workers, most of which pause.
    private let isWoken = Atomic<Bool>(false)

    init() {
        (wakes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Returns at once; from any thread.
    func wake() {
        if !isWoken.exchange(true, ordering: .acquiringAndReleasing) { continuation.yield() }
    }

    /// Wakes the worker later, and not at the time of an earlier call; nil cancels that.
    func wake(after pause: Duration?) {
        state.withLock { state in
            state.due = state.isStopped ? nil : pause.map { .now + $0 }
            startTimer(&state)
        }
    }

    /// A sleep that is cancelled keeps its memory until its time. So no timer is cancelled for another: one that ends before it is time
    /// sleeps again, and another one is started only where all would end too late.
    private func startTimer(_ state: inout State) {
        guard let due = state.due, !state.timers.keys.contains(where: { $0 <= due }) else { return }
        state.timers[due] = Task {
            try? await Task.sleep(until: due, clock: .continuous)
            self.timerEnded(due)
        }
    }

    private func timerEnded(_ end: ContinuousClock.Instant) {
        let isTime = state.withLock { state in
            state.timers[end] = nil
            guard let due = state.due else { return false }
            guard due <= .now else {
                startTimer(&state)
                return false
            }
            state.due = nil
            return true
        }
        if isTime { wake() }
    }

    /// For tests.
    var timerCount: Int { state.withLock { $0.timers.count } }

    /// Begins to run the body. Does nothing after ``stop()``.
    ///
    /// - Parameter body: returns how long it does not run again.
    func run(_ body: @escaping @Sendable () async -> Duration) {
        state.withLock { state in
            guard state.loop == nil, !state.isStopped else { return }
            state.loop = Task { [weak self, wakes] in
                for await _ in wakes {
                    guard !Task.isCancelled else { return }
                    self?.takeWake()
                    let pause = await body()
                    if pause > .zero { try? await Task.sleep(for: pause) }
                }
            }
        }
    }

    /// Called before the body, which sees what was changed before a call that found the mark.
    private func takeWake() { _ = isWoken.exchange(false, ordering: .acquiringAndReleasing) }

    /// Ends the loop and cancels a body that runs.
    func stop() {
        continuation.finish()
        state.withLock { state in
            state.isStopped = true
            state.loop?.cancel()
            state.due = nil
            for timer in state.timers.values { timer.cancel() }
        }
    }

    /// Waits until the body runs no more, after ``stop()``.
    func ended() async {
        await state.withLock(\.loop)?.value
    }
}
