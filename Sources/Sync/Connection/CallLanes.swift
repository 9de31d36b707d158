import FileProvider
import Synchronization

/// Limits the concurrent calls of a provider. Calls that a process waits for go first, and a quarter of the places is
/// reserved for them.
final class CallLanes: Sendable {
    enum Lane: Hashable, Sendable {
        case foreground
        case background
    }

    /// Which lane a call is in, for as long as that can change: a process may come to wait for what was begun ahead of it.
    final class Ticket: Sendable {
        private let current: Mutex<Lane>

        init(_ lane: Lane) {
            current = Mutex(lane)
        }

        fileprivate(set) var lane: Lane {
            get { current.withLock { $0 } }
            set { current.withLock { $0 = newValue } }
        }
    }

    private struct Waiter {
        var ticket: Ticket
        let place = OneShot<Lane>()
    }

    private struct State {
        var running = 0
        var runningInBackground = 0
        var waiters: [Waiter] = []
    }

    private let state = Mutex(State())
    private let limit: Int
    private let backgroundLimit: Int

    /// - Parameter limit: how many calls at once; background calls leave a quarter of the places free.
    init(limit: Int) {
        self.limit = max(2, limit)
        backgroundLimit = max(1, self.limit - max(1, self.limit / 4))
    }

    /// Runs a call when there is a place for it.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before it got a place; what `body` throws.
    func run<Value: Sendable>(_ ticket: Ticket, _ body: () async throws -> Value) async throws -> Value {
        let lane = try await enter(ticket)
        defer { leave(lane) }
        return try await body()
    }

    /// A process now waits for a call that was made in the background.
    func promote(_ ticket: Ticket) { change { _ in ticket.lane = .foreground } }

    private func enter(_ ticket: Ticket) async throws -> Lane {
        try Task.checkCancellation()
        let waiter = Waiter(ticket: ticket)
        let lane = state.withLock { state -> Lane? in
            let lane = ticket.lane
            guard admits(lane, state) else {
                state.waiters.append(waiter)
                return nil
            }
            take(lane, &state)
            return lane
        }
        if let lane { return lane }
        return try await waiter.place.value {
            let wasWaiting = state.withLock { state in
                let count = state.waiters.count
                state.waiters.removeAll { $0.place === waiter.place }
                return state.waiters.count < count
            }
            // Otherwise the call has got a place, and leaves it after the body.
            if wasWaiting { waiter.place.give(.failure(CancellationError())) }
        }
    }

    private func leave(_ lane: Lane) {
        change { state in
            state.running -= 1
            if lane == .background { state.runningInBackground -= 1 }
        }
    }

    /// Changes the state, and gives the waiters a place that get one then.
    private func change(_ body: (inout State) -> Void) {
        let admitted = state.withLock { state in
            body(&state)
            var admitted: [(waiter: Waiter, lane: Lane)] = []
            for lane in [Lane.foreground, .background] {
                while admits(lane, state), let index = state.waiters.firstIndex(where: { $0.ticket.lane == lane }) {
                    take(lane, &state)
                    admitted.append((state.waiters.remove(at: index), lane))
                }
            }
            return admitted
        }
        for (waiter, lane) in admitted { waiter.place.give(.success(lane)) }
    }

    private func admits(_ lane: Lane, _ state: State) -> Bool {
        state.running < limit && (lane == .foreground || state.runningInBackground < backgroundLimit)
    }

    private func take(_ lane: Lane, _ state: inout State) {
        state.running += 1
        if lane == .background { state.runningInBackground += 1 }
    }
}
