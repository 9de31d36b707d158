import Synchronization

/// A barrier that calls wait at until a test opens it. Once open it stays open.
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var nextID = 0
        var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
        var arrivals = 0
    }

    private let state = Mutex(State())
    private let heedsCancellation: Bool

    /// - Parameter heedsCancellation: false for calls that hang whatever happens to their task.
    public init(heedsCancellation: Bool = true) {
        self.heedsCancellation = heedsCancellation
    }

    /// How many have come so far, those that were let through included.
    public var arrivals: Int { state.withLock { $0.arrivals } }

    /// How many wait now.
    public var waiting: Int { state.withLock { $0.waiters.count } }

    /// Lets everybody through, from now on too.
    public func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [:] }
            return state.waiters.values.map { $0 }
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before, unless this gate does not heed that.
    public func pass() async throws {
        let id = state.withLock { state in
            state.nextID += 1
            state.arrivals += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isLetThrough = state.withLock { state in
                    if state.isOpen { return true }
                    state.waiters[id] = continuation
                    return false
                }
                if isLetThrough { continuation.resume() } else if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
    }

    private func cancel(_ id: Int) {
        guard heedsCancellation else { return }
        state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }
}
