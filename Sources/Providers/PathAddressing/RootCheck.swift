import FileProvider

/// Asks whether what is mounted is there at all, before anything in it is said to be gone: a collection may have been moved
/// away, a bucket removed, and neither is a reason to remove anything here.
actor RootCheck {
    private let remote: any PathRemote
    private let source: String
    private var running: Task<Void, any Error>?

    init(remote: any PathRemote, source: String) {
        self.remote = remote
        self.source = source
    }

    /// One question answers all who ask before it is asked.
    ///
    /// - Throws: `serverUnreachable` when it is not there; what the remote throws.
    func check() async throws {
        if let current = running {
            _ = await current.result
            if let next = running, next != current { return try await next.value }
        }
        let task = Task { [remote, source] in
            do {
                guard try await remote.entry(at: .root).kind == .directory else {
                    throw FileProviderError(.serverUnreachable, "'\(source)' is no directory on the remote")
                }
            } catch let error as FileProviderError where error.code == .noSuchItem {
                throw FileProviderError(.serverUnreachable, "'\(source)' is not there on the remote")
            }
        }
        running = task
        defer { if running == task { running = nil } }
        try await task.value
    }
}
