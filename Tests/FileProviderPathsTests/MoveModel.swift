import FileProviderPaths

/// The items of a simulated server that are moved while responses get lost, and what a client and the system behind it know of
/// them.
///
/// Each move goes to a place of its own: a late request that finds an item which was moved back is another rename.
struct MoveModel {
    private struct Item {
        /// On the server.
        var place = 0
        /// Where the client knows it; lost when the process is killed.
        var known = 0
        /// Where the system knows it.
        var heard = 0
    }

    private struct Request {
        var item: String
        var from: Int
        var move: LedgerState.Move
        /// Nil when the client has given it up.
        var number: LedgerState.Tick?
        /// When it was first seen that the server had not made it.
        var missedAt: ContinuousClock.Instant?
    }

    private var items = ["one": Item(), "two": Item()]
    private var network: [Request] = []
    private var lastPlace = 0
    /// From where each move was sent.
    private var origins: [String: Int] = [:]
    private static let late = PossibleMoves.lateness

    /// Does one random thing.
    ///
    /// - Returns: what it was.
    mutating func step(
        _ ledger: inout LedgerState, at now: LedgerState.Moment, _ random: inout LedgerModel.Generator
    ) -> String {
        let name = Bool.random(using: &random) ? "one" : "two"
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<3:
            // The caller may repeat a move that had no response, from where it was sent before.
            let earlier = ledger.moves.unknown.filter { move in
                move.item == name && origins[move.name] == items[name]?.known && Bool.random(using: &random)
            }
            return send(name, earlier.first, &ledger, at: now)
        case 3..<6: return end(&ledger, at: now, &random)
        case 6: return arriveLate(at: now, &random)
        case 7: return hear(name, &ledger)
        default: return look(for: name, &ledger, at: now)
        }
    }

    private func isMoving(_ name: String) -> Bool { network.contains { $0.item == name && $0.number != nil } }

    private mutating func send(
        _ name: String, _ earlier: LedgerState.Move?, _ ledger: inout LedgerState, at now: LedgerState.Moment
    ) -> String {
        guard !isMoving(name), let item = items[name] else { return "nothing moved" }
        lastPlace += 1
        let move =
            earlier ?? LedgerState.Move(item: name, tag: [], directory: "places", name: String(lastPlace))
        let number = ledger.send(["places/\(item.known)", "places/\(move.name)"], making: move, at: now)
        origins[move.name] = item.known
        network.append(Request(item: name, from: item.known, move: move, number: number))
        return earlier == nil ? "move sent" : "move repeated"
    }

    /// The server makes a move, unless the item is elsewhere.
    private mutating func make(_ request: Request) -> Bool {
        guard let place = Int(request.move.name), items[request.item]?.place == request.from else { return false }
        items[request.item]?.place = place
        return true
    }

    private mutating func end(
        _ ledger: inout LedgerState, at now: LedgerState.Moment, _ random: inout LedgerModel.Generator
    ) -> String {
        guard let index = network.indices.filter({ network[$0].number != nil }).randomElement(using: &random),
            let number = network[index].number
        else { return "no move in flight" }
        let request = network[index]
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            network.remove(at: index)
            _ = make(request)
            _ = ledger.end(number, .unknown(.changed), at: now)
            return "response to move lost"
        case 1:
            network[index].number = nil
            _ = ledger.end(number, .unknown(.changed), at: now)
            return "move lost"
        case 2:
            network.remove(at: index)
            _ = ledger.end(number, .refused, at: now)
            return "move refused"
        default:
            network.remove(at: index)
            guard make(request) else {
                _ = ledger.end(number, .refused, at: now)
                return "move found nothing"
            }
            items[request.item]?.known = Int(request.move.name) ?? 0
            _ = ledger.end(number, .acknowledged(.changed), at: now)
            return "moved"
        }
    }

    private mutating func arriveLate(
        at now: LedgerState.Moment, _ random: inout LedgerModel.Generator
    ) -> String {
        // What was missed for so long never arrives.
        network.removeAll { request in
            request.number == nil && request.missedAt.map { now.instant - $0 > Self.late } ?? false
        }
        guard let index = network.indices.filter({ network[$0].number == nil }).randomElement(using: &random)
        else { return "no late move" }
        return make(network.remove(at: index)) ? "late move" : "late move found nothing"
    }

    private mutating func hear(_ name: String, _ ledger: inout LedgerState) -> String {
        guard !isMoving(name) else { return "not heard" }
        if let known = items[name]?.known { items[name]?.heard = known }
        ledger.moves.noteHeard(name)
        return "item heard"
    }

    /// Looks at both paths of each unknown move, as a provider does before it reports anything there.
    private mutating func look(
        for name: String, _ ledger: inout LedgerState, at now: LedgerState.Moment
    ) -> String {
        var found = "nothing unknown"
        for move in ledger.moves.unknown where move.item == name {
            guard let item = items[name] else { break }
            let isMade = item.place != item.known && String(item.place) == move.name
            if isMade {
                items[name]?.known = item.place
                ledger.moves.settle(move, isMade: true, at: now.instant)
                found = "found in its new place"
                continue
            }
            if item.place == item.known {
                ledger.moves.noteNotMade(move, at: now.instant)
                found = "found in its old place"
            } else {
                ledger.moves.settle(move, isMade: false, at: now.instant)
            }
            for index in network.indices where network[index].move.name == move.name {
                network[index].missedAt = network[index].missedAt ?? now.instant
            }
        }
        return found
    }

    mutating func restart() {
        for index in network.indices { network[index].number = nil }
        for (name, item) in items { items[name]?.known = item.heard }
    }

    /// An item that is neither where the client knows it, nor where the ledger says that it may be.
    func lostItem(_ moves: PossibleMoves) -> String? {
        for (name, item) in items where item.place != item.known {
            let isPossible =
                isMoving(name) || moves.unknown.contains { $0.item == name && $0.name == String(item.place) }
            if !isPossible { return "item \(name) is at \(item.place), and nothing says that it may be there" }
        }
        return nil
    }

    /// Ends everything, and looks until nothing is unknown.
    mutating func drain(_ ledger: inout LedgerState, at now: inout LedgerState.Moment) {
        for request in network {
            guard let number = request.number else { continue }
            _ = ledger.end(number, .refused, at: now)
        }
        network = []
        for _ in 0..<3 {
            for name in items.keys.sorted() { _ = look(for: name, &ledger, at: now) }
            now.instant += Self.late + .seconds(1)
        }
    }
}
