import Syscalls
import SystemPackage
import Testing

@testable import Volume

/// The table of handles against a model, and what a process leaves that is killed between two stores.
@Suite struct HandleTableTests {
    /// What a table says.
    private struct Contents: Hashable {
        var entries: [UInt64: HandleTable.Entry] = [:]
        var lookups: [UInt64: UInt64] = [:]
        /// The requests of the step that the comparison is about.
        var counted: Set<UInt64> = []
        var description: [UInt8] = []

        init() {}

        init(_ table: borrowing HandleTable, requests: Range<UInt64>) {
            for number in table.openNumbers { entries[number] = table.entry(of: number) }
            for number in table.knownNumbers { lookups[number] = table.lookups(of: number) }
            for request in requests where table.hasCounted(.lookup(request), for: Self.node(of: request)) {
                counted.insert(request)
            }
            description = table.description
        }

        /// Half of the nodes are neighbours, the others lie apart.
        static func spread(_ number: UInt64) -> UInt64 { number % 2 == 0 ? number : number * 64 }

        /// The node that each request of the test is about.
        static func node(of request: UInt64) -> UInt64 { request % 7 + 1 }
    }

    private enum Step {
        case open(UInt64, HandleTable.Entry?)
        case lookup(UInt64)
        case countedLookup(UInt64)
        case forget(UInt64, UInt64)
        case undo(UInt64)
        case nameless(UInt64)
        case describe([UInt8])
    }

    private func apply(_ step: Step, to table: inout HandleTable, _ model: inout Contents) {
        switch step {
        case .open(let number, let entry):
            table.set(entry, of: number)
            model.entries[number] = entry
        case .lookup(let number):
            table.noteLookup(of: number)
            model.lookups[number, default: 0] += 1
        case .countedLookup(let request):
            let node = Contents.node(of: request)
            table.noteLookup(of: node, counting: .lookup(request))
            model.lookups[node, default: 0] += 1
            model.counted.insert(request)
        case .forget(let number, let count):
            _ = table.forget(number, lookups: count)
            let left = model.lookups[number].map { $0 > count ? $0 - count : 0 }
            model.lookups[number] = left == 0 ? nil : left
        case .undo(let request):
            let node = Contents.node(of: request)
            _ = table.forget(node, lookups: 1, uncounting: .lookup(request))
            model.lookups[node] = model.lookups[node].flatMap { $0 > 1 ? $0 - 1 : nil }
            model.counted.remove(request)
        case .nameless(let number):
            _ = table.noteNameless(number)
        case .describe(let bytes):
            table.description = bytes
            model.description = bytes
        }
    }

    /// What the next process would inherit from one that is killed now.
    private func inherited(_ descriptor: FileDescriptor) throws -> HandleTable {
        var bytes = [UInt8](repeating: 0, count: Int(try descriptor.lengths().size))
        let count = try bytes.withUnsafeMutableBytes { try descriptor.read(fromAbsoluteOffset: 0, into: $0) }
        var copy = try SharedMemory(named: "copy", count: count)
        copy.store(bytes, at: 0)
        return try HandleTable.adopt(copy.descriptor.duplicate())
    }

    @Test("a process that is killed after any store leaves the state before or after a step")
    func survivesEveryStore() throws {
        var random = Random(state: 1)
        var table = try HandleTable(ringCapacity: 8)
        var model = Contents()
        var (isGrowing, images) = (true, 0)
        let descriptor = table.descriptor
        // Of some nodes the counts are near the largest of a byte, and cross it in both directions.
        let hot = (1...20).map { Contents.spread(UInt64($0)) }
        for number in hot {
            for _ in 0..<126 { table.noteLookup(of: number) }
            model.lookups[number] = 126
        }
        for index in 0..<100_000 {
            if index % 10_000 == 0 { isGrowing.toggle() }
            let number = Contents.spread(.random(in: 1...(isGrowing ? 4000 : 300), using: &random))
            let request = UInt64(index) + 1
            let step: Step
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<20:
                let count = UInt32.random(in: 0...3, using: &random)
                let writers = UInt32.random(in: 0...count, using: &random)
                let entry = HandleTable.Entry(
                    count: count, writers: writers, closing: UInt32.random(in: 0...writers, using: &random),
                    content: .init(
                        isDecided: .random(using: &random), isUsed: .random(using: &random),
                        backing: Bool.random(using: &random) ? .random(in: 0...9, using: &random) : nil))
                step = .open(number % 300 + 1, count == 0 ? nil : entry)
            case 20..<26: step = .lookup(hot[Int.random(in: 0..<hot.count, using: &random)])
            case ..<32: step = .forget(hot[Int.random(in: 0..<hot.count, using: &random)], 1)
            case ..<(isGrowing ? 70 : 45): step = .lookup(number)
            case ..<75: step = .forget(Contents.spread(.random(in: 21...4000, using: &random)), 3)
            case ..<85: step = .countedLookup(request)
            case ..<92: step = model.counted.randomElement(using: &random).map { .undo($0) } ?? .lookup(number)
            case ..<98: step = .nameless(number)
            default: step = .describe((0..<Int.random(in: 0..<60, using: &random)).map { UInt8($0) })
            }
            // Requests that the ring has dropped are not asked for again.
            let requests = max(1, request > 6 ? request - 6 : 1)..<request + 1
            model.counted = model.counted.filter { requests.contains($0) }
            // Each step on small tables; of large ones those that copy a region, and a few others.
            guard index < 600 || index % 1999 == 0 else {
                apply(step, to: &table, &model)
                continue
            }
            var outcome = model
            let before = Contents(table, requests: requests)
            #expect(before == model)
            let left = Left()
            table.memory.didStore = { [self] in
                left.count += 1
                // Of a region that is copied some stores; the other test looks at each.
                guard left.count < 100 || left.count % 500 == 0 else { return }
                do {
                    var inherited = try inherited(descriptor)
                    let found = Contents(inherited, requests: requests)
                    left.states.insert(found)
                    // What was left is a table that works.
                    inherited.noteLookup(of: 77)
                    #expect(inherited.lookups(of: 77) == (found.lookups[77] ?? 0) + 1)
                } catch {
                    Issue.record(error)
                }
            }
            apply(step, to: &table, &outcome)
            table.memory.didStore = nil
            model = outcome
            let after = Contents(table, requests: requests)
            #expect(after == model)
            #expect(left.states.isSubset(of: [before, after]), "step \(index): \(step)")
            #expect(left.count == 0 || left.states.contains(after))
            images += left.count
        }
        #expect(images > 4000)
        #expect(Contents(table, requests: 1..<2).lookups == model.lookups)
        #expect(Contents(table, requests: 1..<2).entries == model.entries)
    }

    @Test("a process that is killed while a region grows leaves the old one or the new one") func survivesGrowing()
        throws
    {
        var table = try HandleTable(ringCapacity: 8)
        // One more key makes each region grow.
        for number in 1...UInt64(384) { table.noteLookup(of: number * 64) }
        for number in 1...UInt64(192) {
            for _ in 1..<127 { table.noteLookup(of: number * 64) }
        }
        for _ in 1..<126 { table.noteLookup(of: 200 * 64) }
        for number in 1...UInt64(96) { table.set(.init(count: 1), of: number) }
        for region in HandleTable.Layout.regions {
            let before = Contents(table, requests: 1..<2)
            let (descriptor, left) = (table.descriptor, Left())
            table.memory.didStore = { [self] in
                left.count += 1
                // While the largest region is copied, some of the stores.
                guard region.valueSize < 64 || left.count % 16 == 0 || left.count > 384 * 9 else { return }
                do {
                    var inherited = try inherited(descriptor)
                    let found = Contents(inherited, requests: 1..<2)
                    left.states.insert(found)
                    // It grows again over what the killed process has left.
                    guard left.count % 16 == 0 else { return }
                    for number in 6000..<UInt64(6100) { inherited.set(.init(count: 2), of: number) }
                    for number in 6000..<UInt64(6010) { inherited.noteLookup(of: number) }
                    #expect(inherited.openNumbers.count == found.entries.count + 100)
                    #expect(inherited.lookups(of: 6000) == 1)
                } catch {
                    Issue.record(error)
                }
            }
            switch region.offset {
            case HandleTable.Layout.lookups.offset: table.noteLookup(of: 500 * 64)
            case HandleTable.Layout.manyLookups.offset: table.noteLookup(of: 200 * 64)
            default: table.set(.init(count: 1), of: 5000)
            }
            table.memory.didStore = nil
            let after = Contents(table, requests: 1..<2)
            #expect(after != before)
            #expect(left.count > 200)
            #expect(left.states == [before, after])
        }
    }

    @Test("the memory is returned after the kernel has dropped its caches") func shrinks() throws {
        var table = try HandleTable()
        for number in 1...UInt64(200_000) { table.noteLookup(of: number) }
        let full = try table.descriptor.lengths().allocated
        #expect(full < 200_000 * 4 + 200_000)
        for number in 1...UInt64(200_000) { #expect(table.forget(number, lookups: 1) == false) }
        #expect(table.knownCount == 0)
        #expect(try table.descriptor.lengths().allocated < full / 4)
    }

    @Test("a node is known until all its lookups are forgotten, however many") func countsLookups() throws {
        var table = try HandleTable()
        for _ in 0..<1000 { table.noteLookup(of: 1) }
        #expect(table.lookups(of: 1) == 1000)
        #expect(table.noteNameless(1) == true)
        #expect(table.forget(1, lookups: 900) == false)
        #expect(table.lookups(of: 1) == 100)
        #expect(table.forget(1, lookups: 100) == true)
        #expect(table.knownCount == 0)
        table.noteLookup(of: 1)
        table.noteLookup(of: 2)
        #expect(table.noteNameless(2) == true)
        #expect(table.noteNameless(3) == false)
        #expect(table.forget(1, lookups: 1 << 40) == false)
        #expect(table.forget(2, lookups: 1 << 40) == true)
        #expect(table.knownCount == 0)
    }

    @Test("foreign, outdated and corrupt memory is refused") func refusesOthers() throws {
        let zeros = try SharedMemory(named: "zeros", count: 1 << 20)
        let error = #expect(throws: HandleTableError.self) {
            _ = (try HandleTable.adopt(zeros.descriptor.duplicate())).knownCount
        }
        #expect(error == .foreign)
        let tiny = try SharedMemory(named: "tiny", count: 10)
        #expect(throws: HandleTableError.foreign) {
            _ = (try HandleTable.adopt(tiny.descriptor.duplicate())).knownCount
        }
        typealias Layout = HandleTable.Layout
        let changes: [(Int, UInt64, Bool)] = [
            (Layout.versionWord, 1, false), (Layout.ringCapacityWord, 1 << 30, true),
            (Layout.redoWord, 33, true), (Layout.handles.offset, 1 << 40, true), (Layout.handles.capacity, 100, true),
            (Layout.lookups.capacity, 1 << 50, true), (Layout.lookups.live, 5, true),
            (Layout.lookups.offset, 8, true), (Layout.knownWord, 2, true), (Layout.manyLookups.live, 1, true),
            (Layout.descriptionWord, 5000, true), (Layout.redoWord + 8, 7, false),
        ]
        for (offset, value, isCorrupt) in changes {
            var table = try HandleTable()
            table.noteLookup(of: 1)
            table.set(.init(count: 1), of: 1)
            table.memory[offset] = value
            // A redo record that writes somewhere else is only looked at while it is valid.
            if offset == Layout.redoWord + 8 { table.memory[Layout.redoWord] = 1 }
            let error = #expect(throws: HandleTableError.self) {
                _ = (try HandleTable.adopt(table.descriptor.duplicate())).knownCount
            }
            if offset == Layout.versionWord { #expect(error == .otherVersion(1)) }
            if isCorrupt, case .corrupt = error {} else if isCorrupt { Issue.record("\(offset): \(error as Any)") }
        }
    }
}

extension HandleTableTests {
    /// What the tables say that a process killed during a step would leave.
    private final class Left {
        var count = 0
        var states: Set<Contents> = []
    }
}

private struct Random: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
