import FileProvider
import Logging
import Synchronization

/// Whether the remote answers. A failure that concerns the whole domain latches it: what needs the remote then fails at
/// once with that failure, but for one call now and then that tries whether it has passed. Such a failure of one item does
/// not reach this type as long as the remote answers for its root (``RootProbe``).
package final class Connection: Sendable {
    package enum State: Hashable, Sendable {
        case online
        case unauthenticated
        case offline
        /// No calls are wanted, for one of the reasons of ``Pause``.
        case paused
    }

    /// Why no calls are made, whatever the remote is like.
    package enum Pause: Hashable, Sendable {
        case user
        /// The network connection of this machine is metered, and the domain waits for another.
        case metered

        fileprivate var error: FileProviderError {
            switch self {
            case .user: FileProviderError(.serverUnreachable, "the domain is paused: 'yonder resume NAME' goes on")
            case .metered:
                FileProviderError(
                    .serverUnreachable,
                    "the domain is paused while the network connection is metered: 'yonder resume NAME' goes on before that ends"
                )
            }
        }
    }

    private struct Latch {
        var error: FileProviderError
        var attempts: Int
        var failedAt: ContinuousClock.Instant
        var nextAttempt: ContinuousClock.Instant
    }

    private struct Guarded {
        var latch: Latch?
        var pause: Pause?
    }

    private let guarded = Mutex(Guarded())
    private let logger: Logger
    /// Notified after each change that ``check(isAttempt:)`` shows.
    let changes: ChangeSignal
    private let clock = ContinuousClock()
    /// While the remote is unreachable, at most one caller per interval is let through as the probe.
    private static let shortestPause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(4)
    /// Servers lock accounts after repeated attempts with wrong credentials.
    private static let longestPauseBetweenCredentials = Duration.seconds(60)

    package init(logger: Logger, changes: ChangeSignal = ChangeSignal()) {
        self.logger = logger
        self.changes = changes
    }

    package var state: State {
        guarded.withLock { guarded in
            if guarded.pause != nil { return .paused }
            guard let latch = guarded.latch else { return .online }
            return latch.error.code == .notAuthenticated ? .unauthenticated : .offline
        }
    }

    /// Why the remote is not asked; nil while it is.
    package var failure: FileProviderError? {
        guarded.withLock { $0.pause?.error ?? $0.latch?.error }
    }

    /// Why no calls are made as long as the domain is paused; nil while it is not.
    var refusalWhilePaused: FileProviderError? {
        guarded.withLock { $0.pause?.error }
    }

    /// Asks whether a call may be made now.
    ///
    /// - Parameter isAttempt: makes the call the attempt that is due: others are refused until the next one is.
    /// - Throws: the failure that latched the domain, until the next attempt is due.
    package func check(isAttempt: Bool = false) throws(FileProviderError) {
        let refusal: FileProviderError? = guarded.withLock { guarded in
            if let pause = guarded.pause { return pause.error }
            guard let latch = guarded.latch else { return nil }
            guard clock.now >= latch.nextAttempt else { return latch.error }
            if isAttempt { guarded.latch?.nextAttempt = clock.now + Self.shortestPause }
            return nil
        }
        if let refusal { throw refusal }
    }

    /// The remote answered.
    ///
    /// - Returns: whether that ended a latch.
    @discardableResult
    package func succeeded() -> Bool {
        let wasLatched = guarded.withLock { $0.latch.take() != nil }
        if wasLatched { logger.notice("the remote answers again") }
        return wasLatched
    }

    /// A call failed. Only what concerns the whole domain latches it.
    ///
    /// - Returns: whether that began a latch.
    @discardableResult
    package func failed(with error: FileProviderError, at now: ContinuousClock.Instant = .now) -> Bool {
        guard error.code.reaction == .latchDomain else {
            // Any other answer shows that the remote is there.
            if error.code != .timedOut, error.code != .userCancelled, error.code != .posix { succeeded() }
            return false
        }
        let isNew = guarded.withLock { guarded in
            let previous = guarded.latch
            // Calls that were under way together fail together: that is one attempt.
            let isSameAttempt = previous.map { now - $0.failedAt < Self.shortestPause } ?? false
            guarded.latch = Latch(
                error: error, attempts: (previous?.attempts ?? 0) + (isSameAttempt ? 0 : 1), failedAt: now,
                nextAttempt: now + Self.shortestPause)
            return previous == nil
        }
        changes.notify()
        if isNew { logger.warning("the remote is not asked for now: \(error)") }
        return isNew
    }

    /// How long to wait before the system itself tries again: doubling, with a cap.
    package var pauseBeforeProbe: Duration {
        let latch = guarded.withLock(\.latch)
        let isUnauthenticated = latch?.error.code == .notAuthenticated
        let longest = isUnauthenticated ? Self.longestPauseBetweenCredentials : Self.longestPause
        return Backoff(first: Self.shortestPause, longest: longest).pause(after: (latch?.attempts ?? 0) - 1)
    }

    /// No calls from now on, for a reason; or calls again, for nil.
    package func pause(_ pause: Pause?) {
        guarded.withLock { $0.pause = pause }
        changes.notify()
    }

    /// Removes the latch, so that the next call is made.
    package func reset() {
        guarded.withLock { $0.latch = nil }
    }
}
