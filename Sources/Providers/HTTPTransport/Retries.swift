import Foundation

/// How long to wait before a request is made again.
package struct Retries: Sendable, Hashable {
    /// How often a request is made at most.
    package var attempts = 4
    /// The longest first pause; each further one may be twice as long.
    package var firstPause: Duration = .milliseconds(200)
    package var longestPause: Duration = .seconds(5)
    /// The longest that a server may make somebody wait with `Retry-After`: beyond it the request fails, and whoever made
    /// it decides when to come back.
    package var longestRequestedPause: Duration = .seconds(20)

    package init() {}

    /// The pause after so many attempts; nil when it is enough.
    func pause(after done: Int, requested: Duration? = nil) -> Duration? {
        guard done < attempts else { return nil }
        if let requested { return requested <= longestRequestedPause ? requested : nil }
        let longest = min(longestPause, firstPause * (1 << min(done - 1, 20)))
        // Half of it is chance: many that failed together do not come back together.
        return longest / 2 + longest / 2 * Double.random(in: 0...1)
    }

    /// What `Retry-After` says: seconds, or a date.
    static func requestedPause(_ value: String?, now: Date = Date()) -> Duration? {
        guard let value = value?.trimmingBlanks(), !value.isEmpty else { return nil }
        if let seconds = Int(value) { return .seconds(max(0, min(seconds, 86_400))) }
        guard let seconds = HTTPDate.seconds(from: value) else { return nil }
        return .seconds(max(0, min(Double(seconds) - now.timeIntervalSince1970, 86_400)))
    }
}
