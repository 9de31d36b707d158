import Synchronization

/// When a byte last moved on a connection, in either direction.
final class Movement: Sendable {
    private let start = ContinuousClock.now
    /// Nanoseconds after `start`.
    private let last = Atomic<Int64>(0)
    /// How many wait for this machine: meanwhile nothing is expected to move.
    private let pauses = Atomic<Int>(0)

    func note() {
        last.store(Self.nanoseconds(ContinuousClock.now - start), ordering: .relaxed)
    }

    func pause() { pauses.add(1, ordering: .relaxed) }

    func resume() {
        note()
        pauses.subtract(1, ordering: .relaxed)
    }

    /// Returns when nothing has moved for so long.
    ///
    /// - Throws: when the task is cancelled.
    func waitForStall(of limit: Duration) async throws {
        while true {
            let still =
                .nanoseconds(Self.nanoseconds(ContinuousClock.now - start) - last.load(ordering: .relaxed)) as Duration
            if pauses.load(ordering: .relaxed) > 0 {
                try await Task.sleep(for: min(limit, .seconds(1)))
            } else if still >= limit {
                return
            } else {
                try await Task.sleep(for: max(limit - still, .milliseconds(1)))
            }
        }
    }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        duration.components.seconds * 1_000_000_000 + duration.components.attoseconds / 1_000_000_000
    }
}
