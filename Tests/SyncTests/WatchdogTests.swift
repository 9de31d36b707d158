import FileProvider
import FileProviderTesting
import Logging
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
}
