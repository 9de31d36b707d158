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
        /// The user wants no calls.
        case paused
    }

    private struct Latch {
        var error: FileProviderError
        var attempts: Int
        var failedAt: ContinuousClock.Instant
        var nextAttempt: ContinuousClock.Instant
    }

    private let latch = Mutex<Latch?>(nil)
    private let isPaused = Mutex(false)
    private let logger: Logger
    private let clock = ContinuousClock()
    /// While the remote is unreachable, at most one caller per interval is let through as the probe.
    private static let shortestPause = Duration.seconds(1)
    private static let longestPause = Duration.seconds(4)
    /// Servers lock accounts after repeated attempts with wrong credentials.
    private static let longestPauseBetweenCredentials = Duration.seconds(60)

    package init(logger: Logger) {
        self.logger = logger
    }

    package var state: State {
        if isPaused.withLock({ $0 }) { return .paused }
        return latch.withLock { latch in
            guard let latch else { return .online }
            return latch.error.code == .notAuthenticated ? .unauthenticated : .offline
        }
    }

    /// Why the remote is not asked; nil while it is.
    package var failure: FileProviderError? {
        isPaused.withLock { $0 } ? Self.pause : latch.withLock { $0?.error }
    }

    /// Asks whether a call might be made, without making it the attempt.
    ///
    /// - Throws: what latched the domain, until the next attempt is due.
    package func check() throws(FileProviderError) {
        try checkPause()
        let refusal = latch.withLock { latch in
            latch.flatMap { clock.now < $0.nextAttempt ? $0.error : nil }
        }
        if let refusal { throw refusal }
    }

    /// Asks whether a call may be made.
    ///
    /// - Throws: what latched the domain, until the next attempt is due. The first caller after that makes the
    /// attempt.
    package func admit() throws(FileProviderError) {
        try checkPause()
        let refusal: FileProviderError? = latch.withLock { latch in
            guard let current = latch else { return nil }
            guard clock.now >= current.nextAttempt else { return current.error }
            latch?.nextAttempt = clock.now + Self.shortestPause
            return nil
        }
        if let refusal { throw refusal }
    }

    /// The remote answered.
    ///
    /// - Returns: whether that ended a latch.
    @discardableResult
    package func succeeded() -> Bool {
        let wasLatched = latch.withLock { latch in
            defer { latch = nil }
            return latch != nil
        }
        if wasLatched { logger.notice("the remote answers again") }
        return wasLatched
    }

    /// A call failed. Only what concerns the whole domain latches it.
    ///
    /// - Returns: whether that began a latch.
    @discardableResult
    package func failed(with error: FileProviderError) -> Bool {
        guard error.code.reaction == .latchDomain else {
            // Any other answer shows that the remote is there.
            if error.code != .timedOut, error.code != .userCancelled, error.code != .posix { succeeded() }
            return false
        }
        let isNew = latch.withLock { current in
            let now = clock.now
            let previous = current
            // Calls that were under way together fail together: that is one attempt.
            let isSameAttempt = previous.map { now - $0.failedAt < Self.shortestPause } ?? false
            current = Latch(
                error: error, attempts: (previous?.attempts ?? 0) + (isSameAttempt ? 0 : 1), failedAt: now,
                nextAttempt: now + Self.shortestPause)
            return previous == nil
        }
        if isNew { logger.warning("the remote is not asked for now: \(error)") }
        return isNew
    }

    /// How long to wait before the system itself tries again: doubling, with a cap.
    package var pauseBeforeProbe: Duration {
        let (attempts, isUnauthenticated) = latch.withLock { latch in
            (latch?.attempts ?? 0, latch?.error.code == .notAuthenticated)
        }
        let longest = isUnauthenticated ? Self.longestPauseBetweenCredentials : Self.longestPause
        return min(longest, .seconds(1 << min(max(attempts - 1, 0), 6)))
    }

    /// Makes the next failure count as another attempt, however soon it comes. For tests.
    func forgetWhenItFailed() {
        latch.withLock { $0?.failedAt -= Self.shortestPause * 2 }
    }

    private static let pause = FileProviderError(
        .serverUnreachable, "the domain is paused: 'yonder resume' goes on")

    /// No calls from now on, or calls again.
    package func pause(_ isPaused: Bool) {
        self.isPaused.withLock { $0 = isPaused }
    }

    private func checkPause() throws(FileProviderError) {
        if isPaused.withLock({ $0 }) { throw Self.pause }
    }

    /// Lifts the latch: whatever asks next is let through.
    package func reset() {
        latch.withLock { $0 = nil }
    }
}
