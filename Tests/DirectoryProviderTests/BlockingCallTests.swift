import Dispatch
import FileProvider
import FileProviderTesting
import Synchronization
import TestSupport
import Testing

@testable import DirectoryProvider

/// System calls of a source that hangs.
@Suite struct BlockingCallTests {
    private final class Counter: Sendable {
        private let value = Mutex(0)

        var count: Int { value.withLock { $0 } }

        func add() { value.withLock { $0 += 1 } }
    }

    /// Begins as many calls as may hang, and cancels each.
    private func fill(_ calls: BlockingCalls, _ started: Counter, _ gate: DispatchSemaphore) async {
        for number in 1...BlockingCalls.mostHanging {
            let call = Task {
                try await calls.run { _ in
                    started.add()
                    gate.wait()
                }
            }
            #expect(await eventually { started.count == number })
            call.cancel()
            await #expect(throws: FileProviderError.self) { try await call.value }
        }
    }

    @Test("ERROR-3: a source that hangs takes a bounded number of threads, and is asked again when its calls return")
    func boundedThreads() async throws {
        let calls = BlockingCalls(grace: .zero)
        let (started, gate) = (Counter(), DispatchSemaphore(value: 0))
        defer { for _ in 0..<BlockingCalls.mostHanging { gate.signal() } }
        await fill(calls, started, gate)
        for _ in 1...24 {
            let code = await failureCode { try await calls.run { _ in started.add() } }
            #expect(code == .serverUnreachable)
        }
        #expect(started.count == BlockingCalls.mostHanging)
        gate.signal()
        #expect(await eventually { (try? await calls.run { _ in true }) == true })
    }

    @Test("calls that were cancelled just now do not count as hanging")
    func cancelledJustNow() async throws {
        let calls = BlockingCalls(grace: .seconds(600))
        let (started, gate) = (Counter(), DispatchSemaphore(value: 0))
        defer { for _ in 0..<BlockingCalls.mostHanging { gate.signal() } }
        await fill(calls, started, gate)
        #expect(try await calls.run { _ in true })
    }
}
