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
        var id: Int
        var ticket: Ticket
        /// Resumed with the lane whose place was given; nil when the call was cancelled before.
        var continuation: CheckedContinuation<Lane?, Never>
    }

    private struct State {
        var running = 0
        var runningInBackground = 0
        var nextID = 0
        var waiters: [Waiter] = []
        var cancelled: Set<Int> = []
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
    func promote(_ ticket: Ticket) {
        let next = state.withLock { state -> [(Waiter, Lane)] in
            ticket.lane = .foreground
            return admitWaiting(&state)
        }
        for (waiter, lane) in next { waiter.continuation.resume(returning: lane) }
    }

    private func enter(_ ticket: Ticket) async throws -> Lane {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let admitted = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (isDecided, lane) = state.withLock { state -> (Bool, Lane?) in
                    if state.cancelled.remove(id) != nil { return (true, nil) }
                    let lane = ticket.lane
                    if admits(lane, state) {
                        take(lane, &state)
                        return (true, lane)
                    }
                    state.waiters.append(Waiter(id: id, ticket: ticket, continuation: continuation))
                    return (false, nil)
                }
                if isDecided { continuation.resume(returning: lane) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(returning: nil)
        }
        _ = state.withLock { $0.cancelled.remove(id) }
        guard let admitted else { throw CancellationError() }
        return admitted
    }

    private func leave(_ lane: Lane) {
        let next = state.withLock { state -> [(Waiter, Lane)] in
            state.running -= 1
            if lane == .background { state.runningInBackground -= 1 }
            return admitWaiting(&state)
        }
        for (waiter, lane) in next { waiter.continuation.resume(returning: lane) }
    }

    /// Removes the waiters that get a place from the queue.
    private func admitWaiting(_ state: inout State) -> [(Waiter, Lane)] {
        var admitted: [(Waiter, Lane)] = []
        for lane in [Lane.foreground, .background] {
            while admits(lane, state), let index = state.waiters.firstIndex(where: { $0.ticket.lane == lane }) {
                take(lane, &state)
                admitted.append((state.waiters.remove(at: index), lane))
            }
        }
        return admitted
    }

    private func admits(_ lane: Lane, _ state: State) -> Bool {
        state.running < limit && (lane == .foreground || state.runningInBackground < backgroundLimit)
    }

    private func take(_ lane: Lane, _ state: inout State) {
        state.running += 1
        if lane == .background { state.runningInBackground += 1 }
    }
}
