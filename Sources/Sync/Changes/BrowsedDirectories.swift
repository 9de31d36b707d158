import Replica

/// The directories that processes opened lately, and when each is to be compared with the remote next: soon after it
/// was opened, then at growing intervals, and no more some minutes after the last open.
struct BrowsedDirectories {
    typealias Instant = ContinuousClock.Instant

    private struct Look {
        var lastAt: Instant
        var due: Instant
        var pause: Duration
        /// Looking into it again makes it no sooner.
        var notBefore: Instant
    }

    private var looks: [InodeNumber: Look] = [:]

    static let firstPause = Duration.seconds(2)
    /// The longest interval between two comparisons of a browsed directory.
    static let longestPause = Duration.seconds(10)
    static let memory = Duration.seconds(300)
    /// A walk opens every directory of a tree: only the last ones are kept.
    static let most = 16

    /// At most one part in so many of the time is spent on comparisons.
    static let longestShare = 20

    /// When the next comparison is due; nil for none.
    var nextDue: Instant? { looks.values.map(\.due).min() }

    mutating func looked(into directory: InodeNumber, at now: Instant) {
        var look =
            looks[directory]
            ?? Look(lastAt: now, due: now + Self.firstPause, pause: Self.firstPause, notBefore: now)
        look.lastAt = now
        look.pause = Self.firstPause
        look.due = max(look.notBefore, min(look.due, now + Self.firstPause))
        looks[directory] = look
        if looks.count > Self.most, let oldest = looks.min(by: { $0.value.lastAt < $1.value.lastAt }) {
            looks[oldest.key] = nil
        }
    }

    /// The directories that are to be compared now; each of them later again.
    mutating func takeDue(at now: Instant) -> [InodeNumber] {
        looks = looks.filter { now - $0.value.lastAt <= Self.memory }
        let due = looks.filter { $0.value.due <= now }.map(\.key).sorted { $0.rawValue < $1.rawValue }
        for directory in due {
            guard var look = looks[directory] else { continue }
            look.pause = min(Self.longestPause, look.pause * 3 / 2)
            look.due = now + look.pause
            looks[directory] = look
        }
        return due
    }

    /// Directories were compared, which took so long: that is not done for more than a small part of the time.
    mutating func compared(_ directories: [InodeNumber], took: Duration, at now: Instant) {
        let earliest = now + took * BrowsedDirectories.longestShare
        for directory in directories {
            guard let due = looks[directory]?.due, due < earliest else { continue }
            looks[directory]?.due = earliest
            looks[directory]?.notBefore = earliest
        }
    }
}
