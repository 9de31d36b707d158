/// Why a domain could not be mounted again: there was no room on the disk.
struct WantOfRoom: Codable, Hashable, Sendable {
    /// The error of the last attempt, in words.
    var reason: String
    /// How many bytes were free on the disk with the state directory before it.
    var available: UInt64
    /// When it ended.
    var triedAt = ContinuousClock.now
    /// How many attempts since it have begun and not ended.
    var unfinished = 0
}
