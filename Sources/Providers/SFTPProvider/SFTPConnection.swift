import FileProvider

/// The present session with a server; a new one when it has ended.
actor SFTPConnection {
    private let open: @Sendable () async throws -> SFTPSession
    private var current: SFTPSession?
    private var opening: Task<SFTPSession, any Error>?
    private var failures = 0
    private var isClosed = false

    init(open: @escaping @Sendable () async throws -> SFTPSession) {
        self.open = open
    }

    /// After a failure the next attempt waits, longer after each, at most ten seconds.
    func session() async throws -> SFTPSession {
        guard !isClosed else { throw FileProviderError(.serverUnreachable, "the connection was closed") }
        if let current, current.isOpen { return current }
        let task = opening ?? startOpening()
        // A caller that is cancelled does not wait for the program.
        return try await task.valueUnlessCancelled
    }

    private func startOpening() -> Task<SFTPSession, any Error> {
        let task = Task {
            defer { opening = nil }
            do {
                if failures > 0 { try await Task.sleep(for: .milliseconds(min(10_000, 100 << min(failures, 7)))) }
                let session = try await open()
                (failures, current) = (0, session)
                if isClosed { session.close() }
                return session
            } catch {
                failures += 1
                throw error
            }
        }
        opening = task
        return task
    }

    func close() {
        isClosed = true
        opening?.cancel()
        current?.close()
    }

    /// Calls a closure that changes nothing; once more with another session when the session breaks.
    nonisolated func reading<Value: Sendable>(_ body: (SFTPSession) async throws -> Value) async throws -> Value {
        try await SFTPStatus.translating {
            let session = try await session()
            do {
                return try await body(session)
            } catch  where !session.isOpen && !Task.isCancelled {
                return try await body(try await self.session())
            }
        }
    }

    nonisolated func changing<Value: Sendable>(_ body: (SFTPSession) async throws -> Value) async throws -> Value {
        try await SFTPStatus.translating { try await body(try await session()) }
    }
}
