import FileProvider
import Synchronization

/// Checks of items that have passed not long ago: many operations ask for the same one.
final class RecentChecks: Sendable {
    private let passed = Mutex<[ItemIdentifier: ContinuousClock.Instant]>([:])
    private static let trust = Duration.seconds(2)
    private static let mostEntries = 1024

    func hasPassed(_ identifier: ItemIdentifier) -> Bool {
        passed.withLock { $0[identifier] }.map { .now - $0 < Self.trust } ?? false
    }

    func notePassed(_ identifier: ItemIdentifier) {
        passed.withLock { passed in
            if passed.count >= Self.mostEntries { passed = [:] }
            passed[identifier] = .now
        }
    }
}
