import Replica
import Synchronization

/// Stores the warnings about what is so until something changes, so that the next process gives them again: a provider that reports changes
/// does not report again what they are about.
final class WarningStore: Sendable {
    private let warnings: Warnings
    private let replica: Replica
    private let stored: Mutex<[Warnings.Lasting]>
    private static let pause = Duration.seconds(2)
    private static let pauseAfterFailure = Duration.seconds(60)

    /// Gives the warnings that are stored.
    init(_ warnings: Warnings, in replica: Replica) {
        self.warnings = warnings
        self.replica = replica
        // Damage of the database is found elsewhere.
        let known = try? replica.database.value(of: .warnings, as: [Warnings.Lasting].self)
        stored = Mutex(known ?? [])
        warnings.restore(known ?? [])
    }

    func start() {
        warnings.changes.run { [self] in
            store()
            return Self.pause
        }
    }

    /// Stores the warnings that there are now, and none from now on.
    func stop() async {
        warnings.changes.stop()
        await warnings.changes.ended()
        store()
    }

    func store() {
        let lasting = warnings.lasting
        guard stored.withLock({ $0 }) != lasting else { return }
        do {
            try replica.database.set(.warnings, toJSONOf: lasting)
            stored.withLock { $0 = lasting }
        } catch {
            warnings.changes.wake(after: Self.pauseAfterFailure)
        }
    }
}
