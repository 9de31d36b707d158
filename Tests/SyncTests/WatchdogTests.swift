import FileProvider
import FileProviderTesting
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Sync

@Suite(.tags(.timing)) struct WatchdogTests {
    @Test("HTTP-8: a call that waits for a connection does not time out, and one that makes no progress does")
    func waitingIsNoStandstill() async throws {
        let watchdog = Watchdog(patience: .milliseconds(100))
        let waiting = CallProgress()
        // Before the call begins, which may be later than the patience on a busy machine.
        waiting.wait(true)
        let answer = try await watchdog.run(waiting) {
            // Five times the patience; however late the tasks run, the call still waits.
            try await Task.sleep(for: .milliseconds(500))
            return 1
        }
        #expect(answer == 1)
        let error = await #expect(throws: FileProviderError.self) {
            try await watchdog.run { try await Task.sleep(for: .seconds(30)) }
        }
        #expect(error?.code == .timedOut)
    }

    @Test("PATH-20: a call of many requests is not given up while each of them is answered, however slowly")
    func slowAnswers() async throws {
        let calls = ProviderCalls(
            provider: InMemoryProvider(), connection: Connection(logger: Logger(label: "test")),
            patience: .seconds(1), metrics: CallMetrics(domain: "test"), onLatch: {}, onRecovery: {})
        let made = try await calls.make(.item, for: FileProviderRequest(reason: .synchronization)) { _ in
            for _ in 0..<8 {
                try await Task.sleep(for: .milliseconds(250))
                CallContext.current?.noteAnswer()
            }
            return 8
        }
        #expect(made == 8)
    }

    /// Calls of a provider whose root is asked for beside them, soon.
    private func watchedCalls(
        _ provider: InMemoryProvider, _ connection: Connection, patience: Duration = .seconds(60),
        onLatch: @escaping @Sendable () -> Void = {}
    ) -> ProviderCalls {
        ProviderCalls(
            provider: provider, connection: connection, patience: patience,
            pausesBeforeQuestions: Backoff(first: .milliseconds(500), longest: .seconds(1)),
            metrics: CallMetrics(domain: "test"), onLatch: onLatch, onRecovery: {})
    }

    @Test("RCLONE-14: a call that stands still fails when the remote does not answer for its root either")
    func standstill() async throws {
        let provider = InMemoryProvider(options: .with(\.isAskedBesideCalls, true))
        provider.faults.fail(.item, with: FileProviderError(.serverUnreachable, "the line is cut"), times: nil)
        let connection = Connection(logger: Logger(label: "test"))
        let calls = watchedCalls(provider, connection)
        let error = await #expect(throws: FileProviderError.self) {
            try await calls.make(.fetchContents, for: FileProviderRequest(reason: .reading)) { _ in
                try await Task.sleep(for: .seconds(600))
            }
        }
        #expect(error?.code == .serverUnreachable && error?.message == "the line is cut")
        #expect(connection.state == .offline)
    }

    @Test("RCLONE-14: what sends or copies much goes on while the domain is offline", .timeLimit(.minutes(1)))
    func standstillOfAnUpload() async throws {
        let provider = InMemoryProvider(options: .with(\.isAskedBesideCalls, true))
        let gate = provider.faults.hold(.item)
        let connection = Connection(logger: Logger(label: "test"))
        let latches = Mutex(0)
        let calls = watchedCalls(provider, connection, patience: .seconds(1)) { latches.withLock { $0 += 1 } }
        let made = try await calls.make(.modifyItem, for: FileProviderRequest(reason: .synchronization)) { _ in
            try await CallContext.waiting {
                while connection.state == .online { try await Task.sleep(for: .milliseconds(20)) }
                return connection.failure?.message ?? ""
            }
        }
        #expect(made.hasPrefix("the remote has stopped answering"))
        let count = latches.withLock { $0 }
        #expect(count == 1)
        // Its end is an answer.
        #expect(connection.state == .online)
        gate.open()
    }

    @Test("RCLONE-14: a call may stand still while the remote answers for its root", .timeLimit(.minutes(1)))
    func standstillBesideAnswers() async throws {
        let provider = InMemoryProvider(options: .with(\.isAskedBesideCalls, true))
        let connection = Connection(logger: Logger(label: "test"))
        let calls = watchedCalls(provider, connection)
        let made = try await calls.make(.fetchContents, for: FileProviderRequest(reason: .reading)) { _ in
            while provider.log.count(of: .item) < 2 { try await Task.sleep(for: .milliseconds(20)) }
            return connection.state
        }
        #expect(made == .online)
    }
}
