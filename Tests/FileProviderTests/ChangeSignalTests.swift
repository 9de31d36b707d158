import FileProvider
import Synchronization
import Testing

@Suite struct ChangeSignalTests {
    private let signal = ChangeSignal()

    @Test func aChangeBeforeTheWaitIsNotMissed() async throws {
        let seen = signal.count
        signal.notify()
        #expect(try await signal.wait(after: seen))
    }

    @Test func aChangeResumesAllWaiters() async throws {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            let seen = signal.count
            for _ in 0..<10 { group.addTask { try await signal.wait(after: seen) } }
            await Task.yield()
            signal.notify()
            for try await hasChanged in group { #expect(hasChanged) }
        }
    }

    @Test func theDeadlineEndsAWait() async throws {
        let start = ContinuousClock.now
        #expect(try await !signal.wait(after: signal.count, until: start + .milliseconds(30)))
        #expect(ContinuousClock.now - start >= .milliseconds(30))
        #expect(try await !signal.wait(until: start, interval: .zero) { false })
    }

    @Test func cancellationEndsAWait() async throws {
        let task = Task { try await signal.wait(after: signal.count) }
        await Task.yield()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func aConditionIsEvaluatedOnlyAfterChanges() async throws {
        let value = Atomic(0)
        let evaluations = Atomic(0)
        let task = Task {
            try await signal.wait(interval: .zero) {
                evaluations.add(1, ordering: .relaxed)
                return value.load(ordering: .relaxed) == 1000
            }
        }
        try await Task.sleep(for: .milliseconds(50))
        #expect(evaluations.load(ordering: .relaxed) <= 1)
        for _ in 0..<1000 {
            value.add(1, ordering: .relaxed)
            signal.notify()
        }
        #expect(try await task.value)
    }

    @Test func changesWithinTheIntervalCauseOneEvaluation() async throws {
        let evaluations = Atomic(0)
        let deadline = ContinuousClock.now + .milliseconds(200)
        let task = Task {
            try await signal.wait(until: deadline, interval: .milliseconds(50)) {
                evaluations.add(1, ordering: .relaxed)
                return false
            }
        }
        while ContinuousClock.now < deadline {
            signal.notify()
            try await Task.sleep(for: .milliseconds(1))
        }
        #expect(try await !task.value)
        #expect(evaluations.load(ordering: .relaxed) <= 6)
    }
}
