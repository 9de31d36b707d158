/// Changes that programs make here one after the other, such as those of `rm -r` or `tar`. While they make them they get most of
/// the machine, and at first all of it: what is sent or tidied meanwhile costs them more time than it wins.
struct BurstOfChanges: Sendable {
    private var count = 0
    private var first: ContinuousClock.Instant
    private var last: ContinuousClock.Instant

    /// Programs count as busy for this long after their last change.
    static let quiet = Duration.milliseconds(250)
    /// Fewer changes have no precedence.
    static let least = 32
    /// After this what waits is begun, although there are more changes.
    static let longestPrecedence = Duration.seconds(3)

    init(at now: ContinuousClock.Instant = .now) {
        (first, last) = (now - .seconds(60), now - .seconds(60))
    }

    mutating func note(at now: ContinuousClock.Instant) {
        if isOn(at: now) {
            count += 1
        } else {
            (first, count) = (now, 1)
        }
        last = now
    }

    /// Whether programs are changing something right now.
    func isOn(at now: ContinuousClock.Instant) -> Bool { now - last < Self.quiet }

    /// Until when what can wait is not begun, if there are no more changes; nil when it can begin now.
    func endOfPrecedence(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        guard count >= Self.least, isOn(at: now), now - first < Self.longestPrecedence else { return nil }
        return min(last + Self.quiet, first + Self.longestPrecedence)
    }
}
