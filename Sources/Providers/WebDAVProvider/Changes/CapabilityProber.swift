import FileProvider
import FileProviderPaths
import Synchronization

/// Probes the capabilities of the server when they are first needed, once for all callers.
final class CapabilityProber: Sendable {
    let changes: ChangeRequests
    private let probe = Mutex<Task<ServerCapabilities, any Error>?>(nil)

    init(_ changes: ChangeRequests) {
        self.changes = changes
    }

    /// - Parameter directory: the directory of the hidden files of a probe, or else the deepest one above it with plain names
    ///   alone: a probe moves files.
    /// - Throws: the error for which files cannot be created in the directory.
    func capabilities(probingIn directory: RemotePath) async throws -> ServerCapabilities {
        let store = changes.server.capabilityStore
        if let capabilities = store.capabilities { return capabilities }
        let (task, isShared) = probe.withLock { probe in
            if let probe { return (probe, true) }
            let task = Task { [changes] in
                var plain = directory
                while ServerCapabilities.isOdd(plain) { plain = plain.parent }
                let capabilities = try await CapabilityProbe(changes, in: plain).run()
                // Once: a caller that is slow to notice the end may not undo what is found out later.
                store.keep(capabilities)
                return capabilities
            }
            probe = task
            return (task, false)
        }
        let result = isShared ? await CallContext.waiting { await task.result } : await task.result
        probe.withLock { if $0 == task { $0 = nil } }
        try Task.checkCancellation()
        return try result.get()
    }

    /// - Returns: the probe that was in progress.
    func cancel() -> Task<ServerCapabilities, any Error>? {
        let task = probe.withLock { $0 }
        task?.cancel()
        return task
    }
}
