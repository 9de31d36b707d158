import Synchronization

/// How many calls a provider serves at once: those that a process waits for go first, and some places are theirs alone.
final class CallLanes: Sendable {
    enum Lane: Hashable, Sendable {
        case foreground
        case background
    }

    private struct Waiter {
        var id: Int
        var lane: Lane
        var continuation: CheckedContinuation<Bool, Never>
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
    func run<Value: Sendable>(_ lane: Lane, _ body: () async throws -> Value) async throws -> Value {
        try await enter(lane)
        defer { leave(lane) }
        return try await body()
    }

    private func enter(_ lane: Lane) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        let isAdmitted = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDecided: Bool? = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return false }
                    if admits(lane, state) {
                        take(lane, &state)
                        return true
                    }
                    state.waiters.append(Waiter(id: id, lane: lane, continuation: continuation))
                    return nil
                }
                if let isDecided { continuation.resume(returning: isDecided) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(returning: false)
        }
        _ = state.withLock { $0.cancelled.remove(id) }
        guard isAdmitted else { throw CancellationError() }
    }

    private func leave(_ lane: Lane) {
        let next = state.withLock { state -> [Waiter] in
            state.running -= 1
            if lane == .background { state.runningInBackground -= 1 }
            var admitted: [Waiter] = []
            for lane in [Lane.foreground, .background] {
                while admits(lane, state), let index = state.waiters.firstIndex(where: { $0.lane == lane }) {
                    take(lane, &state)
                    admitted.append(state.waiters.remove(at: index))
                }
            }
            return admitted
        }
        for waiter in next { waiter.continuation.resume(returning: true) }
    }

    private func admits(_ lane: Lane, _ state: State) -> Bool {
        state.running < limit && (lane == .foreground || state.runningInBackground < backgroundLimit)
    }

    private func take(_ lane: Lane, _ state: inout State) {
        state.running += 1
        if lane == .background { state.runningInBackground += 1 }
    }
}
