import FileProvider
import Synchronization

/// Checks of items that have passed not long ago: many operations ask for the same one.
final class RecentChecks: Sendable {
    private let passed = Mutex<[ItemIdentifier: ContinuousClock.Instant]>([:])
    private let trust: Duration
    private static let mostEntries = 1024

    /// - Parameter trust: how long a check counts.
    init(trust: Duration) { self.trust = trust }

    func hasPassed(_ identifier: ItemIdentifier) -> Bool {
        passed.withLock { $0[identifier] }.map { .now - $0 < trust } ?? false
    }

    func notePassed(_ identifier: ItemIdentifier) {
        passed.withLock { passed in
            if passed.count >= Self.mostEntries { passed = [:] }
            passed[identifier] = .now
        }
    }
}
