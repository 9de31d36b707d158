import Synchronization

/// The time at which a byte last moved on a connection, in either direction.
final class Movement: Sendable {
    private let start = ContinuousClock.now
    /// Nanoseconds after `start`.
    private let last = Atomic<Int64>(0)
    /// The number of local operations in progress. Meanwhile nothing is expected to move.
    private let pauses = Atomic<Int>(0)

    func note() {
        last.store((ContinuousClock.now - start).wholeNanoseconds, ordering: .relaxed)
    }

    func pause() { pauses.add(1, ordering: .relaxed) }

    func resume() {
        note()
        pauses.subtract(1, ordering: .relaxed)
    }

    /// Returns when nothing has moved for a time.
    ///
    /// - Throws: when the task is cancelled.
    func waitForStall(of limit: Duration) async throws {
        while true {
            let still = ContinuousClock.now - start - .nanoseconds(last.load(ordering: .relaxed))
            if pauses.load(ordering: .relaxed) > 0 {
                try await Task.sleep(for: min(limit, .seconds(1)))
            } else if still >= limit {
                return
            } else {
                try await Task.sleep(for: max(limit - still, .milliseconds(1)))
            }
        }
    }
}

extension Duration {
    var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
