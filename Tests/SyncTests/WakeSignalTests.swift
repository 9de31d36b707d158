import Synchronization
import TestSupport
import Testing

@testable import Sync

@Suite struct WakeSignalTests {
    private final class Wakes: Sendable {
        private let number = Atomic(0)

        var count: Int { number.load(ordering: .relaxed) }
        func add() { number.add(1, ordering: .relaxed) }
    }

    @Test("calls during the body run it once more") func duringTheBody() async throws {
        let (signal, wakes) = (WakeSignal(), Wakes())
        signal.wake()
        signal.wake()
        signal.run {
            wakes.add()
            if wakes.count < 3 {
                signal.wake()
                signal.wake()
            }
            return .zero
        }
        #expect(await eventually { wakes.count == 3 })
        try await Task.sleep(for: .milliseconds(100))
        #expect(wakes.count == 3)
        signal.stop()
        await signal.ended()
    }

    @Test("another time replaces the earlier one, and leaves no timer behind") func times() async throws {
        let (signal, wakes) = (WakeSignal(), Wakes())
        signal.run {
            wakes.add()
            return .zero
        }
        for _ in 0..<1000 {
            signal.wake(after: .seconds(3600))
            signal.wake(after: .seconds(60))
        }
        #expect(signal.timerCount <= 2)
        signal.wake(after: .milliseconds(1))
        #expect(await eventually { wakes.count == 1 })
        for pause: Duration? in [nil, .seconds(3600)] {
            signal.wake(after: .milliseconds(200))
            signal.wake(after: pause)
            try await Task.sleep(for: .milliseconds(300))
            #expect(wakes.count == 1)
        }
        // A timer that ends before the time goes on.
        signal.wake(after: .milliseconds(50))
        signal.wake(after: .milliseconds(100))
        #expect(await eventually { wakes.count == 2 })
        signal.stop()
        await signal.ended()
        #expect(await eventually { signal.timerCount == 0 })
    }
}
