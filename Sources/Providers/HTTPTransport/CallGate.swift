import FileProvider

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
            gate.line.change { slots in
                if let admission { slots.unanswered.remove(admission.number) }
                guard let kind else { return }
                slots.limit.note(
                    .init(kind: kind, startedAt: startedAt, answeredAt: .now, running: slots.running))
            }
        }

        /// Records that the server refused the request because of overload, or broke the connection.
        func noteOverload() {
            if isExtra { return gate.pauseWithoutExtra() }
            gate.line.change { $0.limit.noteOverload(startedAt: startedAt, at: .now) }
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

    private struct Slots: AdmissionLimit {
        var limit: ConcurrencyLimit
        var running = 0
        var runningInBackground = 0
        var lastAdmission: UInt64 = 0
        /// The admitted requests for which processes wait and that have no answer yet.
        var unanswered: Set<UInt64> = []
        /// The request that was admitted beyond the limit, while it runs.
        var extra: UInt64?
        var noExtraUntil: ContinuousClock.Instant?

        func admits(isUrgent: Bool) -> Bool {
            let limit = limit.limit
            if isUrgent { return running < limit || mayHaveExtra }
            return running < limit && runningInBackground < max(1, limit - max(1, limit / 4))
        }

        private var mayHaveExtra: Bool {
            extra == nil && unanswered.isEmpty && Double(running) < limit.most && noExtraUntil.map { $0 < .now } ?? true
        }

        mutating func takePlace(isUrgent: Bool) -> Admission {
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

    private let line: AdmissionLine<Slots>

    init(_ most: Int) {
        line = AdmissionLine(Slots(limit: ConcurrencyLimit(most: most)))
    }

    /// The present number of concurrent requests.
    var limit: Int { line.limit.limit.limit }

    func run<Value>(_ body: (Pass) async throws -> Value) async throws -> Value {
        if Self.isInside { return try await body(Pass(gate: self, admission: nil)) }
        let context = CallContext.current
        let admission = try await line.enter(context?.urgency ?? CallUrgency(true)) { isWaiting in
            if isWaiting { context?.beginWaiting() } else { context?.endWaiting() }
        }
        defer { leave(admission) }
        return try await body(Pass(gate: self, admission: admission))
    }

    /// The end of the pause admits what waits for it.
    private func pauseWithoutExtra() {
        line.change { $0.noExtraUntil = .now + Self.pause }
        Task { [weak self] in
            try? await Task.sleep(for: Self.pause + .milliseconds(10))
            self?.line.change { _ in }
        }
    }

    private func leave(_ admission: Admission) {
        line.change { slots in
            slots.running -= 1
            slots.unanswered.remove(admission.number)
            if slots.extra == admission.number { slots.extra = nil }
            if admission.isInBackground { slots.runningInBackground -= 1 }
        }
    }
}
