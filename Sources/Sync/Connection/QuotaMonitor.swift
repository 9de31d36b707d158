import FileProvider
import Synchronization

/// Caches the remote's quota. It is requested when the engine starts, and again when a caller asks and the cached
/// value has expired; a caller never waits for the request.
package final class QuotaMonitor: Sendable {
    private struct State {
        var quota: RemoteQuota?
        var askedAt: ContinuousClock.Instant?
        var asking: Task<Void, Never>?
        var isStopped = false
    }

    private let state = Mutex(State())
    private let calls: ProviderCalls
    /// For how long an answer is good, also one that there is none.
    private static let lifetime = Duration.seconds(60)

    init(calls: ProviderCalls) {
        self.calls = calls
    }

    /// The last known quota; nil before the first response. Returns at once, from any thread.
    package var present: RemoteQuota? {
        ask()
        return state.withLock { $0.quota }
    }

    /// Asks the remote, unless it was asked lately. Returns at once.
    func ask() {
        let now = ContinuousClock.now
        state.withLock { state in
            guard state.asking == nil, !state.isStopped else { return }
            if let askedAt = state.askedAt, now - askedAt < Self.lifetime { return }
            state.askedAt = now
            state.asking = Task { [self] in
                // After a failure the last value is kept.
                let answer = try? await calls.make(.quota, for: FileProviderRequest(reason: .synchronization)) {
                    try await $0.quota()
                }
                self.state.withLock { state in
                    if let answer { state.quota = answer }
                    state.asking = nil
                }
            }
        }
    }

    /// Asks no more. Waits for no answer.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            state.asking?.cancel()
        }
    }
}
