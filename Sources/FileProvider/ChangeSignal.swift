import Synchronization

/// Resumes the tasks that wait for a condition, when the state that the condition depends on has changed.
package final class ChangeSignal: Sendable {
    private struct State {
        var count: UInt64 = 0
        var lastTicket: UInt64 = 0
        var waiters: [UInt64: OneShot<Bool>] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// The number of changes up to now.
    package var count: UInt64 { state.withLock { $0.count } }

    /// Reports a change. Returns at once; from any thread.
    package func notify() {
        let waiters = state.withLock { state in
            state.count += 1
            return exchange(&state.waiters, with: [:])
        }
        for waiter in waiters.values { waiter.give(.success(true)) }
    }

    /// Waits until a change is reported.
    ///
    /// - Parameter count: ``count`` before the caller examined the state: a change after that is not missed.
    /// - Returns: false when the deadline has passed before.
    /// - Throws: `CancellationError`.
    package func wait(after count: UInt64, until deadline: ContinuousClock.Instant? = nil) async throws -> Bool {
        try Task.checkCancellation()
        let waiter = OneShot<Bool>()
        let ticket: UInt64? = state.withLock { state in
            guard state.count == count else { return nil }
            state.lastTicket += 1
            state.waiters[state.lastTicket] = waiter
            return state.lastTicket
        }
        guard let ticket else { return true }
        let timer = deadline.map { deadline in
            Task {
                try await Task.sleep(until: deadline, clock: .continuous)
                waiter.give(.success(false))
            }
        }
        defer {
            timer?.cancel()
            state.withLock { $0.waiters[ticket] = nil }
        }
        return try await waiter.value { waiter.give(.failure(CancellationError())) }
    }

    /// Waits until a condition holds. It is evaluated now and after changes.
    ///
    /// - Parameter interval: the shortest time between two evaluations: changes within it cause one.
    /// - Returns: false when the condition does not hold at the deadline.
    /// - Throws: errors of the condition; `CancellationError`.
    package func wait(
        until deadline: ContinuousClock.Instant? = nil, interval: Duration,
        for condition: () async throws -> Bool
    ) async throws -> Bool {
        while true {
            let (count, start) = (count, ContinuousClock.now)
            if try await condition() { return true }
            guard try await wait(after: count, until: deadline) else { return false }
            try await Task.sleep(until: start + interval, clock: .continuous)
        }
    }
}
