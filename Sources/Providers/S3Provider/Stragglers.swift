import FileProvider
import Synchronization

/// Changes that were sent, and whose connection broke before an answer came. They may be done yet, also after the same was
/// sent once more and answered: what waits in a network arrives when that works again. Whatever is done next in the same
/// place waits for a moment until they have come, or never will: an old content must not come back over a newer one, nor a
/// key in a place that everything has been moved away from.
///
/// In memory: who starts anew has taken longer than that.
final class Stragglers: Sendable {
    private struct State {
        /// By their keys, when the server answered for the first time since; nil while it has not.
        var answered: [KeyBytes: ContinuousClock.Instant?] = [:]
    }

    private let state = Mutex(State())
    /// How long after the server has been heard of again.
    private let patience: Duration
    private static let most = 10_000

    init(patience: Duration) {
        self.patience = patience
    }

    /// - Parameter key: empty for what may be anywhere.
    func note(_ key: String) {
        state.withLock { state in
            if state.answered.count > Self.most { state.answered = [:] }
            state.answered.updateValue(nil, forKey: KeyBytes(key))
        }
    }

    /// The server has answered something.
    func noteAnswer() {
        let now = ContinuousClock.now
        state.withLock { state in
            if state.answered.isEmpty { return }
            for (key, moment) in state.answered {
                if let moment {
                    if now - moment > patience { state.answered[key] = nil }
                } else {
                    state.answered[key] = .some(now)
                }
            }
        }
    }

    /// Waits until nothing is on its way to any of some keys, or to what lies below those that end with a slash.
    ///
    /// - Parameter ask: asks the server anything.
    func settle(over places: [String], ask: () async throws -> Void) async throws {
        while let moment = latest(over: places) {
            guard let answered = moment else {
                try await ask()
                noteAnswer()
                continue
            }
            let left = patience - (ContinuousClock.now - answered)
            guard left > .zero else { return }
            try await Task.sleep(for: left)
        }
    }

    /// - Returns: nil when there is nothing; inside, when the server was heard of, or nil.
    private func latest(over places: [String]) -> ContinuousClock.Instant?? {
        state.withLock { state in
            if state.answered.isEmpty { return nil }
            let due = state.answered.filter { key, _ in
                key.bytes.isEmpty
                    || places.contains { place in
                        place.utf8.elementsEqual(key.bytes)
                            || place.utf8.last == UInt8(ascii: "/") && key.starts(with: place)
                    }
            }
            guard !due.isEmpty else { return nil }
            if due.values.contains(where: { $0 == nil }) { return .some(nil) }
            return .some(due.values.compactMap { $0 }.max())
        }
    }
}
