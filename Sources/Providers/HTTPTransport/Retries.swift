import Foundation

/// The pauses before a request is repeated.
package struct Retries: Sendable, Hashable {
    package var attempts = 4
    /// The longest first pause; each further one may be twice as long.
    package var firstPause: Duration = .milliseconds(200)
    package var longestPause: Duration = .seconds(5)
    /// The longest `Retry-After` that is obeyed. For a longer one the request fails, and the caller decides when to repeat it.
    package var longestRequestedPause: Duration = .seconds(20)

    package init() {}

    /// The pause after a number of attempts; nil when there must be no further one.
    func pause(after done: Int, requested: Duration? = nil) -> Duration? {
        guard done < attempts else { return nil }
        if let requested { return requested <= longestRequestedPause ? requested : nil }
        let longest = min(longestPause, firstPause * (1 << min(done - 1, 20)))
        // Half of it is random, so that requests that failed together are not repeated together.
        return longest / 2 + longest / 2 * Double.random(in: 0...1)
    }

    /// The pause in `Retry-After`: seconds, or a date.
    static func requestedPause(_ value: String?, now: Date = Date()) -> Duration? {
        guard let value = value?.trimmingBlanks(), !value.isEmpty else { return nil }
        if let seconds = Int(value) { return .seconds(max(0, min(seconds, 86_400))) }
        guard let seconds = HTTPDate.seconds(from: value) else { return nil }
        return .seconds(max(0, min(Double(seconds) - now.timeIntervalSince1970, 86_400)))
    }
}
