import FileProvider
import Synchronization

/// Admits as many concurrent requests as suit the server. The others queue, those for which a process waits in front.
/// Background requests, for which no process waits, leave a quarter of the slots free.
///
/// So that no process waits for a long body of another where the limit was lowered, one request more is admitted while no other for
/// which a process waits is without an answer: an extra one. When the server refuses that, there is none for a while.
final class CallGate: Sendable {
    /// An admitted request.
    struct Pass: Sendable {
        fileprivate let gate: CallGate
        /// Nil for a request on behalf of an admitted one.
        fileprivate let admission: Admission?
        fileprivate let startedAt = ContinuousClock.now

        /// Records the time of a response.
        ///
        /// - Parameter kind: the requests with which the time is compared; nil for one whose time says nothing about the load.
        func noteAnswer(_ kind: String?) {
            gate.change { state in
                if let admission { state.unanswered.remove(admission.number) }
                guard let kind else { return }
                state.limit.note(
                    .init(kind: kind, startedAt: startedAt, answeredAt: .now, running: state.running))
            }
        }

        /// Records that the server refused the request because of overload, or broke the connection.
        func noteOverload() {
            if isExtra { return gate.pauseWithoutExtra() }
            gate.change { $0.limit.noteOverload(startedAt: startedAt, at: .now) }
        }

        /// Whether it was admitted beyond the limit: a refusal says nothing of the request.
        var isExtra: Bool { admission?.isExtra == true }
    }

    fileprivate struct Admission {
        var number: UInt64
        var isInBackground: Bool
        var isExtra: Bool
    }

    private static let pause = Duration.seconds(60)

    private struct Waiter {
        var context: CallContext?
        let slot = OneShot<Admission>()

        var isUrgent: Bool { context?.isUrgent ?? true }
    }

    private struct State {
        var limit: ConcurrencyLimit
        var running = 0
        var runningInBackground = 0
        var line: [Waiter] = []
        var lastAdmission: UInt64 = 0
        /// The admitted requests for which processes wait and that have no answer yet.
        var unanswered: Set<UInt64> = []
        /// The request that was admitted beyond the limit, while it runs.
        var extra: UInt64?
        var noExtraUntil: ContinuousClock.Instant?

        /// Whether there is a free slot.
        func admits(isUrgent: Bool) -> Bool {
            let limit = limit.limit
            if isUrgent { return running < limit || mayHaveExtra }
            return running < limit && runningInBackground < max(1, limit - max(1, limit / 4))
        }

        private var mayHaveExtra: Bool {
            extra == nil && unanswered.isEmpty && Double(running) < limit.most && noExtraUntil.map { $0 < .now } ?? true
        }

        mutating func admit(isUrgent: Bool) -> Admission {
            let isExtra = running >= limit.limit
            running += 1
            lastAdmission += 1
            if isUrgent { unanswered.insert(lastAdmission) } else { runningInBackground += 1 }
            if isExtra { extra = lastAdmission }
            return Admission(number: lastAdmission, isInBackground: !isUrgent, isExtra: isExtra)
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
        if Self.isInside { return try await body(Pass(gate: self, admission: nil)) }
        let admission = try await enter()
        defer { leave(admission) }
        return try await body(Pass(gate: self, admission: admission))
    }

    private func enter() async throws -> Admission {
        let context = CallContext.current
        let waiter = Waiter(context: context)
        let isUrgent = waiter.isUrgent
        let admission = state.withLock { state -> Admission? in
            // Earlier requests go first.
            if state.admits(isUrgent: isUrgent), !state.line.contains(where: { !isUrgent || $0.isUrgent }) {
                return state.admit(isUrgent: isUrgent)
            }
            state.line.append(waiter)
            return nil
        }
        if let admission { return admission }
        context?.beginWaiting()
        defer { context?.endWaiting() }
        change { _ in }
        return try await waiter.slot.value {
            let wasWaiting = state.withLock { state in
                let count = state.line.count
                state.line.removeAll { $0.slot === waiter.slot }
                return state.line.count < count
            }
            // Otherwise it has got a slot, and leaves it after the body.
            if wasWaiting { waiter.slot.give(.failure(CancellationError())) }
        }
    }

    /// The end of the pause admits what waits for it.
    private func pauseWithoutExtra() {
        change { $0.noExtraUntil = .now + Self.pause }
        Task { [weak self] in
            try? await Task.sleep(for: Self.pause + .milliseconds(10))
            self?.change { _ in }
        }
    }

    private func leave(_ admission: Admission) {
        change { state in
            state.running -= 1
            state.unanswered.remove(admission.number)
            if state.extra == admission.number { state.extra = nil }
            if admission.isInBackground { state.runningInBackground -= 1 }
        }
    }

    /// Changes the state, and admits queued requests for which there is a slot then.
    private func change(_ body: (inout State) -> Void) {
        let admitted = state.withLock { state in
            body(&state)
            var admitted: [(waiter: Waiter, admission: Admission)] = []
            for isUrgent in [true, false] {
                while state.admits(isUrgent: isUrgent),
                    let index = state.line.firstIndex(where: { $0.isUrgent == isUrgent })
                {
                    admitted.append((state.line.remove(at: index), state.admit(isUrgent: isUrgent)))
                }
            }
            return admitted
        }
        for (waiter, admission) in admitted { waiter.slot.give(.success(admission)) }
    }
}
