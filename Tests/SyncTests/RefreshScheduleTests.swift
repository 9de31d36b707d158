import FileProvider
import FileProviderTesting
import Synchronization
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Rounds that are asked for while another one is under way.
    @Suite struct RefreshScheduleTests {
        /// Counts rounds. One of them waits at a gate, and one fails.
        private final class Rounds: Sendable {
            let gate = Gate()
            private let gated: Int
            private let failing: Int
            private let begun = Mutex<[ContinuousClock.Instant]>([])

            init(gated: Int, failing: Int) {
                (self.gated, self.failing) = (gated, failing)
            }

            var count: Int { begun.withLock { $0.count } }
            /// When the last one began.
            var last: ContinuousClock.Instant? { begun.withLock { $0.last } }

            func run() async throws(FileProviderError) {
                let number = begun.withLock { begun -> Int in
                    begun.append(.now)
                    return begun.count
                }
                if number == gated { try? await gate.pass() }
                if number == failing { throw FileProviderError(.malformedResponse, "refused") }
            }
        }

        private func start(_ rounds: Rounds, _ fixture: EngineFixture) -> RefreshSchedule {
            let schedule = RefreshSchedule(
                replica: fixture.replica, connection: fixture.engine.connection, polling: .never)
            schedule.run(
                compare: { _ in }, compareNoted: { .zero },
                refresh: { () async throws(FileProviderError) -> Void in try await rounds.run() })
            schedule.refresh()
            return schedule
        }

        @Test("ERROR-6: a round that is asked for during one that fails does not come before its repetition")
        func askedDuringAFailure() async throws {
            try await EngineFixture.run { fixture async throws in
                let rounds = Rounds(gated: 1, failing: 1)
                let schedule = start(rounds, fixture)
                defer { schedule.stop() }
                #expect(await eventually { rounds.gate.waiting == 1 })
                schedule.refreshInTime()
                try await Task.sleep(for: .milliseconds(200))
                let opened = ContinuousClock.now
                rounds.gate.open()
                #expect(await eventually(within: .seconds(20)) { rounds.count == 2 })
                // The first pause takes two seconds.
                let pause = try #require(rounds.last) - opened
                #expect(pause > .seconds(1))
                // The repetition was the round that was asked for.
                try await Task.sleep(for: .milliseconds(500))
                #expect(rounds.count == 2)
            }
        }

        @Test(
            "CHANGE-1: a round that is asked for during one that succeeds follows it, also where that one repeats another",
            arguments: [false, true])
        func askedDuringASuccess(isRepetition: Bool) async throws {
            try await EngineFixture.run { fixture async throws in
                let rounds = Rounds(gated: isRepetition ? 2 : 1, failing: isRepetition ? 1 : 0)
                let schedule = start(rounds, fixture)
                defer { schedule.stop() }
                #expect(await eventually(within: .seconds(20)) { rounds.gate.waiting == 1 })
                let count = rounds.count
                schedule.refreshInTime()
                try await Task.sleep(for: .milliseconds(50))
                rounds.gate.open()
                #expect(await eventually(within: .seconds(20)) { rounds.count == count + 1 })
            }
        }
    }
}
