import FileProvider
import FileProviderPaths
import Synchronization

/// Probes the capabilities of the server when they are first needed, once for all callers.
final class CapabilityProber: Sendable {
    let changes: ChangeRequests
    private let state = Mutex(State())
    private let probe = SharedTask<ServerCapabilities>()
    /// After a probe that a failed move has ended. A probe is some forty requests, and each change that waits asks for one.
    private static let pauses = (first: Duration.seconds(5), longest: Duration.seconds(60))

    private struct State {
        /// What ended the last probe, and when the next one may begin.
        var failure: (error: FileProviderError, end: ContinuousClock.Instant)?
        var pause = CapabilityProber.pauses.first
        /// Whether a probe has ended in this session.
        var hasProbed = false

        var present: FileProviderError? {
            guard let failure, failure.end > ContinuousClock.now else { return nil }
            return failure.error
        }

        mutating func forgetFailure() { (failure, pause) = (nil, CapabilityProber.pauses.first) }
    }

    init(_ changes: ChangeRequests) {
        self.changes = changes
    }

    /// - Parameter directory: the directory of the hidden files of a probe, or else the deepest one above it with plain names
    ///   alone: a probe moves files.
    /// - Throws: the error for which files cannot be created in the directory.
    func capabilities(probingIn directory: RemotePath) async throws -> ServerCapabilities {
        if let known { return known }
        if let failure = state.withLock({ $0.present }) { throw failure }
        do {
            return try await probe.value { [self] in
                // A probe may just have ended.
                if let known { return known }
                return try await findOut(probingIn: directory)
            }
        } catch let error as FileProviderError where error.code == .insufficientQuota {
            // What an earlier session has found out is still true.
            guard let earlier = changes.server.capabilityStore.capabilities else { throw error }
            return earlier
        }
    }

    /// The capabilities; nil if the server is to be probed, once in each session where the last probe has found no room for dates.
    private var known: ServerCapabilities? {
        guard let known = changes.server.capabilityStore.capabilities else { return nil }
        return known.lacksRoom != true || state.withLock { $0.hasProbed } ? known : nil
    }

    private func findOut(probingIn directory: RemotePath) async throws -> ServerCapabilities {
        var plain = directory
        while ServerCapabilities.isOdd(plain) { plain = plain.parent }
        defer { state.withLock { $0.hasProbed = true } }
        do {
            let capabilities = try await CapabilityProbe(changes, in: plain).run()
            changes.server.capabilityStore.keep(capabilities)
            state.withLock { $0.forgetFailure() }
            return capabilities
        } catch let moving as ProbeMoveFailure {
            state.withLock { state in
                state.failure = (error: moving.error, end: ContinuousClock.now + state.pause)
                state.pause = min(state.pause * 2, Self.pauses.longest)
            }
            throw moving.error
        }
    }

    /// The next caller begins a probe, however short ago one failed.
    func retryNow() { state.withLock { $0.forgetFailure() } }

    /// - Returns: the probe that was in progress.
    func cancel() -> Task<ServerCapabilities, any Error>? {
        let task = probe.current
        task?.cancel()
        return task
    }
}
