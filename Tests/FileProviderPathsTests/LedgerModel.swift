import FileProviderPaths

/// A simulated server that applies requests late, a client that keeps a ``LedgerState``, and the properties that the ledger
/// promises. Each step does one random thing; a violated property is recorded and ends the run.
struct LedgerModel {
    /// What a client does under a claim: some requests, one after the other.
    private struct Operation {
        var ticket: LedgerState.Tick
        var extents: [PathExtent]
        var isStarted = false
        var left: Int
        var request: LedgerState.Tick?
    }

    /// A request between client and server.
    private struct Request {
        var path: String
        var value: Int?
        /// Nil when the client has given it up.
        var number: LedgerState.Tick?
        /// When the server responded to anything for the first time since it was given up.
        var heardAt: ContinuousClock.Instant?
    }

    private struct Observation {
        var extent: PathExtent
        var requestedAt: LedgerState.Tick
        /// What the server read; nil while it has not.
        var snapshot: [String: Int]?
        var ticket: LedgerState.Tick?
    }

    static let grace = Duration.seconds(2)
    private static let settings = LedgerState.Settings(grace: grace...(.seconds(30)))
    private static let universe = ["a", "a/x", "a/y", "a/z/1", "a/z/2", "b", "b/x", "c"]

    private var ledger = LedgerState(settings)
    private var disk: [[UInt8]: LedgerState.Record] = [:]
    private var items = MoveModel()
    private var now = LedgerState.Moment(instant: .now, date: 1_700_000_000)
    private var server: [String: Int] = [:]
    private var operations: [Operation] = []
    private var network: [Request] = []
    private var observations: [Observation] = []
    private var lastValue = 0
    private var random: Generator
    private(set) var counts: [String: Int] = [:]
    private(set) var violation: String?

    init(seed: UInt64) { random = Generator(state: seed) }

    struct Generator: RandomNumberGenerator {
        var state: UInt64

        /// SplitMix64.
        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    // MARK: - Steps

    mutating func run(steps: Int) {
        for step in 0..<steps where violation == nil {
            if step % 500 == 499 { drain() } else { self.step() }
            save()
            checkDoubts()
            checkEffects()
            checkItems()
        }
        if violation == nil { drain() }
    }

    private mutating func step() {
        switch Int.random(in: 0..<130, using: &random) {
        case 100..<130: moveItems()
        case 0..<12: beginOperation()
        case 12..<40: continueOperation()
        case 40..<54: deliver()
        case 54..<58: deliverLate()
        case 58..<66: hear()
        case 66..<74: observe()
        case 74..<86: judge()
        case 86..<99: passTime()
        default: restart()
        }
    }

    private mutating func count(_ name: String) { counts[name, default: 0] += 1 }

    private mutating func require(_ isMet: Bool, _ property: @autoclosure () -> String) {
        if !isMet, violation == nil { violation = property() }
    }

    private mutating func randomExtent() -> PathExtent {
        let path = Self.universe.randomElement(using: &random) ?? ""
        switch Int.random(in: 0..<5, using: &random) {
        case 0: return .below(path + "/")
        case 1: return .within(path + "/")
        default: return .exactly(path)
        }
    }

    private static func paths(in extents: [PathExtent]) -> [String] {
        universe.filter { path in extents.contains { $0.contains(Array(path.utf8)) } }
    }

    private mutating func beginOperation() {
        guard operations.count < 8 else { return }
        let extents = (0..<Int.random(in: 1...2, using: &random)).map { _ in randomExtent() }
        let ticket = ledger.claim(extents)
        operations.append(
            Operation(ticket: ticket, extents: extents, left: Int.random(in: 1...3, using: &random)))
    }

    private mutating func continueOperation() {
        guard let index = operations.indices.randomElement(using: &random) else { return }
        if ledger.isWaiting(operations[index].ticket) {
            // Some callers give up waiting.
            if Int.random(in: 0..<20, using: &random) == 0 { release(index) }
            return
        }
        if operations[index].request != nil { return }
        let paths = Self.paths(in: operations[index].extents)
        if !operations[index].isStarted {
            if ledger.doubt(over: operations[index].extents, at: now) != nil { return count("operation in doubt") }
            checkStart(operations[index])
            operations[index].isStarted = true
        }
        guard operations[index].left > 0, let path = paths.randomElement(using: &random) else { return release(index) }
        operations[index].left -= 1
        lastValue += 1
        let value = Int.random(in: 0..<4, using: &random) == 0 ? nil : lastValue
        let number = ledger.send([path], at: now)
        operations[index].request = number
        network.append(Request(path: path, value: value, number: number))
    }

    private mutating func checkStart(_ operation: Operation) {
        let paths = Set(Self.paths(in: operation.extents))
        for other in operations where other.ticket != operation.ticket {
            guard other.isStarted || other.ticket < operation.ticket else { continue }
            require(
                paths.isDisjoint(with: Self.paths(in: other.extents)),
                "\(operation.extents) started while \(other.extents) was in flight")
        }
        for request in network {
            require(
                !paths.contains(request.path), "\(operation.extents) started while \(request.path) may still change")
        }
        count("started")
    }

    private mutating func release(_ index: Int) {
        let operation = operations.remove(at: index)
        for ticket in ledger.release(operation.ticket) {
            require(!ledger.isWaiting(ticket), "a claim was resumed that has to wait")
        }
    }

    private static func effect(_ request: Request) -> LedgerState.Effect {
        request.value.map { .written(tag: String($0)) } ?? .deleted
    }

    /// A request in flight arrives, or its connection breaks.
    private mutating func deliver() {
        let inFlight = network.indices.filter { network[$0].number != nil }
        guard let index = inFlight.randomElement(using: &random), let number = network[index].number else { return }
        let request = network[index]
        var outcome = LedgerState.Outcome.acknowledged(Self.effect(request))
        switch Int.random(in: 0..<10, using: &random) {
        case 0 where Bool.random(using: &random):
            // The server has applied it, and its response is lost.
            server[request.path] = request.value
            network.remove(at: index)
            outcome = .unknown(Self.effect(request))
            count("lost response")
        case 1:
            network[index].number = nil
            outcome = .unknown(Self.effect(request))
            count("lost request")
        case 2:
            // The client retries; the first attempt may still arrive.
            network[index].number = nil
            network.append(Request(path: request.path, value: request.value, number: number))
            ledger.noteUnknown(request.path, tag: request.value.map(String.init), at: now)
            return count("retry")
        case 3:
            network.remove(at: index)
            outcome = .refused
            hear()
        default:
            server[request.path] = request.value
            network.remove(at: index)
            hear()
            count("acknowledged")
        }
        for ticket in ledger.end(number, outcome, at: now) {
            for position in observations.indices where observations[position].ticket == ticket {
                observations[position].ticket = nil
            }
        }
        for position in operations.indices where operations[position].request == number {
            operations[position].request = nil
        }
    }

    private mutating func deliverLate() {
        let late = network.indices.filter { network[$0].number == nil }
        if let index = late.randomElement(using: &random) { arrive(index) }
    }

    private mutating func arrive(_ index: Int) {
        let request = network.remove(at: index)
        if Int.random(in: 0..<4, using: &random) == 0 { return }
        server[request.path] = request.value
        count("late arrival")
    }

    /// The server responds to anything.
    private mutating func hear() {
        ledger.noteResponse(after: .milliseconds(Int.random(in: 1...900, using: &random)), at: now)
        for index in network.indices where network[index].number == nil && network[index].heardAt == nil {
            network[index].heardAt = now.instant
        }
    }

    private mutating func passTime() {
        now.instant += .milliseconds(Int.random(in: 1...1500, using: &random))
        now.date += 1
        arriveOverdue()
    }

    private mutating func arriveOverdue() {
        // A late request arrives within the grace after the server's first response since, or never.
        while let index = network.firstIndex(where: { one in
            one.number == nil && one.heardAt.map { now.instant - $0 >= Self.grace } ?? false
        }) {
            arrive(index)
        }
    }

    // MARK: - Observations

    private mutating func observe() {
        if let index = observations.indices.randomElement(using: &random), observations[index].snapshot == nil {
            observations[index].snapshot = server
        } else if observations.count < 8 {
            let extent = randomExtent()
            // An observer waits until nothing is in doubt before it requests anything.
            if ledger.doubt(over: [extent], at: now) != nil { return count("observation in doubt") }
            observations.append(Observation(extent: extent, requestedAt: ledger.tick))
        }
    }

    private mutating func judge() {
        guard let index = observations.indices.randomElement(using: &random), observations[index].ticket == nil,
            let snapshot = observations[index].snapshot
        else { return }
        let observation = observations[index]
        var stale: Set<String> = []
        switch ledger.judge(observation.extent, requestedAt: observation.requestedAt) {
        case .inFlight(let numbers):
            let ticket = ledger.observe(after: numbers)
            require(ticket != nil, "requests in flight are not waited for")
            observations[index].ticket = ticket
            return count("in flight")
        case .expired: count("expired")
        case .stale(let finished):
            count("stale")
            stale = Set(finished.map { String(decoding: $0.path, as: UTF8.self) })
            fallthrough
        case .fresh:
            if stale.isEmpty { count("fresh") }
            for path in Self.paths(in: [observation.extent]) where !stale.contains(path) {
                require(
                    snapshot[path] == server[path], "an observation of \(path) is fresh, and the server has another")
            }
        }
        observations.remove(at: index)
    }

    // MARK: - Restarts

    private mutating func save() {
        for (name, record) in ledger.takeDurableChanges() { disk[name] = record }
        // The latest changes are written later than all else.
        if Int.random(in: 0..<5, using: &random) == 0 { saveRecentChanges() }
    }

    private mutating func saveRecentChanges() {
        for (name, record) in ledger.takeRecentChanges(at: now) { disk[name] = record }
    }

    private mutating func restart() {
        if Bool.random(using: &random) {
            ledger.close(at: now)
            saveRecentChanges()
            count("closed")
        } else {
            count("killed")
        }
        save()
        ledger = LedgerState(Self.settings, restoring: Array(disk.values), at: now)
        if ledger.recentChanges(below: "", at: now).contains(where: { !$0.isUncertain }) { count("change restored") }
        for index in network.indices where network[index].number != nil { network[index].number = nil }
        items.restart()
        operations = []
        observations = []
        checkDoubts()
    }

    /// A request that may still be applied is in doubt, also after a restart.
    private mutating func checkDoubts() {
        for request in network where request.number == nil {
            require(
                ledger.doubt(over: [.exactly(request.path)], at: now) != nil,
                "\(request.path) may still change, and the ledger has forgotten it")
        }
    }

    /// A listing that agrees with a certain effect is trusted: once nothing may change the path, the server has it.
    private mutating func checkEffects() {
        for change in ledger.recentChanges(below: "", at: now) {
            let path = String(decoding: change.path, as: UTF8.self)
            if network.contains(where: { $0.path == path }) { continue }
            let present = server[path].map { LedgerState.Effect.written(tag: String($0)) } ?? .deleted
            if !change.isUncertain {
                require(change.effect == present, "a listing of \(path) is trusted, and the server has another")
            } else if ledger.doubt(over: [.exactly(path)], at: now) == nil, Int.random(in: 0..<9, using: &random) == 0 {
                ledger.settle(change, as: present)
                count("settled")
            }
        }
    }

    // MARK: - Moves

    private mutating func moveItems() {
        count(items.step(&ledger, at: now, &random))
    }

    private mutating func checkItems() {
        if let lost = items.lostItem(ledger.moves) { require(false, lost) }
    }

    // MARK: - Liveness

    /// Ends everything: no claim and no observer is left waiting.
    private mutating func drain() {
        while violation == nil {
            if network.contains(where: { $0.number != nil }) {
                deliver()
                save()
                continue
            }
            guard let index = operations.firstIndex(where: { !ledger.isWaiting($0.ticket) }) else { break }
            release(index)
        }
        items.drain(&ledger, at: &now)
        arriveOverdue()
        save()
        checkItems()
        require(ledger.moves.unknown.isEmpty, "a move is unknown although both its paths were looked at")
        require(operations.isEmpty && ledger.claimCount == 0, "claims wait for nothing")
        require(observations.allSatisfy { $0.ticket == nil }, "an observer waits for nothing")
    }
}
