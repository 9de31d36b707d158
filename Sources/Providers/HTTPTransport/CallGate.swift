import FileProvider
import Synchronization

/// Admits as many concurrent requests as suit the server. The others queue, those for which a process waits in front.
/// Background requests, for which no process waits, leave a quarter of the slots free.
final class CallGate: Sendable {
    /// An admitted request.
    struct Pass: Sendable {
        fileprivate let gate: CallGate
        fileprivate let startedAt: ContinuousClock.Instant

        /// Records the time of a response.
        ///
        /// - Parameter kind: the requests with which the time is compared; nil for one whose time says nothing about the load.
        func noteAnswer(_ kind: String?) {
            guard let kind else { return }
            gate.change { state in
                state.limit.note(
                    .init(kind: kind, startedAt: startedAt, answeredAt: .now, running: state.running))
            }
        }

        /// Records that the server refused the request because of overload, or broke the connection.
        func noteOverload() {
            gate.change { $0.limit.noteOverload(startedAt: startedAt, at: .now) }
        }
    }

    private struct Waiter {
        var ticket: UInt64
        var context: CallContext?
        /// Resumed with whether the request was admitted as a background one; with nil when it was cancelled.
        var continuation: CheckedContinuation<Bool?, Never>

        var isUrgent: Bool { context?.isUrgent ?? true }
    }

    private struct State {
        var limit: ConcurrencyLimit
        var running = 0
        var runningInBackground = 0
        var line: [Waiter] = []
        var lastTicket: UInt64 = 0
        /// The tickets that were cancelled before they were queued.
        var cancelled: Set<UInt64> = []

        /// Whether there is a free slot.
        func admits(isUrgent: Bool) -> Bool {
            let limit = limit.limit
            return running < limit && (isUrgent || runningInBackground < max(1, limit - max(1, limit / 4)))
        }

        mutating func take(isUrgent: Bool) {
            running += 1
            if !isUrgent { runningInBackground += 1 }
        }
    }

    /// Whether the task produces the body of an admitted request. Its own requests need no slot, because waiting for one could
    /// be a deadlock.
    @TaskLocal static var isInside = false

    private let state: Mutex<State>

    init(_ most: Int) {
        state = Mutex(State(limit: ConcurrencyLimit(most: most)))
    }

    /// The present number of concurrent requests.
    var limit: Int { state.withLock { $0.limit.limit } }

    func run<Value>(_ body: (Pass) async throws -> Value) async throws -> Value {
        if Self.isInside { return try await body(Pass(gate: self, startedAt: .now)) }
        let isInBackground = try await enter()
        defer { leave(isInBackground) }
        return try await body(Pass(gate: self, startedAt: .now))
    }

    /// - Returns: whether it is a background request.
    private func enter() async throws -> Bool {
        let context = CallContext.current
        let isUrgent = context?.isUrgent ?? true
        let ticket = state.withLock { state -> UInt64? in
            // Earlier requests go first.
            if state.admits(isUrgent: isUrgent), !state.line.contains(where: { !isUrgent || $0.isUrgent }) {
                state.take(isUrgent: isUrgent)
                return nil
            }
            state.lastTicket += 1
            return state.lastTicket
        }
        guard let ticket else { return !isUrgent }
        context?.beginWaiting()
        defer { context?.endWaiting() }
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOut = state.withLock { state in
                    if state.cancelled.remove(ticket) != nil { return true }
                    state.line.append(Waiter(ticket: ticket, context: context, continuation: continuation))
                    return false
                }
                if isOut { continuation.resume(returning: nil) } else { change { _ in } }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Bool?, Never>? in
                guard let place = state.line.firstIndex(where: { $0.ticket == ticket }) else {
                    state.cancelled.insert(ticket)
                    return nil
                }
                return state.line.remove(at: place).continuation
            }
            waiting?.resume(returning: nil)
        }
        // A cancellation after the admission has left its ticket.
        state.withLock { _ = $0.cancelled.remove(ticket) }
        guard let answer else { throw CancellationError() }
        return answer
    }

    private func leave(_ isInBackground: Bool) {
        change { state in
            state.running -= 1
            if isInBackground { state.runningInBackground -= 1 }
        }
    }

    /// Changes the state, and admits queued requests for which there is a slot then.
    private func change(_ body: (inout State) -> Void) {
        let admitted = state.withLock { state in
            body(&state)
            var admitted: [(Waiter, isInBackground: Bool)] = []
            for isUrgent in [true, false] {
                while state.admits(isUrgent: isUrgent),
                    let index = state.line.firstIndex(where: { $0.isUrgent == isUrgent })
                {
                    state.take(isUrgent: isUrgent)
                    admitted.append((state.line.remove(at: index), !isUrgent))
                }
            }
            return admitted
        }
        for (waiter, isInBackground) in admitted { waiter.continuation.resume(returning: isInBackground) }
    }
}
