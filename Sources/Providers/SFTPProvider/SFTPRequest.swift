import FileProvider
import Synchronization

/// A request that was sent. Its response is awaited separately, so that requests follow each other without a round trip.
final class SFTPRequest: Sendable {
    private enum State {
        case sent
        case awaited(CheckedContinuation<SFTPReply, any Error>)
        case answered(Result<SFTPReply, any Error>)
        case abandoned
    }

    let sent = ContinuousClock.now
    /// The bytes of content in the request, or in its response.
    let contentLength: Int64
    /// Whether the server may take long: it writes a file to its disk.
    let isFlush: Bool
    private let state = Mutex(State.sent)

    init(contentLength: Int64 = 0, isFlush: Bool = false) {
        (self.contentLength, self.isFlush) = (contentLength, isFlush)
    }

    /// Waits for the response.
    func reply() async throws -> SFTPReply {
        let reply = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<SFTPReply, any Error>? = state.withLock { state in
                    switch state {
                    case .answered(let result): return result
                    case .abandoned: return .failure(CancellationError())
                    case .sent, .awaited:
                        state = .awaited(continuation)
                        return nil
                    }
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            abandon()
        }
        CallContext.current?.noteAnswer()
        return reply
    }

    /// Takes the response, or why there is none.
    ///
    /// - Returns: false when its caller was cancelled.
    @discardableResult func answer(_ result: Result<SFTPReply, any Error>) -> Bool {
        let (isWanted, waiting) = state.withLock { state in
            defer { if case .abandoned = state {} else { state = .answered(result) } }
            switch state {
            case .awaited(let continuation): return (true, Optional(continuation))
            case .sent: return (true, nil)
            case .answered, .abandoned: return (false, nil)
            }
        }
        waiting?.resume(with: result)
        return isWanted
    }

    private func abandon() {
        let waiting: CheckedContinuation<SFTPReply, any Error>? = state.withLock { state in
            switch state {
            case .awaited(let continuation):
                state = .abandoned
                return continuation
            case .sent:
                state = .abandoned
                return nil
            case .answered, .abandoned: return nil
            }
        }
        waiting?.resume(throwing: CancellationError())
    }
}
