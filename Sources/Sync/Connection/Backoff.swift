import FileProvider
import Replica
import SystemPackage

/// Pauses between attempts: each is twice as long as the one before, up to a limit.
struct Backoff: Sendable {
    let first: Duration
    let longest: Duration

    /// Listings and rounds of changes.
    static let listing = Backoff(first: .seconds(2), longest: .seconds(120))
    /// Rounds of changes that fail for a reason that will hardly pass by itself.
    static let refusedRound = Backoff(first: .seconds(2), longest: .seconds(3600))
    /// Downloads that no process waits for.
    static let download = Backoff(first: .seconds(1), longest: .seconds(600))

    /// Whether a failure may pass by itself, so that the same call is worth making again without a change by the user.
    static func isTransient(_ error: FileProviderError) -> Bool {
        error.code.reaction == .retry && error.code != .malformedResponse
    }

    /// The pause before the next attempt.
    ///
    /// - Parameter attempts: how many pauses there were already.
    func pause(after attempts: Int) -> Duration { min(longest, first * (1 << min(max(attempts, 0), 12))) }

    /// Changes whose failure is transient.
    private static let sending = Backoff(first: .seconds(1), longest: .seconds(60))
    /// Changes that are refused.
    private static let refused = Backoff(first: .seconds(30), longest: .seconds(3600))

    /// Changes that wait for what becomes of held removals, if nothing else has them tried before.
    static let whileRemovalsAreHeld = Backoff(first: .seconds(3600), longest: .seconds(86_400))

    /// When to send an item again: soon where the failure is transient, else after half a minute and more.
    static func nextTry(after failure: FileProviderError, attempts: Int) -> FileTimestamp {
        let isTransient = failure.code.reaction == .retry && failure.errno != .readOnlyFileSystem
        return FileTimestamp.now.advanced(by: (isTransient ? sending : refused).pause(after: attempts))
    }

    /// The longest pause that ``nextTry(after:attempts:)`` gives a change, whatever its failure was.
    ///
    /// - Parameter attempts: how often in a row the change has failed, the last failure included.
    static func longestPause(ofChangeWith attempts: Int) -> Duration {
        attempts > 0 ? refused.pause(after: attempts - 1) : .zero
    }
}
