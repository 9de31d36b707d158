import FileProvider
import Logging

extension RcloneSession: HostedSession {
    var isOpen: Bool { failure == nil }
}

/// Keeps rclone running: starts it when a call needs it, and again with a backoff after it has ended.
struct RcloneHost: Sendable {
    let remote: String
    private let host: SessionHost<RcloneSession>
    private static let pauses = SessionPauses(
        [0, 0.4, 0.8, 1.6, 3.2, 6.4, 10].map { .seconds($0) }, goodLife: .seconds(60))

    init(_ launch: RcloneSession.Launch) {
        remote = launch.remote
        host = SessionHost(Self.pauses) { session in
            launch.logger.warning("rclone has ended, and is started again: \(session.failure ?? "")")
            Task { await session.close() }
        } open: {
            try await RcloneSession.open(launch)
        }
    }

    /// The running session, started if necessary.
    func running() async throws -> RcloneSession { try await host.session() }

    func close() async { await host.close() }

    /// Calls a closure that changes nothing; once more with another process when rclone ends.
    func reading<Value: Sendable>(_ body: (RcloneSession) async throws -> Value) async throws -> Value {
        try await translating {
            let session = try await running()
            do {
                return try await body(session)
            } catch let error as FileProviderError where error.code == .serverUnreachable && !Task.isCancelled {
                // The end of the process may be noticed after the end of its connection.
                guard await session.ends(within: .seconds(5)) else { throw error }
                return try await body(try await running())
            }
        }
    }

    /// Calls a closure that may change the remote, once.
    func changing<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await translating(body)
    }

    private func translating<Value: Sendable>(
        _ body: () async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let failure as RcloneFailure {
            throw failure.error(remote)
        } catch is CancellationError {
            throw FileProviderError(.userCancelled)
        }
    }
}
