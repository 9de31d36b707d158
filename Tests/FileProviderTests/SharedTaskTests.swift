import FileProvider
import Synchronization
import TestSupport
import Testing

@Suite struct SharedTaskTests {
    /// Work that goes on until it is told to end.
    private final class Work: Sendable {
        let runs = Mutex(0)
        let isHeld = Mutex(true)

        func run() async throws -> Int {
            let run = runs.withLock { runs in
                runs += 1
                return runs
            }
            while isHeld.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(1)) }
            return run
        }

        var hasBegun: Bool { runs.withLock { $0 == 1 } }

        func end() { isHeld.withLock { $0 = false } }
    }

    private let work = Work()
    private let shared = SharedTask<Int>()

    private func ask() -> Task<Int, any Error> { Task { try await shared.value { try await work.run() } } }

    /// A caller that comes while the work is under way, and is known to wait for it.
    private func join() async -> Task<Int, any Error> {
        let waits = Mutex(false)
        let context = CallContext(urgency: CallUrgency(true), wait: { isWaiting in waits.withLock { $0 = isWaiting } })
        let task = CallContext.$current.withValue(context) { ask() }
        #expect(await eventually { waits.withLock { $0 } })
        return task
    }

    @Test("callers that come during the work share its result, and a later one begins again")
    func sharing() async throws {
        let first = ask()
        #expect(await eventually { work.hasBegun })
        let second = await join()
        work.end()
        #expect(try await first.value == 1)
        #expect(try await second.value == 1)
        #expect(shared.current == nil)
        #expect(try await ask().value == 2)
    }

    @Test("the work goes on when a caller is cancelled, who does not wait for it") func cancelledCaller() async throws {
        let first = ask()
        #expect(await eventually { work.hasBegun })
        let second = await join()
        first.cancel()
        await #expect(throws: CancellationError.self) { try await first.value }
        work.end()
        #expect(try await second.value == 1)
    }

    @Test("an error ends the work for all callers") func failure() async throws {
        let task = ask()
        #expect(await eventually { work.hasBegun })
        shared.current?.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        work.end()
        #expect(try await ask().value == 2)
    }
}
