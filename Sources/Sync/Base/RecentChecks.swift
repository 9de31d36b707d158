import FileProvider
import Synchronization

/// Checks of items that have passed not long ago: many operations ask for the same one.
final class RecentChecks: Sendable {
    private struct State {
        var passed: [ItemIdentifier: ContinuousClock.Instant] = [:]
        /// With so many entries, those that count no longer are removed.
        var limit = RecentChecks.fewEntries
    }

    private let state = Mutex(State())
    private let trust: Duration
    private static let fewEntries = 1024

    /// - Parameter trust: how long a check counts.
    init(trust: Duration) { self.trust = trust }

    func hasPassed(_ identifier: ItemIdentifier) -> Bool {
        state.withLock { $0.passed[identifier] }.map { .now - $0 < trust } ?? false
    }

    func notePassed(_ identifier: ItemIdentifier) {
        let now = ContinuousClock.now
        state.withLock { state in
            if state.passed.count >= state.limit {
                // What still counts stays: where many items are checked in turn, none would ever be found here.
                state.passed = state.passed.filter { now - $0.value < trust }
                state.limit = max(Self.fewEntries, 2 * state.passed.count)
            }
            state.passed[identifier] = now
        }
    }
}
