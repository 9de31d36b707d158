import FileProvider
import Synchronization

/// The time at which a byte last moved on a connection, in either direction.
final class Movement: Sendable {
    private struct Storage {
        /// How long the server may store what was sent; nil while it is sent, after the answer, and for a body that is not large.
        var limit: Duration?
        var isOver = false
    }

    private let start = ContinuousClock.now
    /// Nanoseconds after `start`.
    private let last = Atomic<Int64>(0)
    /// The number of local operations in progress. Meanwhile nothing is expected to move.
    private let pauses = Atomic<Int>(0)
    private let storage = Mutex(Storage())
    private let limit: Duration
    private let storageRate: Int64
    /// The call that makes the request: the client reads a body in a task of its own.
    private let context = CallContext.current
    private static let longestStorage = Duration.seconds(600)

    /// - Parameters:
    ///   - limit: how long nothing may move.
    ///   - storageRate: ``HTTPTransport/Configuration/storageRate``.
    init(limit: Duration, storageRate: Int64) {
        (self.limit, self.storageRate) = (limit, storageRate)
    }

    func note() {
        last.store((ContinuousClock.now - start).wholeNanoseconds, ordering: .relaxed)
    }

    func pause() { pauses.add(1, ordering: .relaxed) }

    func resume() {
        note()
        pauses.subtract(1, ordering: .relaxed)
    }

    /// The connection has taken the whole body. While the server stores a large one, the call is not expected to make progress.
    func noteSent(_ count: Int64) {
        let time = min(Self.longestStorage, .seconds(count / max(1, storageRate)))
        guard time > limit else { return }
        storage.withLock { storage in
            guard !storage.isOver, storage.limit == nil else { return }
            storage.limit = time
            context?.beginWaiting()
        }
    }

    /// The response has begun, or the request has failed.
    func endStorage() {
        note()
        storage.withLock { storage in
            storage.isOver = true
            guard storage.limit != nil else { return }
            storage.limit = nil
            context?.endWaiting()
        }
    }

    /// Returns when nothing has moved for too long.
    ///
    /// - Returns: how long nothing was allowed to move.
    /// - Throws: when the task is cancelled.
    func waitForStall() async throws -> Duration {
        while true {
            let still = ContinuousClock.now - start - .nanoseconds(last.load(ordering: .relaxed))
            let allowed = storage.withLock { $0.limit } ?? limit
            if pauses.load(ordering: .relaxed) > 0 {
                try await Task.sleep(for: min(limit, .seconds(1)))
            } else if still >= allowed {
                return allowed
            } else {
                try await Task.sleep(for: min(max(allowed - still, .milliseconds(1)), limit))
            }
        }
    }
}

extension Duration {
    var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
