import FileProvider
import Testing

@testable import Replica

/// The order of remote changes and operations, against a model of a remote and of what this machine records.
@Suite("ordering of remote changes against operations") struct OrderingStateTests {
    private typealias ID = OrderingState.OperationID

    /// SplitMix64: the same steps for the same seed.
    private struct Random: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }

    /// A remote with a version for each item, a machine that records versions, and requests between the two that are
    /// answered in any order.
    private struct Model {
        struct Operation {
            var item: Int
            var isApplied = false
            var version = 0
        }

        struct Observed {
            var tick: OrderingState.Tick
            var items: [Int]
            var isListing: Bool
            /// What the remote had when it answered; nil before.
            var versions: [Int]?
        }

        static let items = 30
        var ordering = OrderingState()
        var random: Random
        var remote = Array(repeating: 0, count: items)
        var recorded = Array(repeating: 0, count: items)
        /// The newest version that a report of each item recorded.
        var reported = Array(repeating: 0, count: items)
        /// The version that the last acknowledgement of each item recorded.
        var acknowledged = Array(repeating: 0, count: items)
        var operations: [ID: Operation] = [:]
        var observations: [Observed] = []
        var lastBegun: OrderingState.Tick = 0
        /// For each item, the last observation that was begun before its last acknowledgement or report.
        var lastBegunAtAcknowledgement: [ItemIdentifier: OrderingState.Tick] = [:]
        var lastBegunAtReport: [ItemIdentifier: OrderingState.Tick] = [:]
        var prunings = 0
        var lastVersion = 0
        var (waits, drops, takes) = (0, 0, 0)
        var defects: [String] = []

        init(seed: UInt64) { random = Random(state: seed) }

        func identifier(_ item: Int) -> ItemIdentifier { ItemIdentifier("\(item)") }

        func footprint(_ items: [Int]) -> Footprint {
            Footprint(
                identifiers: Set(items.map(identifier)),
                places: Set(items.map { Footprint.Place(parent: .rootContainer, name: "name \($0)") }))
        }

        mutating func change(_ item: Int) -> Int {
            lastVersion += 1
            remote[item] = lastVersion
            return lastVersion
        }

        mutating func step() {
            let item = Int.random(in: 0..<Self.items, using: &random)
            switch Int.random(in: 0..<17, using: &random) {
            case 0: _ = change(item)
            case 1:
                if let id = ordering.claim(footprint([item])) {
                    if operations.values.contains(where: { $0.item == item }) {
                        defects.append("two operations on one item")
                    }
                    ordering.send(id)
                    operations[id] = Operation(item: item)
                }
            case 2, 3:
                if let id = pick(operations.filter { !$0.value.isApplied }.keys) { apply(id) }
            case 4, 5, 6: if let id = pick(operations.keys) { answer(id) }
            case 7, 8:
                guard observations.count < 20 else { return }
                let count = Int.random(in: 1...3, using: &random)
                let items = (0..<count).map { _ in Int.random(in: 0..<Self.items, using: &random) }
                lastBegun = ordering.beginObservation()
                observations.append(
                    Observed(
                        tick: lastBegun, items: Array(Set(items)).sorted(),
                        isListing: Bool.random(using: &random)))
            case 9, 10, 11:
                guard let index = observations.indices.randomElement(using: &random) else { return }
                if observations[index].versions == nil {
                    observations[index].versions = observations[index].items.map { remote[$0] }
                }
            default:
                guard let index = observations.indices.randomElement(using: &random),
                    observations[index].versions != nil
                else { return }
                record(index)
            }
        }

        private mutating func pick(_ ids: some Collection<ID>) -> ID? {
            // Dictionaries have another order in each process.
            ids.sorted().randomElement(using: &random)
        }

        private mutating func apply(_ id: ID) {
            guard let operation = operations[id] else { return }
            let version = change(operation.item)
            operations[id]?.version = version
            operations[id]?.isApplied = true
        }

        /// The response arrives and is recorded. Sometimes the remote refused.
        mutating func answer(_ id: ID) {
            guard let operation = operations.removeValue(forKey: id) else { return }
            if operation.isApplied {
                recorded[operation.item] = operation.version
                acknowledged[operation.item] = operation.version
                lastBegunAtAcknowledgement[identifier(operation.item)] = lastBegun
            }
            ordering.answer(id, of: operation.isApplied ? [identifier(operation.item)] : [])
            ordering.release(id)
        }

        private mutating func record(_ index: Int) {
            let observed = observations[index]
            guard let versions = observed.versions else { return }
            var stale: Set<ItemIdentifier> = []
            switch ordering.verdict(on: footprint(observed.items), observedAt: observed.tick) {
            case .wait(let id):
                waits += 1
                // It waits for an operation that is in flight, and so is answered at some time.
                if operations[id] == nil { defects.append("waits for an operation that was answered") }
                return
            case .stale(let identifiers): stale = identifiers
            case .fresh: break
            }
            if !observed.isListing {
                ordering.report(observed.items.map(identifier))
                for item in observed.items { lastBegunAtReport[identifier(item)] = lastBegun }
            }
            for (item, version) in zip(observed.items, versions) {
                if operations.values.contains(where: { $0.item == item }) {
                    defects.append("recorded an observation during an operation")
                }
                if stale.contains(identifier(item))
                    || ordering.isStale(identifier(item), observedAt: observed.tick, isListing: observed.isListing)
                {
                    drops += 1
                    continue
                }
                takes += 1
                if version < acknowledged[item] { defects.append("an observation undoes an acknowledgement") }
                if observed.isListing, version < reported[item] { defects.append("a listing undoes a report") }
                recorded[item] = version
                if !observed.isListing { reported[item] = max(reported[item], version) }
            }
            observations.remove(at: index)
            ordering.endObservation(observed.tick)
            compareMemory(after: observed.tick)
        }

        /// An acknowledgement or report is kept exactly as long as an observation is outstanding that was begun before it.
        private mutating func compareMemory(after ended: OrderingState.Tick) {
            // In the order in which they were begun.
            let oldest = observations.first?.tick ?? .max
            let kept = [Set(ordering.acknowledged.keys), Set(ordering.reported.keys)]
            let needed = [lastBegunAtAcknowledgement, lastBegunAtReport].map {
                Set($0.filter { $0.value >= oldest }.keys)
            }
            if kept != needed { defects.append("kept \(kept), needed \(needed)") }
            if ended < oldest, !observations.isEmpty, kept.contains(where: { !$0.isEmpty }) { prunings += 1 }
        }

        /// Everything is answered and recorded: then nothing waits.
        mutating func drain() {
            for id in operations.keys.sorted() { answer(id) }
            while let last = observations.indices.last {
                if observations[last].versions == nil {
                    observations[last].versions = observations[last].items.map { remote[$0] }
                }
                let count = observations.count
                record(last)
                if observations.count == count {
                    defects.append("waits although nothing is in flight")
                    return
                }
            }
        }
    }

    @Test("an observation that was requested before an acknowledgement never undoes it", arguments: 1...4)
    func randomInterleavings(seed: UInt64) {
        var model = Model(seed: seed)
        for step in 1...100_000 {
            model.step()
            if step.isMultiple(of: 5_000) { model.drain() }
            if !model.defects.isEmpty { break }
        }
        #expect(model.defects == [])
        // The run is worth something: it has had all of these.
        #expect(model.waits > 200 && model.drops > 1_000 && model.takes > 10_000 && model.prunings > 1_000)
    }

    @Test func aRenamedDirectoryClaimsWhatIsBelow() throws {
        var ordering = OrderingState()
        var renaming = Footprint(identifiers: ["d"])
        renaming.movedDirectory = "d"
        var write = Footprint(identifiers: ["f"])
        write.ancestors = ["d", "e"]
        let first = ordering.claim(renaming)
        let early = ordering.claim(write)
        #expect(early == nil)
        ordering.release(try #require(first))
        let late = ordering.claim(write)
        #expect(late != nil)
    }

    @Test func namesAreComparedByBytes() {
        var ordering = OrderingState()
        let claims = ["\u{e9}", "e\u{301}", "\u{e9}"].map { name in
            ordering.claim(Footprint(places: [Footprint.Place(parent: "d", name: name)])) != nil
        }
        #expect(claims == [true, true, false])
    }

    @Test func anItemThatAListingShowsIsNotMissing() {
        var ordering = OrderingState()
        ordering.beginLookup(of: "a")
        ordering.beginLookup(of: "b")
        ordering.found(["a"])
        let isMissing = [ordering.lookupFailed(of: "a"), ordering.lookupFailed(of: "b")]
        #expect(isMissing == [false, true])
        let taken = [ordering.takeMissing(), ordering.takeMissing()]
        #expect(taken == [["b"], []])
    }
}
