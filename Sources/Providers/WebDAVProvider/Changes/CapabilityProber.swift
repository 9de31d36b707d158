import FileProvider
import FileProviderPaths
import Synchronization

/// Probes the capabilities of the server when they are first needed, once for all callers.
final class CapabilityProber: Sendable {
    let changes: ChangeRequests
    private let state = Mutex(State())
    /// After a probe that a failed move has ended. A probe is some forty requests, and each change that waits asks for one.
    private static let pauses = (first: Duration.seconds(5), longest: Duration.seconds(60))

    private struct State {
        var probe: Task<ServerCapabilities, any Error>?
        /// What ended the last probe, and when the next one may begin.
        var failure: (error: FileProviderError, end: ContinuousClock.Instant)?
        var pause = CapabilityProber.pauses.first

        var present: FileProviderError? {
            guard let failure, failure.end > ContinuousClock.now else { return nil }
            return failure.error
        }

        mutating func note(_ result: Result<ServerCapabilities, any Error>) {
            do {
                _ = try result.get()
                failure = nil
                pause = CapabilityProber.pauses.first
            } catch let moving as ProbeMoveFailure {
                failure = (error: moving.error, end: ContinuousClock.now + pause)
                pause = min(pause * 2, CapabilityProber.pauses.longest)
            } catch {}
        }
    }

    init(_ changes: ChangeRequests) {
        self.changes = changes
    }

    /// - Parameter directory: the directory of the hidden files of a probe, or else the deepest one above it with plain names
    ///   alone: a probe moves files.
    /// - Throws: the error for which files cannot be created in the directory.
    func capabilities(probingIn directory: RemotePath) async throws -> ServerCapabilities {
        let store = changes.server.capabilityStore
        if let capabilities = store.capabilities { return capabilities }
        if let failure = state.withLock({ $0.present }) { throw failure }
        let (task, isShared) = state.withLock { state in
            if let probe = state.probe { return (probe, true) }
            let task = Task { [changes] in
                var plain = directory
                while ServerCapabilities.isOdd(plain) { plain = plain.parent }
                let capabilities = try await CapabilityProbe(changes, in: plain).run()
                // Once: a caller that is slow to notice the end may not undo what is found out later.
                store.keep(capabilities)
                return capabilities
            }
            state.probe = task
            return (task, false)
        }
        let result = isShared ? await CallContext.waiting { await task.result } : await task.result
        state.withLock { state in
            guard state.probe == task else { return }
            state.probe = nil
            state.note(result)
        }
        try Task.checkCancellation()
        do {
            return try result.get()
        } catch let moving as ProbeMoveFailure {
            throw moving.error
        }
    }

    /// The next caller begins a probe, however short ago one failed.
    func retryNow() {
        state.withLock { state in
            state.failure = nil
            state.pause = Self.pauses.first
        }
    }

    /// - Returns: the probe that was in progress.
    func cancel() -> Task<ServerCapabilities, any Error>? {
        let task = state.withLock { $0.probe }
        task?.cancel()
        return task
    }
}
