import FileProvider
import Synchronization

/// Which items with hidden names were left behind by interrupted changes: those that are old by their dates, and were seen unchanged for
/// a while. A date alone says little where the clock of this machine, or of the remote, is wrong: the item may be an upload of another
/// machine. What was seen is kept in memory: an item is found by two listings of its directory in one session.
final class Leftovers: Sendable {
    private let age: Int64
    private let patience: Duration
    private let state = Mutex(State())
    /// More items wait until some of these are removed.
    private static let most = 1000

    private struct Seen {
        var tag: [UInt8]
        var since: ContinuousClock.Instant
        var last: ContinuousClock.Instant
    }

    private struct State {
        var seen: [RemotePath: Seen] = [:]
        /// When items that are not listed any more were forgotten last.
        var tidied: ContinuousClock.Instant?
        /// The removals that are being ended.
        var finishing: Set<RemotePath> = []
    }

    /// - Parameters:
    ///   - age: by the dates, in seconds.
    ///   - patience: for how long an item must have been as it is.
    init(age: Int64, patience: Duration) {
        (self.age, self.patience) = (age, patience)
    }

    /// Whether an item that was listed is to be removed. One for which this was true is seen for the first time again.
    func contain(_ entry: RemoteEntry, at path: RemotePath) -> Bool {
        guard let date = entry.attributes.contentModificationDate,
            FileTimestamp.now.seconds - date.seconds >= age
        else { return false }
        let now = ContinuousClock.now
        return state.withLock { state in
            if patience <= .zero { return true }
            if let known = state.seen[path], known.tag == entry.tag {
                guard now - known.since >= patience else {
                    state.seen[path]?.last = now
                    return false
                }
                state.seen[path] = nil
                return true
            }
            if state.seen[path] == nil, state.seen.count >= Self.most { tidy(&state, now) }
            if state.seen[path] != nil || state.seen.count < Self.most {
                state.seen[path] = Seen(tag: entry.tag, since: now, last: now)
            }
            return false
        }
    }

    /// Ends a removal that was interrupted, unless that is being done already. Of very many, some are left to a later listing.
    func finishRemoval(at path: RemotePath, of remote: any HidingRemote) {
        let isNew = state.withLock { state in
            state.finishing.count < Self.most && state.finishing.insert(path).inserted
        }
        guard isNew else { return }
        Task {
            try? await remote.finishRemoval(at: path)
            _ = state.withLock { $0.finishing.remove(path) }
        }
    }

    /// Forgets items that no listing has had for long: another machine may have removed them. A directory may have many thousands, so
    /// it is not done for each.
    private func tidy(_ state: inout State, _ now: ContinuousClock.Instant) {
        if let tidied = state.tidied, now - tidied < patience { return }
        state.tidied = now
        state.seen = state.seen.filter { now - $0.value.last < .seconds(max(age, 1)) }
    }
}
