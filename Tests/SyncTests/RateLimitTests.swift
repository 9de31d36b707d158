import Synchronization
import Testing

@testable import Sync

@Suite struct RateLimitTests {
    private let clock = ContinuousClock()

    @Test func bytesPassAtTheRate() async throws {
        let limit = RateLimit()
        limit.rate = 100_000
        let start = clock.now
        // The first ones do not wait, and the others for those before them.
        for _ in 0..<4 { try await limit.pass(10_000) {} }
        #expect(clock.now - start >= .milliseconds(300))
    }

    @Test func transfersShareTheRate() async throws {
        let limit = RateLimit()
        limit.rate = 100_000
        let start = clock.now
        await withThrowingTaskGroup { group in
            for _ in 0..<4 { group.addTask { try await limit.pass(10_000) {} } }
        }
        #expect(clock.now - start >= .milliseconds(300))
    }

    @Test(.timeLimit(.minutes(1))) func aLimitThatIsTakenAwayHoldsNobodyUp() async throws {
        let limit = RateLimit()
        limit.rate = 1
        try await limit.pass(1_000_000) {}
        let reports = ReportCount()
        let waiting = Task { try await limit.pass(1) { reports.count.wrappingAdd(1, ordering: .relaxed) } }
        while reports.count.load(ordering: .relaxed) < 1 { try await Task.sleep(for: .milliseconds(10)) }
        limit.rate = nil
        try await waiting.value
        try await limit.pass(1_000_000_000) {}
    }

    @Test(.timeLimit(.minutes(1))) func aWaitIsReportedAndCanBeCancelled() async throws {
        let limit = RateLimit()
        limit.rate = 1
        try await limit.pass(1_000_000) {}
        let reports = ReportCount()
        let waiting = Task { try await limit.pass(1) { reports.count.wrappingAdd(1, ordering: .relaxed) } }
        while reports.count.load(ordering: .relaxed) < 2 { try await Task.sleep(for: .milliseconds(10)) }
        waiting.cancel()
        let result = await waiting.result
        #expect(throws: CancellationError.self) { try result.get() }
    }

    private final class ReportCount: Sendable {
        let count = Atomic<Int>(0)
    }
}
