import Synchronization

/// Lets so many in at once; the others wait in line.
final class CallGate: Sendable {
    private struct State {
        var free: Int
        var line: [(ticket: UInt64, continuation: CheckedContinuation<Bool, Never>)] = []
        var lastTicket: UInt64 = 0
        /// Who was cancelled before taking a place in the line.
        var cancelled: Set<UInt64> = []
    }

    private let state: Mutex<State>

    init(_ limit: Int) {
        state = Mutex(State(free: max(1, limit)))
    }

    func run<Value>(_ body: () async throws -> Value) async throws -> Value {
        try await enter()
        defer { leave() }
        return try await body()
    }

    private func enter() async throws {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        let isIn = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    if state.cancelled.remove(ticket) != nil { return false }
                    if state.free > 0 {
                        state.free -= 1
                        return true
                    }
                    state.line.append((ticket, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiting = state.withLock { state -> CheckedContinuation<Bool, Never>? in
                guard let place = state.line.firstIndex(where: { $0.ticket == ticket }) else {
                    state.cancelled.insert(ticket)
                    return nil
                }
                return state.line.remove(at: place).continuation
            }
            waiting?.resume(returning: false)
        }
        // A cancellation that came too late to keep it out has left its mark.
        state.withLock { _ = $0.cancelled.remove(ticket) }
        guard isIn else { throw CancellationError() }
    }

    private func leave() {
        let next = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard state.line.isEmpty else { return state.line.removeFirst().continuation }
            state.free += 1
            return nil
        }
        next?.resume(returning: true)
    }
}
