import FileProvider
import Synchronization

/// Since when changes cannot be sent because the remote does not have the item, or its directory.
final class MissedItems: Sendable {
    private struct Entry {
        var since: ContinuousClock.Instant
        var last: ContinuousClock.Instant
    }

    private struct State {
        var entries: [ItemIdentifier: Entry] = [:]
        /// With so many entries, those that count no longer are removed.
        var limit = MissedItems.fewEntries
        /// How often in a row items were missing and a lookup found them.
        var findings: [ItemIdentifier: Int] = [:]
    }

    private let state = Mutex(State())
    private static let fewEntries = 1024
    /// An item that was not missed for so long may have been there meanwhile. A change of one that is still missing is tried more often.
    private static let longestGap = Backoff.longestPause(ofChangeWith: .max) + .seconds(600)
    /// After this time an item counts as gone although no comparison of all directories ends well: its change has to be sent.
    private static let longestWait = Duration.seconds(86_400)

    /// Notes that an item is missing.
    ///
    /// - Returns: when it was missed first, and whether that is now.
    func note(
        _ identifier: ItemIdentifier, at now: ContinuousClock.Instant = .now
    ) -> (since: ContinuousClock.Instant, isNew: Bool) {
        state.withLock { state in
            if let known = state.entries[identifier], now - known.last < Self.longestGap {
                state.entries[identifier]?.last = now
                return (known.since, false)
            }
            if state.entries.count >= state.limit {
                state.entries = state.entries.filter { now - $0.value.last < Self.longestGap }
                state.limit = max(Self.fewEntries, 2 * state.entries.count)
            }
            state.entries[identifier] = Entry(since: now, last: now)
            return (now, true)
        }
    }

    /// Whether an item that is still missing counts as gone.
    ///
    /// - Parameters:
    ///   - since: when it was missed first.
    ///   - begun: when the last comparison of all directories that ended well began; nil for none.
    ///   - leftOut: when a listing that may have shown the item was last not taken in; nil for never.
    static func isGone(
        missedSince since: ContinuousClock.Instant, lastGoodRoundBegan begun: ContinuousClock.Instant?,
        lastLeftOut leftOut: ContinuousClock.Instant?, at now: ContinuousClock.Instant = .now
    ) -> Bool {
        if let begun, begun > since, leftOut.map({ $0 < begun }) ?? true { return true }
        return now - since >= longestWait
    }

    /// Notes that a lookup has found an item that was missing.
    ///
    /// - Returns: how often in a row that has happened.
    func noteFound(_ identifier: ItemIdentifier) -> Int {
        state.withLock { state in
            state.entries[identifier] = nil
            // A change whose count is lost is sent again soon a few more times.
            if state.findings.count >= Self.fewEntries { state.findings = [:] }
            let count = state.findings[identifier, default: 0] + 1
            state.findings[identifier] = count
            return count
        }
    }

    /// The remote has the item, or it counts as gone.
    func forget(_ identifier: ItemIdentifier) {
        state.withLock { state in
            state.entries[identifier] = nil
            state.findings[identifier] = nil
        }
    }
}
