import FileProvider
import Synchronization
import TestSupport
import Testing

@Suite struct SessionHostTests {
    private final class Session: HostedSession {
        private let isEnded = Mutex(false)

        var isOpen: Bool { isEnded.withLock { !$0 } }

        func end() { isEnded.withLock { $0 = true } }

        func close() async { end() }
    }

    private final class Server: Sendable {
        struct State {
            var attempts = 0
            /// What attempts fail with.
            var failure: FileProviderError?
            /// Attempts wait, also when they are cancelled.
            var isHeld = false
            var isCancelled = false
            var sessions: [Session] = []
            var ended = 0
        }

        let state = Mutex(State())

        var attempts: Int { state.withLock { $0.attempts } }

        func host(_ pauses: SessionPauses) -> SessionHost<Session> {
            SessionHost(pauses) { _ in
                self.state.withLock { $0.ended += 1 }
            } open: {
                try await self.open()
            }
        }

        private func open() async throws -> Session {
            state.withLock { $0.attempts += 1 }
            _ = await eventually {
                state.withLock { state in
                    state.isCancelled = state.isCancelled || Task.isCancelled
                    return !state.isHeld
                }
            }
            return try state.withLock { state in
                if let failure = state.failure { throw failure }
                let session = Session()
                state.sessions.append(session)
                return session
            }
        }
    }

    private let server = Server()

    @Test("callers share the opening of a session, and get another one after its end")
    func sharedOpening() async throws {
        let host = server.host(SessionPauses([.zero], goodLife: .zero))
        async let one = host.session()
        async let other = host.session()
        let (first, second) = try await (one, other)
        #expect(first === second)
        #expect(server.attempts == 1)
        first.end()
        let third = try await host.session()
        #expect(third !== first && third.isOpen)
        #expect(server.attempts == 2)
        #expect(server.state.withLock { $0.ended } == 1)
    }

    @Test("a caller that is cancelled does not wait, and the others get their session")
    func cancelledCaller() async throws {
        let host = server.host(SessionPauses([.zero], goodLife: .zero))
        server.state.withLock { $0.isHeld = true }
        let cancelled = Task { try await host.session() }
        #expect(await eventually { server.attempts == 1 })
        let other = Task { try await host.session() }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        server.state.withLock { $0.isHeld = false }
        #expect(try await other.value.isOpen)
        #expect(server.attempts == 1)
    }

    @Test("failed attempts in a row are followed by growing pauses, which a retry ends")
    func failedAttempts() async throws {
        let pauses = SessionPauses(
            [.zero, .milliseconds(60), .seconds(60)], goodLife: .seconds(60), longestWait: .seconds(2))
        let host = server.host(pauses)
        server.state.withLock { $0.failure = FileProviderError(.notAuthenticated) }
        let start = ContinuousClock.now
        for _ in 0..<3 {
            let code = await failureCode { _ = try await host.session() }
            #expect(code == .notAuthenticated)
        }
        #expect(server.attempts == 3)
        #expect(ContinuousClock.now - start >= .milliseconds(60))
        let refused = try #require(await pause(of: host))
        #expect((refused.failure as? FileProviderError)?.code == .notAuthenticated)
        #expect(server.attempts == 3)
        server.state.withLock { $0.failure = nil }
        await host.retryNow()
        let session = try await host.session()
        #expect(server.attempts == 4)
        // A session that ends soon is like one that could not be opened.
        session.end()
        let ended = try #require(await pause(of: host))
        #expect(ended.failure == nil)
        #expect(ended.wait > .seconds(50))
    }

    @Test("sessions with a good life are opened again without a pause") func goodLives() async throws {
        let host = server.host(SessionPauses([.zero, .seconds(60)], goodLife: .zero, longestWait: .seconds(2)))
        for _ in 0..<4 { try await host.session().end() }
        #expect(server.attempts == 4)
    }

    @Test("no session stays open that is opened while its host is closed") func closing() async throws {
        let host = server.host(SessionPauses([.zero], goodLife: .zero))
        server.state.withLock { $0.isHeld = true }
        let waiting = Task { try await host.session() }
        #expect(await eventually { server.attempts == 1 })
        let closing = Task { await host.close() }
        #expect(await eventually { server.state.withLock { $0.isCancelled } })
        server.state.withLock { $0.isHeld = false }
        await closing.value
        #expect(server.state.withLock { $0.sessions.map(\.isOpen) } == [false])
        #expect(await failureCode { _ = try await waiting.value } == .userCancelled)
        #expect(await failureCode { _ = try await host.session() } == .userCancelled)
    }

    /// Why a session is not opened yet.
    private func pause(of host: SessionHost<Session>) async -> SessionPause? {
        do {
            _ = try await host.session()
            return nil
        } catch {
            return error as? SessionPause
        }
    }
}
