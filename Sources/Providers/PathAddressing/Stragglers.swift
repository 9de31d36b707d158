import Synchronization

/// Changes that were sent, and whose connection broke before an answer came. They may be done yet, also after the same was
/// sent once more and answered: what waits in a network arrives when that works again. Whoever looks at the same place, or
/// changes something there, waits for a moment until they have come, or never will: what was looked at before must not
/// turn out to be there after all, an old content must not come back over a newer one, nor a key in a place that everything
/// has been moved away from.
///
/// How long that moment is depends on how long the server has taken to answer lately. Who starts after a process that was
/// killed takes it that something of that is on its way, and nobody knows where to.
package final class Stragglers: Sendable {
    /// Where something may arrive that somebody cares for.
    package enum Reach: Sendable, Hashable {
        case exactly(String)
        /// Whatever begins so; itself, too.
        case below(String)
        /// Whatever begins so and has no other slash in it, but at the end.
        case within(String)

        /// Whether there is a key that both hold, as far as can be told: of ``within(_:)`` as of ``below(_:)``.
        package func overlaps(_ other: Reach) -> Bool {
            switch (self, other) {
            case (.exactly(let one), .exactly(let two)): one.utf8.elementsEqual(two.utf8)
            case (.exactly(let place), .below(let prefix)), (.exactly(let place), .within(let prefix)),
                (.below(let prefix), .exactly(let place)), (.within(let prefix), .exactly(let place)):
                place.utf8.starts(with: prefix.utf8)
            case (.below(let one), .below(let two)), (.below(let one), .within(let two)),
                (.within(let one), .below(let two)), (.within(let one), .within(let two)):
                one.utf8.starts(with: two.utf8) || two.utf8.starts(with: one.utf8)
            }
        }

        package func holds(_ key: [UInt8]) -> Bool {
            switch self {
            case .exactly(let place): return place.utf8.elementsEqual(key)
            case .below(let prefix): return key.starts(with: prefix.utf8)
            case .within(let prefix):
                guard key.starts(with: prefix.utf8) else { return false }
                return !key.dropFirst(prefix.utf8.count).dropLast().contains(UInt8(ascii: "/"))
            }
        }
    }

    private struct State {
        /// By their keys' bytes, when the server answered for the first time since; nil while it has not.
        var answered: [[UInt8]: ContinuousClock.Instant?] = [:]
        /// The longest that an answer has taken lately.
        var slowest: (took: Duration, at: ContinuousClock.Instant)?
        var isMarked = false
    }

    private let state: Mutex<State>
    /// How long after the server has been heard of again, at the least and at the most.
    private let patience: ClosedRange<Duration>
    /// Is there while changes are made, and after a process that was killed in the midst of them.
    private let mark: SurvivingRecords<Bool>?
    private static let key: [UInt8] = []
    private static let most = 10_000
    /// For how long an answer says how slow the server is.
    private static let memory = Duration.seconds(120)
    /// What is on its way may take so many times as long as what was answered.
    private static let caution = 3

    /// - Parameters:
    ///   - patience: how long at the least; less only in tests.
    ///   - store: keeps what must survive a restart.
    package init(patience: Duration = .seconds(2), in store: ReportingStore? = nil) {
        self.patience = patience...max(patience, .seconds(30))
        mark = store.map { SurvivingRecords("changing", in: $0) }
        var state = State()
        if let mark, mark[Self.key] != nil {
            state.answered.updateValue(nil, forKey: [])
            state.isMarked = true
        }
        self.state = Mutex(state)
    }

    /// A change is about to be sent.
    package func noteChange() {
        guard let mark else { return }
        let isFirst = state.withLock { state in
            defer { state.isMarked = true }
            return !state.isMarked
        }
        if isFirst { mark.set(Self.key, true) }
    }

    /// No change is made any more. What is still on its way is remembered for who comes next.
    package func close() {
        guard let mark else { return }
        let now = ContinuousClock.now
        let isOver = state.withLock { state in
            let patience = self.patience(state, now)
            return state.isMarked && state.answered.values.allSatisfy { $0.map { now - $0 > patience } ?? false }
        }
        if isOver { mark.remove(Self.key) }
    }

    /// - Parameter key: empty for what may be anywhere.
    package func note(_ key: String) {
        state.withLock { state in
            if state.answered.count > Self.most { state.answered = [[]: nil] }
            state.answered.updateValue(nil, forKey: Array(key.utf8))
        }
    }

    /// The server has answered something.
    ///
    /// - Parameter took: how long it took to, where that says how slow it is.
    package func noteAnswer(after took: Duration? = nil) {
        let now = ContinuousClock.now
        state.withLock { state in
            if let took, state.slowest.map({ took >= $0.took || now - $0.at > Self.memory }) ?? true {
                state.slowest = (took, now)
            }
            if state.answered.isEmpty { return }
            for (key, moment) in state.answered {
                if let moment {
                    if now - moment > patience.upperBound { state.answered[key] = nil }
                } else {
                    state.answered[key] = .some(now)
                }
            }
        }
    }

    /// Waits until nothing is on its way to some places.
    ///
    /// - Parameter ask: asks the server anything.
    package func settle(over places: [Reach], ask: () async throws -> Void) async throws {
        while let moment = latest(over: places) {
            guard let answered = moment else {
                try await ask()
                noteAnswer()
                continue
            }
            let now = ContinuousClock.now
            let left = state.withLock { self.patience($0, now) } - (now - answered)
            guard left > .zero else { return }
            try await Task.sleep(for: left)
        }
    }

    private func patience(_ state: borrowing State, _ now: ContinuousClock.Instant) -> Duration {
        guard let slowest = state.slowest, now - slowest.at <= Self.memory else { return patience.lowerBound }
        return min(patience.upperBound, max(patience.lowerBound, slowest.took * Self.caution))
    }

    /// - Returns: nil when there is nothing; inside, when the server was heard of, or nil.
    private func latest(over places: [Reach]) -> ContinuousClock.Instant?? {
        state.withLock { state in
            if state.answered.isEmpty { return nil }
            let due = state.answered.filter { key, _ in key.isEmpty || places.contains { $0.holds(key) } }
            guard !due.isEmpty else { return nil }
            if due.values.contains(where: { $0 == nil }) { return .some(nil) }
            return .some(due.values.compactMap { $0 }.max())
        }
    }
}
