import FileProvider
import TestSupport
import Testing

@testable import Sync

@Suite(.tags(.timing)) struct WatchdogTests {
    @Test("HTTP-8: a call that waits for a connection does not time out, and one that makes no progress does")
    func waitingIsNoStandstill() async throws {
        let watchdog = Watchdog(patience: .milliseconds(300))
        let waiting = CallProgress()
        let answer = try await watchdog.run(waiting) {
            waiting.wait(true)
            // Five times the patience; however late the tasks run, the call still waits.
            try await Task.sleep(for: .milliseconds(1500))
            return 1
        }
        #expect(answer == 1)
        let error = await #expect(throws: FileProviderError.self) {
            try await watchdog.run { try await Task.sleep(for: .seconds(30)) }
        }
        #expect(error?.code == .timedOut)
    }
}
