import TestSupport
import Testing

@testable import HTTPTransport

/// The limit on servers that exist only here, in a time of their own.
@Suite(.tags(.timing)) struct ConcurrencyLimitTests {
    /// A server that serves so many requests at once, each in so many seconds; the others wait for it.
    private struct Server {
        /// Nil for no limit.
        var places: Int?
        var service = 0.05
        /// On the way there and back.
        var distance = 0.0
        /// How much the time varies, as a part of it.
        var jitter = 0.0
    }

    /// A client that has always more to ask.
    private struct Client {
        var limit: ConcurrencyLimit
        var clock = 0.0
        var served = 0
        var limits: [Int] = []
        /// When what is under way was sent, and is answered.
        private var running: [(sent: Double, answered: Double)] = []
        /// When the server's places are free.
        private var places: [Double] = []
        private let origin = ContinuousClock.now
        private var random: SeededNumbers

        init(most: Int, seed: UInt64 = 1) {
            limit = ConcurrencyLimit(most: most)
            random = SeededNumbers(seed: seed)
        }

        private func instant(_ seconds: Double) -> ContinuousClock.Instant { origin + .seconds(seconds) }

        mutating func ask(_ server: Server, for seconds: Double, atOnce demand: Int = .max, refusing most: Int = .max) {
            let end = clock + seconds
            let count = server.places ?? 1
            if places.count != count { places = Array(repeating: clock, count: count) }
            while clock < end {
                while running.count < min(limit.limit, demand) {
                    let place = places.indices.min { places[$0] < places[$1] } ?? 0
                    let arrival = clock + server.distance / 2
                    let service =
                        server.service * (1 + server.jitter * Double.random(in: -1...1, using: &random))
                    let begun = server.places == nil ? arrival : max(places[place], arrival)
                    places[place] = begun + service
                    running.append((clock, begun + service + server.distance / 2))
                }
                guard let next = running.indices.min(by: { running[$0].answered < running[$1].answered }) else {
                    return
                }
                let request = running.remove(at: next)
                clock = max(clock, request.answered)
                served += 1
                if running.count >= most {
                    limit.noteOverload(startedAt: instant(request.sent), at: instant(clock))
                } else {
                    limit.note(
                        .init(
                            kind: "PUT", startedAt: instant(request.sent), answeredAt: instant(clock),
                            running: running.count + 1))
                }
                limits.append(limit.limit)
            }
        }
    }

    @Test("HTTP-8: a server of twenty places is soon left some of them, and loses next to nothing of its speed")
    func fewPlaces() {
        var client = Client(most: 64)
        client.ask(Server(places: 20), for: 5)
        let before = client.served
        client.limits = []
        client.ask(Server(places: 20), for: 30)
        let above = client.limits.count { $0 >= 20 }
        #expect(Double(above) < 0.1 * Double(client.limits.count), "\(above) of \(client.limits.count)")
        // Of 20 / 0.05 = 400 a second.
        #expect(client.served - before > 30 * 400 * 7 / 10, "\(client.served - before)")
    }

    @Test("HTTP-8: a server far away that serves all at once is soon asked as much as is allowed")
    func manyPlaces() {
        var client = Client(most: 64)
        client.ask(Server(places: nil, service: 0.005, distance: 0.05), for: 1)
        #expect(client.limit.limit == 64)
    }

    @Test("HTTP-8: answers that take now more, now less are not taken for a busy server")
    func jitter() {
        // The same ten runs each time: of others, one in hundreds may have so many slow answers in a row that it is.
        let lows = (UInt64(1)...10).map { seed in
            var client = Client(most: 64, seed: seed)
            client.ask(Server(places: nil, service: 0.2, jitter: 0.6), for: 30)
            return client.limits.suffix(2000).count { $0 < 24 }
        }
        #expect(lows.allSatisfy { $0 < 200 }, "\(lows)")
    }

    @Test("HTTP-8: errors bring the limit down at once, and it comes back when they have ended")
    func refusals() {
        var client = Client(most: 64)
        client.ask(Server(service: 0.2), for: 8)
        #expect(client.limit.limit == 64)
        client.ask(Server(service: 0.2), for: 10, refusing: 12)
        #expect(client.limit.limit <= 16)
        client.ask(Server(service: 0.2), for: 100)
        #expect(client.limit.limit == 64)
    }

    @Test("HTTP-8: a server that serves fewer than before is asked less, and more again later")
    func changes() {
        var client = Client(most: 64)
        client.ask(Server(service: 0.2), for: 8)
        #expect(client.limit.limit == 64)
        client.ask(Server(places: 8, service: 0.2), for: 30)
        #expect(client.limit.limit < 16)
        client.ask(Server(service: 0.2), for: 120)
        #expect(client.limit.limit == 64)
    }

    @Test("HTTP-8: who asks little learns nothing of what the server could do, and does not go up")
    func littleDemand() {
        var client = Client(most: 64)
        client.ask(Server(), for: 20, atOnce: 2)
        #expect(client.limit.limit <= 16)
    }
}
