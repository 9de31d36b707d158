import FileProvider
import Synchronization
import TestSupport
import Testing

@Suite struct AdmissionLineTests {
    private struct Places: AdmissionLimit {
        var free: Int

        func admits(isUrgent: Bool) -> Bool { free > 0 }

        mutating func takePlace(isUrgent: Bool) { free -= 1 }
    }

    /// A task in the line, which notes its name when it is admitted.
    private final class Visitor: Sendable {
        let urgency: CallUrgency
        let waits = Mutex(0)

        init(isUrgent: Bool = false) { urgency = CallUrgency(isUrgent) }

        /// Returns when the task waits.
        func enter(
            _ line: AdmissionLine<Places>, as name: String, _ admitted: Admitted
        ) async throws -> Task<Void, any Error> {
            let task = Task {
                try await line.enter(self.urgency) { isWaiting in
                    self.waits.withLock { $0 += isWaiting ? 1 : -1 }
                }
                admitted.names.withLock { $0.append(name) }
            }
            #expect(await eventually { self.waits.withLock { $0 } == 1 })
            return task
        }
    }

    private final class Admitted: Sendable {
        let names = Mutex<[String]>([])
    }

    private let line = AdmissionLine(Places(free: 0))
    private let admitted = Admitted()

    /// Frees one place after the other for tasks that take it.
    private func admit(_ tasks: [Task<Void, any Error>]) async throws -> [String] {
        for task in tasks {
            line.change { $0.free += 1 }
            try await task.value
        }
        return admitted.names.withLock { $0 }
    }

    @Test("urgent tasks go first, and the others in the order in which they came") func order() async throws {
        let first = try await Visitor().enter(line, as: "first", admitted)
        let second = try await Visitor().enter(line, as: "second", admitted)
        let urgent = try await Visitor(isUrgent: true).enter(line, as: "urgent", admitted)
        #expect(try await admit([urgent, first, second]) == ["urgent", "first", "second"])
        #expect(line.limit.free == 0)
    }

    @Test("a task that becomes urgent while it waits goes before those that are not")
    func becomingUrgent() async throws {
        let visitor = Visitor()
        let first = try await Visitor().enter(line, as: "first", admitted)
        let second = try await visitor.enter(line, as: "second", admitted)
        visitor.urgency.raise()
        #expect(try await admit([second, first]) == ["second", "first"])
        #expect(visitor.waits.withLock { $0 } == 0)
    }

    @Test("a task that is cancelled while it waits takes no place") func cancellation() async throws {
        let visitor = Visitor()
        let task = try await visitor.enter(line, as: "cancelled", admitted)
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(visitor.waits.withLock { $0 } == 0)
        line.change { $0.free = 1 }
        #expect(line.limit.free == 1)
        try await line.enter(CallUrgency(false))
        #expect(line.limit.free == 0)
    }
}
