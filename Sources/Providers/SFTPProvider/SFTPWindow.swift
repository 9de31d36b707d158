/// How many bytes of contents may be in flight in a session: as many as the line carries in about half a second, so that a lookup or
/// a small file does not wait long behind a large one. It follows the delay, as LEDBAT does (RFC 6817).
struct SFTPWindow {
    private(set) var limit: Int64 = 128 << 10
    private var inFlight: Int64 = 0
    /// The shortest delay of a message lately, and when it was measured: what the line and the server need without a queue.
    private var base: (delay: Duration, date: ContinuousClock.Instant)?

    /// Twice the window of a channel of OpenSSH, so that the server always has a request.
    static let largest: Int64 = 4 << 20
    private static let smallest: Int64 = 32 << 10
    private static let wide: Int64 = 1 << 20
    private static let baseLifetime = Duration.seconds(60)
    /// The line is full from the first on, and others wait too long from the second on.
    private static let queueing = (full: Duration.milliseconds(250), long: Duration.milliseconds(500))

    func hasRoom(for count: Int64) -> Bool { inFlight == 0 || inFlight + count <= limit }

    /// Whether the line carries so much that a window of one channel may not fill it.
    var isWide: Bool { limit >= Self.wide }

    /// The most bytes that one message should have.
    var pieceLength: Int64 { limit / 4 }

    /// A request is sent.
    ///
    /// - Parameter count: the bytes of content in the request or in its response.
    mutating func begin(_ count: Int64) { inFlight += count }

    /// The response is here.
    mutating func end(_ count: Int64, after delay: Duration, at now: ContinuousClock.Instant = .now) {
        inFlight -= count
        guard count > 0 else { return }
        let isOld = base.map { delay < $0.delay || $0.date.duration(to: now) > Self.baseLifetime } ?? true
        if isOld { base = (delay, now) }
        let queueing = delay - (base?.delay ?? delay)
        if queueing < Self.queueing.full {
            limit = min(limit + count, Self.largest)
        } else if queueing > Self.queueing.long {
            limit = max(limit - count, Self.smallest)
        }
    }
}
