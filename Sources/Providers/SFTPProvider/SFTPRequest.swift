import FileProvider

/// A request that was sent. Its response is awaited separately, so that requests follow each other without a round trip.
final class SFTPRequest: Sendable {
    let sent = ContinuousClock.now
    /// The bytes of content in the request, or in its response.
    let contentLength: Int64
    /// Whether the server may take long: it writes a file to its disk.
    let isFlush: Bool
    private let response = OneShot<SFTPReply>()

    init(contentLength: Int64 = 0, isFlush: Bool = false) {
        (self.contentLength, self.isFlush) = (contentLength, isFlush)
    }

    func reply() async throws -> SFTPReply {
        let reply = try await response.value { response.give(.failure(CancellationError())) }
        CallContext.current?.noteAnswer()
        return reply
    }

    /// Takes the response, or why there is none.
    ///
    /// - Returns: false when its caller was cancelled.
    @discardableResult func answer(_ result: Result<SFTPReply, any Error>) -> Bool { response.give(result) }
}
