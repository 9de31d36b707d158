import FileProvider
import Synchronization

/// A barrier at which calls wait until a test opens it. It stays open.
public final class Gate: Sendable {
    private struct State {
        var isOpen = false
        var waiters: [Int: OneShot<Void>] = [:]
        var arrivals = 0
        var cancellations = 0
    }

    private let state = Mutex(State())
    private let heedsCancellation: Bool

    /// - Parameter heedsCancellation: false for a call that ignores cancellation.
    public init(heedsCancellation: Bool = true) {
        self.heedsCancellation = heedsCancellation
    }

    /// The number of arrivals so far, including those that have passed.
    public var arrivals: Int { state.withLock { $0.arrivals } }

    /// The number of calls that were cancelled while they waited.
    public var cancellations: Int { state.withLock { $0.cancellations } }

    /// The number of waiting calls.
    public var waiting: Int { state.withLock { $0.waiters.count } }

    /// Opens the gate for all calls, now and later.
    public func open() {
        let waiters = state.withLock { state in
            state.isOpen = true
            defer { state.waiters = [:] }
            return state.waiters.values.map { $0 }
        }
        for waiter in waiters { waiter.give(.success(())) }
    }

    /// Waits until the gate is open.
    ///
    /// - Throws: `CancellationError` if the task is cancelled, unless the gate ignores cancellation.
    public func pass() async throws {
        let waiter = OneShot<Void>()
        let number = state.withLock { state -> Int? in
            state.arrivals += 1
            if state.isOpen { return nil }
            state.waiters[state.arrivals] = waiter
            return state.arrivals
        }
        guard let number else { return }
        try await waiter.value { cancel(number) }
    }

    private func cancel(_ number: Int) {
        let waiter = state.withLock { state in
            if state.waiters[number] != nil { state.cancellations += 1 }
            return heedsCancellation ? state.waiters.removeValue(forKey: number) : nil
        }
        waiter?.give(.failure(CancellationError()))
    }
}
