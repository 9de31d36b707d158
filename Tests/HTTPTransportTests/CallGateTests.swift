import FileProvider
import Synchronization
import TestSupport
import Testing

@testable import HTTPTransport

@Suite(.tags(.timing)) struct CallGateTests {
    /// Runs something in the gate until it is told to end.
    private final class Held: Sendable {
        private let order: Order
        private let name: String
        private let isOver = Mutex(false)
        let waits = Mutex(0)

        init(_ name: String, _ order: Order) { (self.name, self.order) = (name, order) }

        func run(in gate: CallGate, isUrgent: Bool, isAnswered: Bool = false) -> Task<Void, any Error> {
            run(in: gate, CallUrgency(isUrgent), isAnswered: isAnswered)
        }

        func run(in gate: CallGate, _ urgency: CallUrgency, isAnswered: Bool = false) -> Task<Void, any Error> {
            let context = CallContext(
                urgency: urgency, wait: { isWaiting in self.waits.withLock { $0 += isWaiting ? 1 : -1 } })
            return Task {
                try await CallContext.$current.withValue(context) {
                    try await gate.run { pass in
                        if isAnswered { pass.noteAnswer(nil) }
                        self.order.names.withLock { $0.append(self.name) }
                        _ = await eventually { self.isOver.withLock { $0 } }
                    }
                }
            }
        }

        func end() { isOver.withLock { $0 = true } }
    }

    private final class Order: Sendable {
        let names = Mutex<[String]>([])
        var all: [String] { names.withLock { $0 } }
    }

    @Test("HTTP-8: requests that a process waits for go before background requests, and the call records the waiting")
    func urgentFirst() async throws {
        let (gate, order) = (CallGate(2), Order())
        let first = [Held("one", order), Held("two", order)]
        let running = first.map { $0.run(in: gate, isUrgent: true) }
        #expect(await eventually { order.all.count == 2 })
        let (later, urgent) = (Held("background", order), Held("urgent", order))
        let waiting = later.run(in: gate, isUrgent: false)
        #expect(await eventually { later.waits.withLock { $0 } == 1 })
        let next = urgent.run(in: gate, isUrgent: true)
        #expect(await eventually { urgent.waits.withLock { $0 } == 1 })
        first[0].end()
        #expect(await eventually { order.all.count == 3 })
        #expect(order.all.last == "urgent")
        #expect(urgent.waits.withLock { $0 } == 0)
        for held in first + [urgent, later] { held.end() }
        for task in running + [waiting, next] { try await task.value }
        #expect(order.all.last == "background")
    }

    @Test("HTTP-8: a background request for which a process comes to wait gets a place that is kept for such requests")
    func becomingUrgent() async throws {
        let (gate, order) = (CallGate(4), Order())
        let first = ["one", "two", "three"].map { Held($0, order) }
        let running = first.map { $0.run(in: gate, isUrgent: false) }
        #expect(await eventually { order.all.count == 3 })
        let (ahead, urgency) = (Held("ahead", order), CallUrgency(false))
        let waiting = ahead.run(in: gate, urgency)
        #expect(await eventually { ahead.waits.withLock { $0 } == 1 })
        urgency.raise()
        #expect(await eventually { order.all.count == 4 })
        for held in first + [ahead] { held.end() }
        for task in running + [waiting] { try await task.value }
    }

    /// A gate whose limit was lowered to one, and a request that receives a body.
    private func receivingBody(
        _ order: Order
    ) async throws -> (gate: CallGate, body: Held, receiving: Task<Void, any Error>) {
        let gate = CallGate(2)
        try await gate.run { $0.noteOverload() }
        #expect(gate.limit == 1)
        let body = Held("body", order)
        let receiving = body.run(in: gate, isUrgent: true, isAnswered: true)
        #expect(await eventually { order.all == ["body"] })
        return (gate, body, receiving)
    }

    @Test("HTTP-8: a request that a process waits for does not wait until the bodies of others have ended")
    func longBodies() async throws {
        let order = Order()
        let (gate, body, receiving) = try await receivingBody(order)
        let (next, third) = (Held("next", order), Held("third", order))
        let asking = next.run(in: gate, isUrgent: true)
        #expect(await eventually { order.all == ["body", "next"] })
        let waiting = third.run(in: gate, isUrgent: true)
        #expect(await eventually { third.waits.withLock { $0 } == 1 })
        next.end()
        #expect(await eventually { order.all.last == "third" })
        // One more than the limit, and not two.
        let fourth = Held("fourth", order)
        let queued = fourth.run(in: gate, isUrgent: true)
        #expect(await eventually { fourth.waits.withLock { $0 } == 1 })
        for held in [body, third, fourth] { held.end() }
        for task in [receiving, asking, waiting, queued] { try await task.value }
    }

    @Test("HTTP-8: a server that refuses one request more than the limit is not asked for it again") func refusedExtra()
        async throws
    {
        let order = Order()
        let (gate, body, receiving) = try await receivingBody(order)
        let isExtra = try await gate.run { pass in
            pass.noteOverload()
            return pass.isExtra
        }
        #expect(isExtra)
        #expect(gate.limit == 1)
        let next = Held("next", order)
        let waiting = next.run(in: gate, isUrgent: true)
        #expect(await eventually { next.waits.withLock { $0 } == 1 })
        body.end()
        #expect(await eventually { order.all == ["body", "next"] })
        next.end()
        for task in [receiving, waiting] { try await task.value }
    }

    @Test("what a request asks for on its way needs no place of its own") func nested() async throws {
        let gate = CallGate(1)
        let answer = try await gate.run { _ in
            try await CallGate.$isInside.withValue(true) { try await gate.run { _ in 7 } }
        }
        #expect(answer == 7)
    }

    @Test("who is cancelled while waiting leaves the line, and takes no place") func cancellation() async throws {
        let (gate, order) = (CallGate(1), Order())
        let (first, second) = (Held("one", order), Held("two", order))
        let running = first.run(in: gate, isUrgent: true)
        #expect(await eventually { order.all.count == 1 })
        let waiting = second.run(in: gate, isUrgent: true)
        #expect(await eventually { second.waits.withLock { $0 } == 1 })
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        first.end()
        try await running.value
        #expect(try await gate.run { _ in 1 } == 1)
    }
}
