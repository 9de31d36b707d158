/// How many bytes of contents may be in flight in a session: as many as the line carries in a moment, so that a lookup or a small
/// file does not wait long behind a large one. It follows the delay, as LEDBAT does (RFC 6817).
struct SFTPWindow {
    private(set) var limit: Int64 = 256 << 10
    private var inFlight: Int64 = 0
    /// The delay of a request that met no other.
    private var shortestDelay = Duration.seconds(60)

    /// Twice the window of a channel of OpenSSH, so that the server always has a request.
    static let largest: Int64 = 4 << 20
    private static let smallest: Int64 = 64 << 10
    /// What every server takes in one message.
    static let smallestPiece: Int64 = 32 << 10
    /// The line is full from the first on, and others wait too long from the second on.
    private static let queueing = (full: Duration.milliseconds(250), long: Duration.milliseconds(500))

    func hasRoom(for count: Int64) -> Bool { inFlight + count <= limit }

    /// The most bytes that one message should have.
    var pieceLength: Int64 { max(Self.smallestPiece, limit / 4) }

    /// A request is sent.
    ///
    /// - Parameter count: the bytes of content in the request or in its response.
    mutating func begin(_ count: Int64) { inFlight += count }

    /// The response is here.
    mutating func end(_ count: Int64, after delay: Duration) {
        inFlight -= count
        shortestDelay = min(shortestDelay, delay)
        guard count > 0 else { return }
        let queueing = delay - shortestDelay
        if queueing < Self.queueing.full {
            limit = min(limit + count, Self.largest)
        } else if queueing > Self.queueing.long {
            limit = max(limit - count, Self.smallest)
        }
    }
}
