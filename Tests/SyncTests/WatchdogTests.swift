import FileProvider
import TestSupport
import Testing

@testable import Sync

@Suite(.tags(.timing)) struct WatchdogTests {
    @Test("HTTP-8: a call that waits for a place is not given up for making no progress, and one that stands still is")
    func waitingIsNoStandstill() async throws {
        let watchdog = Watchdog(patience: .milliseconds(300))
        let waiting = CallProgress()
        let answer = try await watchdog.run(waiting) {
            waiting.wait(true)
            try await Task.sleep(for: .milliseconds(1500))
            waiting.wait(false)
            return 1
        }
        #expect(answer == 1)
        let error = await #expect(throws: FileProviderError.self) {
            try await watchdog.run { try await Task.sleep(for: .seconds(30)) }
        }
        #expect(error?.code == .timedOut)
    }
}
