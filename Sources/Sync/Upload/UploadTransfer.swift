import Synchronization

/// How far an upload is. Told by the provider's reading, from any thread.
final class UploadTransfer: Sendable {
    private struct State {
        var done: Int64 = 0
        var total: Int64 = 0
    }

    private let state = Mutex(State())
    private let traffic: ContentTraffic
    /// An upload whose bytes are taken is not stuck.
    let callProgress = CallProgress()

    init(traffic: ContentTraffic) {
        self.traffic = traffic
    }

    func begin(_ total: Int64) {
        state.withLock { $0 = State(total: total) }
    }

    /// The call is made again from the beginning.
    func restart() {
        state.withLock { $0.done = 0 }
    }

    func advance(_ count: Int64) {
        state.withLock { $0.done = min($0.total, $0.done + count) }
        traffic.send(count)
        callProgress.advance()
    }

    /// Waits until bytes that were taken may be sent.
    func pace(_ count: Int64) async throws {
        try await traffic.sending.pass(count) { callProgress.advance() }
    }

    /// Bytes taken, of all; nil while no bytes are to be sent.
    var progress: (done: Int64, total: Int64)? {
        state.withLock { $0.total > 0 ? ($0.done, $0.total) : nil }
    }
}
