/// A session with a process or a server that may end at any time.
package protocol HostedSession: Sendable {
    var isOpen: Bool { get }
    func close() async
}

/// The pauses before a session is opened again. They grow with the number of ends and failed attempts in a row.
package struct SessionPauses: Sendable {
    let lengths: [Duration]
    let goodLife: Duration
    let longestWait: Duration?

    /// - Parameters:
    ///   - lengths: after the first end or failed attempt in a row, after the second, and so on; the last one after all others.
    ///   - goodLife: the end of a session that has lived longer counts as the first in a row.
    ///   - longestWait: callers wait for a shorter pause, and fail with ``SessionPause`` during a longer one; nil if they always wait.
    package init(_ lengths: [Duration], goodLife: Duration, longestWait: Duration? = nil) {
        (self.lengths, self.goodLife, self.longestWait) = (lengths, goodLife, longestWait)
    }
}

/// No session is opened yet, because the last ones have ended soon or could not be opened.
package struct SessionPause: Error {
    /// The time until the next attempt.
    package let wait: Duration
    /// Why the last attempt has failed; nil if it has not.
    package let failure: (any Error)?
}

/// Keeps a session open: opens it when a call needs it, once for all callers, and again after it has ended.
package actor SessionHost<Session: HostedSession> {
    private let pauses: SessionPauses
    private let open: @Sendable () async throws -> Session
    private let onEnd: @Sendable (Session) -> Void
    private var current: Session?
    private var opening: Task<Session, any Error>?
    /// When the attempt began that opened the present session.
    private var openedAt = ContinuousClock.now
    /// Ends and failed attempts, without a longer life in between.
    private var failures = 0
    private var lastFailure: (any Error)?
    private var earliestAttempt = ContinuousClock.now
    private var isClosed = false

    /// - Parameters:
    ///   - open: opens a session. Cancelled when the host is closed.
    ///   - onEnd: called with a session that has ended, before another one is opened.
    package init(
        _ pauses: SessionPauses, onEnd: @escaping @Sendable (Session) -> Void = { _ in },
        open: @escaping @Sendable () async throws -> Session
    ) {
        (self.pauses, self.open, self.onEnd) = (pauses, open, onEnd)
    }

    /// The present session, opened if necessary. A caller that is cancelled does not wait for it.
    ///
    /// - Throws: ``SessionPause``; what opening throws; `CancellationError`; `userCancelled` after ``close()``.
    package func session() async throws -> Session {
        guard !isClosed else { throw FileProviderError(.userCancelled) }
        if let current, current.isOpen { return current }
        dropEnded()
        let task = try opening ?? beginOpening()
        return try await task.valueUnlessCancelled
    }

    /// Opens a session with the next call, however often one has ended.
    package func retryNow() {
        dropEnded()
        earliestAttempt = .now
    }

    /// Closes the session, and opens no more.
    package func close() async {
        isClosed = true
        opening?.cancel()
        // No process is left behind that is being started.
        _ = try? await opening?.value
        await current?.close()
    }

    private func beginOpening() throws -> Task<Session, any Error> {
        let wait = earliestAttempt - .now
        if let longest = pauses.longestWait, wait >= longest { throw SessionPause(wait: wait, failure: lastFailure) }
        let task = Task {
            defer { opening = nil }
            do {
                if wait > .zero { try await Task.sleep(for: wait) }
                // Closed before the attempt began: nothing is started.
                try Task.checkCancellation()
                let start = ContinuousClock.now
                let session = try await open()
                if isClosed {
                    await session.close()
                    throw FileProviderError(.userCancelled)
                }
                (current, openedAt, lastFailure) = (session, start, nil)
                return session
            } catch {
                lastFailure = error
                noteEnd(after: .zero)
                throw error
            }
        }
        opening = task
        return task
    }

    private func dropEnded() {
        guard let ended = current, !ended.isOpen else { return }
        current = nil
        noteEnd(after: .now - openedAt)
        onEnd(ended)
    }

    private func noteEnd(after life: Duration) {
        failures = life > pauses.goodLife ? 1 : failures + 1
        earliestAttempt = .now + pauses.lengths[min(failures, pauses.lengths.count) - 1]
    }
}
