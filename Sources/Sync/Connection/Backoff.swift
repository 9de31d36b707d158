import FileProvider
import Replica
import SystemPackage

/// When a call that failed is made again.
enum Backoff {
    private static let first = Duration.seconds(2)
    private static let longest = Duration.seconds(120)

    /// Whether a failure may pass by itself, so that the same call is worth making again without a change by the user.
    static func isTransient(_ error: FileProviderError) -> Bool {
        error.code.reaction == .retry && error.code != .malformedResponse
    }

    /// The pause before the next attempt at a listing or a round of changes, after `attempts` retries.
    static func pause(after attempts: Int) -> Duration { min(longest, first * (1 << min(max(attempts, 0), 10))) }

    /// When to send an item again: soon where the failure is transient, else after half a minute and more.
    static func nextTry(after failure: FileProviderError, attempts: Int) -> FileTimestamp {
        let isTransient = failure.code.reaction == .retry && failure.errno != .readOnlyFileSystem
        let (first, most): (Int64, Int64) = isTransient ? (1, 60) : (30, 3600)
        let seconds = min(most, first << Int64(min(max(attempts, 0), 12)))
        return Replica.now.advanced(by: .seconds(seconds))
    }
}
