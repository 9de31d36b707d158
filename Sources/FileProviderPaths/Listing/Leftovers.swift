import FileProvider
import Foundation
import Synchronization

/// Which items with hidden names were left behind by interrupted changes: those that are old by their dates, and were seen unchanged for
/// a while. A date alone says little where the clock of this machine, or of the remote, is wrong: the item may be an upload of another
/// machine.
final class Leftovers: Sendable {
    private let age: Int64
    private let patience: Duration
    private let seen = Mutex<[RemotePath: Seen]>([:])
    /// Of more all are seen for the first time again.
    private static let most = 1000

    private struct Seen {
        var tag: [UInt8]
        var since: ContinuousClock.Instant
    }

    /// - Parameters:
    ///   - age: by the dates, in seconds.
    ///   - patience: for how long an item must have been as it is.
    init(age: Int64, patience: Duration) {
        (self.age, self.patience) = (age, patience)
    }

    /// Whether an item that was listed is to be removed.
    func contain(_ entry: RemoteEntry, at path: RemotePath) -> Bool {
        guard let date = entry.attributes.contentModificationDate,
            Int64(Date().timeIntervalSince1970) - date.seconds >= age
        else { return false }
        let now = ContinuousClock.now
        let since = seen.withLock { seen in
            if let known = seen[path], known.tag == entry.tag { return known.since }
            if seen.count >= Self.most { seen = [:] }
            seen[path] = Seen(tag: entry.tag, since: now)
            return now
        }
        return now - since >= patience
    }
}
