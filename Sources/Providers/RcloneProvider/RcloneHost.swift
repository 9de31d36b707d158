import FileProvider
import Logging

/// Keeps rclone running: starts it when a call needs it, and again with a backoff after it has ended.
actor RcloneHost {
    private let launch: RcloneSession.Launch
    private var session: RcloneSession?
    private var starting: Task<RcloneSession, any Error>?
    private var failures = 0
    private var isClosed = false

    init(_ launch: RcloneSession.Launch) {
        self.launch = launch
    }

    nonisolated var remote: String { launch.remote }

    /// The running session, started if necessary. After a failure the next start waits, longer after each, at most ten seconds.
    func running() async throws -> RcloneSession {
        guard !isClosed else { throw FileProviderError(.userCancelled) }
        if let session {
            guard let failure = session.failure else { return session }
            launch.logger.warning("rclone has ended, and is started again: \(failure)")
            self.session = nil
            if session.startedAt.duration(to: .now) > .seconds(60) { failures = 0 }
            failures += 1
            await session.close()
        }
        let task = starting ?? start()
        // A caller that is cancelled does not wait for the start.
        return try await task.valueUnlessCancelled
    }

    private func start() -> Task<RcloneSession, any Error> {
        let task = Task {
            defer { starting = nil }
            if failures > 1 { try await Task.sleep(for: .milliseconds(min(10_000, 100 << min(failures, 7)))) }
            do {
                let session = try await RcloneSession.open(launch)
                if isClosed {
                    await session.close()
                    throw FileProviderError(.userCancelled)
                }
                self.session = session
                return session
            } catch {
                failures += 1
                throw error
            }
        }
        starting = task
        return task
    }

    func close() async {
        isClosed = true
        starting?.cancel()
        // No program is left behind that is being started.
        _ = try? await starting?.value
        await session?.close()
    }

    /// Calls a closure that changes nothing; once more with another process when rclone ends.
    nonisolated func reading<Value: Sendable>(_ body: (RcloneSession) async throws -> Value) async throws -> Value {
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
    nonisolated func changing<Value: Sendable>(_ body: () async throws -> Value) async throws -> Value {
        try await translating(body)
    }

    private nonisolated func translating<Value: Sendable>(
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
