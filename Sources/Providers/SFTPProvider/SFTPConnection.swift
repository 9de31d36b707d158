import FileProvider

extension SFTPSession: HostedSession {}

/// The present session with a server; a new one when it has ended.
typealias SFTPConnection = SessionHost<SFTPSession>

extension SessionHost<SFTPSession> {
    init(open: @escaping @Sendable () async throws -> SFTPSession) {
        // The end of a session is followed by an attempt at once: servers end idle sessions.
        self.init(
            SessionPauses([0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10].map { .seconds($0) }, goodLife: .zero), open: open)
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
