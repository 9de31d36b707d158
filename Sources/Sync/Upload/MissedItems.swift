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
    }

    private let state = Mutex(State())
    private static let fewEntries = 1024
    /// An item that was not missed for so long may have been there meanwhile.
    private static let longestGap = Duration.seconds(300)

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

    /// The remote has the item, or it counts as gone.
    func forget(_ identifier: ItemIdentifier) {
        state.withLock { $0.entries[identifier] = nil }
    }
}
