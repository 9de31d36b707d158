import Synchronization

/// Keeps the bytes of all transfers in one direction to a rate. From any task.
package final class RateLimit: Sendable {
    private struct State {
        /// Bytes a second; nil for no limit.
        var rate: Int64?
        /// When the bytes that were let through so far have passed at this rate.
        var passed = ContinuousClock.now
        /// How often the rate was changed.
        var changes = 0
    }

    private let state = Mutex(State())
    private static let step: Duration = .seconds(1)

    /// Bytes a second; nil for no limit. A change also counts for those that wait.
    package var rate: Int64? {
        get { state.withLock { $0.rate } }
        set {
            state.withLock { state in
                guard state.rate != newValue else { return }
                state.rate = newValue
                state.passed = .now
                state.changes += 1
            }
        }
    }

    /// Returns when bytes may pass. The first ones after a pause do not wait, so that a small transfer now and then is not held up.
    ///
    /// - Parameter whileWaiting: called at least every second.
    /// - Throws: `CancellationError`.
    func pass(_ count: Int64, whileWaiting: () -> Void) async throws {
        let (start, changes) = state.withLock { state in
            guard let rate = state.rate, count > 0 else { return (ContinuousClock.now, state.changes) }
            let start = max(state.passed, .now)
            state.passed = start + .nanoseconds(Int64(min(Double(count) / Double(rate), 86_400) * 1e9))
            return (start, state.changes)
        }
        while ContinuousClock.now < start, state.withLock({ $0.changes == changes }) {
            try await Task.sleep(until: min(start, .now + Self.step), clock: .continuous)
            whileWaiting()
        }
    }
}

/// How fast a domain may transfer content.
package struct TransferLimits: Hashable, Sendable {
    /// Bytes a second to the remote; nil for no limit.
    package var up: Int64?
    /// Bytes a second from the remote; nil for no limit.
    package var down: Int64?

    package init(up: Int64? = nil, down: Int64? = nil) {
        (self.up, self.down) = (up, down)
    }
}
