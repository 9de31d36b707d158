import FileProvider
import FileProviderTesting
import Testing

@testable import Replica
@testable import Sync

/// The planner as a function of a snapshot.
@Suite("the planner") struct PlannerTests {
    private let now = FileTimestamp(seconds: 2_000_000_000, nanoseconds: 0)

    /// A new file in a directory that the remote has; everything about it can be changed.
    private func newFile() async throws -> PendingEntry {
        var found: PendingEntry?
        try await Machine.run { machine in
            try await machine.write("text", to: "n")
            found = try machine.replica.pendingItem(try await machine.item("n").id)
        }
        var pending = try #require(found)
        (pending.item.inode.changedAt, pending.state.since) = (before(10), before(10))
        return pending
    }

    private func removal(_ kind: InodeKind = .file) async throws -> PendingRemoval {
        var found: PendingRemoval?
        try await Machine.run(fill: ScriptRun.fill) { machine in
            try await machine.remove("a")
            found = try #require(try machine.replica.database.pendingDeletions().first).removal
        }
        var removal = try #require(found)
        (removal.deletion.since, removal.deletion.kind) = (before(10), kind)
        return removal
    }

    private func before(_ seconds: Int64) -> FileTimestamp { now.advanced(by: .seconds(-seconds)) }

    private func plan(
        _ items: [PendingEntry] = [], _ removals: [PendingRemoval] = [], _ planner: Planner = Planner(),
        isBusy: (Footprint) -> Bool = { _ in false }
    ) -> Planner.Plan {
        var snapshot = PendingSnapshot()
        (snapshot.items, snapshot.removals) = (items, removals)
        return planner.plan(snapshot, at: now, isBusy: isBusy)
    }

    @Test func anItemThatWasLeftAloneIsSent() async throws {
        let pending = try await newFile()
        let plan = plan([pending])
        #expect(plan.steps.map(\.operation) == [.creation(row: pending.item.id)])
        let footprint = try #require(plan.steps.first?.footprint)
        #expect(footprint.identifiers == [pending.item.placeholder])
        #expect(footprint.places == [Footprint.Place(parent: .rootContainer, name: "n")])
        // The same snapshot gives the same plan.
        #expect(self.plan([pending]) == plan)
    }

    @Test func anItemThatWasJustChangedWaitsForItsDelay() async throws {
        var pending = try await newFile()
        pending.item.inode.changedAt = now
        #expect(plan([pending]) == Planner.Plan(next: now.advanced(by: .seconds(1))))
        var planner = Planner()
        planner.isHurried = true
        #expect(plan([pending], [], planner).steps.count == 1)
        // It changes all the time, and has waited for the longest delay.
        pending.state.since = before(30)
        #expect(plan([pending]).steps.count == 1)
        // It has failed, and that comes first.
        (pending.state.attempts, pending.state.nextTry) = (2, now.advanced(by: .seconds(60)))
        #expect(plan([pending], [], planner) == Planner.Plan(next: now.advanced(by: .seconds(60))))
    }

    @Test("WRITE-12: changes that have failed together are sent in parts, then together again")
    func partsAfterARefusal() async throws {
        var pending = try await newFile()
        let parts: [ItemFields] = [
            [.filename, .parentItemIdentifier], [.contents, .contentModificationDate], [.permissions, .ownership],
        ]
        let all = parts.reduce(into: ItemFields()) { $0.formUnion($1) }
        pending.item.changedFields = all
        (pending.state.attempts, pending.state.failure) = (1, .cannotSynchronize)
        // A new item is created as a whole.
        #expect(Planner().readiness(of: pending, at: now) == .ready(all))
        pending.item.identifier = "n"
        pending.state.failure = .timedOut
        #expect(Planner().readiness(of: pending, at: now) == .ready(all))
        pending.state.failure = .cannotSynchronize
        func expect(_ calls: [ItemFields]) {
            for attempts in 0..<6 {
                pending.state.attempts = attempts
                #expect(Planner().readiness(of: pending, at: now) == .ready(calls[attempts % calls.count]))
            }
        }
        // The place waits for the content.
        expect([all, parts[1], parts[2]])
        pending.item.changedFields = parts[0].union(parts[1])
        expect([parts[0].union(parts[1]), parts[1]])
        pending.item.changedFields = parts[0].union(parts[2])
        expect([parts[0].union(parts[2]), parts[0], parts[2]])
        pending.item.changedFields = parts[1]
        expect([parts[1]])
        // The date goes without the content that has arrived.
        (pending.item.changedFields, pending.state.attempts) = ([.filename, .contentModificationDate], 2)
        #expect(Planner().readiness(of: pending, at: now) == .ready(.contentModificationDate))
        pending.item.changedFields = .filename
        #expect(Planner().readiness(of: pending, at: now) == .ready(.filename))
    }

    @Test("SEND-4: what was changed before the clock was set back is sent, and what had failed is tried again")
    func theClockWasSetBack() async throws {
        var pending = try await newFile()
        let ahead = now.advanced(by: .seconds(86_400))
        (pending.item.inode.changedAt, pending.state.since) = (ahead, ahead)
        #expect(plan([pending]).steps.count == 1)
        pending.state.nextTry = ahead
        #expect(plan([pending]).steps.count == 1)
        var removal = try await removal()
        (removal.deletion.since, removal.deletion.nextTry) = (ahead, ahead)
        #expect(plan([], [removal]).steps.count == 1)
    }

    @Test(
        "SEND-4: a pause is not longer than the number of failures makes it, because the clock was set back during it",
        arguments: [(0, 3), (1, 30), (2, 60), (7, 1920), (8, 3600), (100, 3600)])
    func theClockWasSetBackDuringAPause(attempts: Int, longest: Int) async throws {
        var pending = try await newFile()
        var removal = try await removal()
        (pending.state.attempts, removal.deletion.attempts) = (attempts, attempts)
        let end = now.advanced(by: .seconds(longest))
        (pending.state.nextTry, removal.deletion.nextTry) = (end, end)
        #expect(plan([pending], [removal]) == Planner.Plan(next: end))
        let afterStep = end.advanced(by: .seconds(600))
        (pending.state.nextTry, removal.deletion.nextTry) = (afterStep, afterStep)
        #expect(plan([pending], [removal]).steps.count == 2)
    }

    @Test(
        "CHANGE-4: what waits for held removals is tried once they are not held, and after an hour, doubling up to a day",
        arguments: [(1, 3600), (2, 7200), (5, 57_600), (6, 86_400), (100, 86_400)])
    func heldRemovals(attempts: Int, longest: Int) async throws {
        var pending = try await newFile()
        var planner = Planner()
        (planner.holdsRemovals, planner.isHurried) = (true, true)
        let end = now.advanced(by: .seconds(longest))
        (pending.state.attempts, pending.state.nextTry, pending.state.failure) = (attempts, end, .removalsAreHeld)
        #expect(plan([pending], [], planner) == Planner.Plan(next: end))
        #expect(plan([pending]).steps.count == 1)
        // The clock was set back meanwhile.
        pending.state.nextTry = end.advanced(by: .seconds(600))
        #expect(plan([pending], [], planner).steps.count == 1)
        pending.state.nextTry = before(1)
        #expect(plan([pending], [], planner).steps.count == 1)
        // What has failed is another name of the file.
        pending.state.nextTry = nil
        #expect(plan([pending], [], planner).steps.count == 1)
    }

    @Test func anOpenFileIsSentAfterABoundThatDependsOnItsSize() async throws {
        var pending = try await newFile()
        func content(_ size: Int64) -> ContentStatus {
            ContentStatus(size: size, allocated: size, modifiedAt: now, changedAt: now, stamp: 1)
        }
        pending.content = content(4)
        #expect(plan([pending]).next == now.advanced(by: .seconds(5)))
        pending.state.since = before(50)
        #expect(plan([pending]).steps.count == 1)
        pending.content = content(UploadDelays.smallFile + 1)
        #expect(plan([pending]).next == now.advanced(by: .seconds(5)))
        pending.state.since = before(600)
        #expect(plan([pending]).steps.count == 1)
    }

    @Test func anItemWaitsForItsDirectoryAndForItsName() async throws {
        var pending = try await newFile()
        pending.directory = nil
        #expect(plan([pending]) == Planner.Plan())
        pending.directory = .rootContainer
        pending.nameHolder = .item(99, [.contents])
        #expect(plan([pending]).steps.count == 1)
        pending.nameHolder = .item(99, [.filename])
        #expect(plan([pending]) == Planner.Plan())
        pending.nameHolder = .deletion(7)
        #expect(plan([pending]) == Planner.Plan())
        pending.isNameHolderInUse = true
        #expect(plan([pending]).next == now.advanced(by: .milliseconds(200)))
    }

    @Test("SEND-7: items are moved aside only where they wait for each other in a circle") func circlesAreFound()
        async throws
    {
        let new = try await newFile()
        /// Items that each wait for the name of the next one.
        func chain(_ count: Int64) -> [PendingEntry] {
            (1...count).map { row in
                var pending = new
                (pending.item.id, pending.item.identifier) = (row, ItemIdentifier("\(row)"))
                (pending.item.name, pending.item.base.name) = ("n\(row + 1)", "n\(row)")
                (pending.item.base.parent, pending.nameHolder) = (.rootContainer, .item(row + 1, [.filename]))
                return pending
            }
        }
        func asides(_ rows: [Int64]) -> [SyncOperation] { rows.map { .moveAside(row: $0) } }
        var items = chain(10_000)
        // The last one waits for an item that is not in the snapshot, for its next try, for nothing, or for a deletion.
        let last = items.count - 1
        #expect(plan(items) == Planner.Plan())
        items[last].state = PendingState(since: before(10), attempts: 1, nextTry: now.advanced(by: .seconds(20)))
        #expect(plan(items) == Planner.Plan(next: now.advanced(by: .seconds(20))))
        (items[last].state, items[last].nameHolder) = (new.state, nil)
        #expect(plan(items).steps.map(\.operation) == [.modification(row: items[last].item.id)])
        let removal = try await removal()
        items[last].nameHolder = .deletion(removal.deletion.id)
        #expect(plan(items, [removal]).steps.map(\.operation) == [.deletion(removal.deletion.id)])
        // All of them are one circle, or some wait for a circle that they are not in.
        items[last].nameHolder = .item(1, [.filename])
        #expect(plan(items).steps.map(\.operation) == asides([1]))
        items[last].nameHolder = .item(items[last].item.id - 1, [.filename])
        #expect(plan(items).steps.map(\.operation) == asides([items[last].item.id - 1]))
        // Another item can be sent meanwhile, but a circle is left alone while one of its items is being sent.
        items = chain(3)
        items[2].nameHolder = .item(1, [.filename])
        #expect(plan([new] + items).steps.map(\.operation) == asides([1]) + [.creation(row: new.item.id)])
        #expect(plan(items) { $0.identifiers.contains("3") } == Planner.Plan())
        // One that was moved aside is not moved again.
        items[0].item.base.name = CircularWaits.asideName(1)
        #expect(plan(items).steps.map(\.operation) == asides([2]))
    }

    @Test func whatHoldsANameAndWaitsForItsDirectoryIsMovedAside() async throws {
        // A new directory waits for the name of an item that is to be in it.
        var new = try await newFile()
        new.item.inode.kind = .directory
        var holder = try await newFile()
        holder.item.id = new.item.id + 1
        holder.item.identifier = "holder"
        (holder.item.base.name, holder.item.base.parent) = ("name", "old")
        holder.item.changedFields = [.parentItemIdentifier]
        (holder.directory, holder.directoryRow) = (nil, new.item.id)
        holder.asideDirectory = .rootContainer
        new.nameHolder = .item(holder.item.id, [.parentItemIdentifier])
        let aside = SyncOperation.moveAside(row: holder.item.id)
        #expect(plan([new, holder]).steps.map(\.operation) == [aside])
        // No item waits for it.
        #expect(plan([holder]) == Planner.Plan())
        // The name belongs to a directory that is to be deleted once the item is not in it any more.
        let removal = try await removal(.directory)
        var waiting = removal
        waiting.isDirectoryWaiting = true
        new.nameHolder = .deletion(removal.deletion.id)
        #expect(plan([new, holder], [waiting]) == Planner.Plan())
        holder.item.base.parent = removal.deletion.identifier
        #expect(plan([new, holder], [waiting]).steps.map(\.operation) == [aside])
        // Another name in that directory does not end the circle.
        holder.item.base.name = CircularWaits.asideName(holder.item.id)
        #expect(plan([new, holder], [waiting]).steps.map(\.operation) == [aside])
        holder.asideDirectory = removal.deletion.identifier
        #expect(plan([new, holder], [waiting]) == Planner.Plan())
    }

    @Test("SEND-7: a circle of a directory that moves to below itself ends, also if an item of it is aside already")
    func whatLiesBetweenIsMovedAside() async throws {
        // A new directory has the name of one that moves to below `inner`, which it contains and which moves to the new one.
        var new = try await newFile()
        new.item.inode.kind = .directory
        var (outer, inner) = (new, new)
        outer.item.id = new.item.id + 1
        (outer.item.identifier, outer.item.base.name, outer.item.base.parent) = ("outer", "n", .rootContainer)
        (outer.item.changedFields, outer.directory) = ([.parentItemIdentifier], "inner")
        (outer.directoriesBetween, outer.asideDirectory) = (["inner"], .rootContainer)
        inner.item.id = new.item.id + 2
        (inner.item.identifier, inner.item.base.name, inner.item.base.parent) = ("inner", "i", "outer")
        (inner.item.changedFields, inner.directory) = ([.parentItemIdentifier], nil)
        (inner.directoryRow, inner.asideDirectory) = (new.item.id, .rootContainer)
        new.nameHolder = .item(outer.item.id, [.parentItemIdentifier])
        func asides(_ pending: PendingEntry) -> [SyncOperation] { [.moveAside(row: pending.item.id)] }
        #expect(plan([new, outer, inner]).steps.map(\.operation) == asides(inner))
        inner.item.base.name = CircularWaits.asideName(inner.item.id)
        #expect(plan([new, outer, inner]).steps.map(\.operation) == asides(inner))
        // It can be moved nowhere else: then the name is given up.
        inner.asideDirectory = "outer"
        #expect(plan([new, outer, inner]).steps.map(\.operation) == asides(outer))
        // Nothing in between has to leave: the directory waits for news.
        outer.directoriesBetween = ["other"]
        #expect(plan([new, outer, inner]) == Planner.Plan())
    }

    @Test func claimedItemsAreNotPlanned() async throws {
        let (pending, removal) = (try await newFile(), try await removal())
        #expect(plan([pending], [removal]).steps.count == 2)
        #expect(plan([pending], [removal]) { $0.identifiers.contains(removal.deletion.identifier) }.steps.count == 1)
        #expect(plan([pending], [removal]) { _ in true }.steps.isEmpty)
    }

    @Test func directoryIsPlannedAfterItsChildren() async throws {
        var removal = try await removal(.directory)
        removal.isDirectoryWaiting = true
        #expect(plan([], [removal]) == Planner.Plan())
        removal.isDirectoryWaiting = false
        #expect(plan([], [removal]).steps.map(\.operation) == [.deletion(removal.deletion.id)])
        removal.isInUse = true
        #expect(plan([], [removal]).next == now.advanced(by: .milliseconds(200)))
    }

    @Test func aPlanReadsNoMoreThanItNeeds() async throws {
        try await Machine.run { tree in
            for number in 0..<600 {
                tree.addFile("f\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
            }
        } _: { machine in
            for number in 0..<600 { try await machine.remove("f\(number)") }
            let replica = machine.replica
            var asked = 0
            let snapshot = try replica.pendingSnapshot(
                PendingQuery(now: now, limit: 10, start: PendingPosition(), hasOnlyOffers: false),
                isDue: { _, _ in true },
                isRemovalDue: { _ in
                    asked += 1
                    return true
                }, canBeSent: { _ in true }, canBeRemoved: { _ in true })
            // The date of the root is to be sent, too.
            #expect(snapshot.removals.count + snapshot.items.count == 10)
            #expect(asked == snapshot.removals.count)
            var position = PendingPosition()
            let steps = try Planner().plan(from: replica, at: now, limit: 512, position: &position) { _ in false }.steps
            #expect(steps.count == 512)
        }
    }

    // MARK: - Turns

    /// The operations of a plan that can be sent without any delay.
    private func operations(
        of machine: Machine, limit: Int, position: inout PendingPosition
    ) throws -> [SyncOperation] {
        try Planner().plan(from: machine.replica, at: now, limit: limit, position: &position) { _ in false }
            .steps.map(\.operation)
    }

    @Test("SEND-4: every item has its turn, although those before it are due again") func itemsHaveTurns()
        async throws
    {
        try await Machine.run { machine in
            var wanted: Set<SyncOperation> = []
            for number in 0..<5 {
                try await machine.write("text", to: "n\(number)")
                wanted.insert(.creation(row: try await machine.item("n\(number)").id))
            }
            var position = PendingPosition()
            var planned: Set<SyncOperation> = []
            for _ in 0..<3 { planned.formUnion(try operations(of: machine, limit: 2, position: &position)) }
            #expect(planned == wanted)
        }
    }

    @Test("SEND-4: a new item does not wait for all deletions") func deletionsLeaveRoom() async throws {
        try await Machine.run { tree in
            for number in 0..<9 {
                tree.addFile("f\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
            }
        } _: { machine in
            for number in 0..<9 { try await machine.remove("f\(number)") }
            var position = PendingPosition()
            #expect(try operations(of: machine, limit: 8, position: &position).count == 8)
            try await machine.write("text", to: "n")
            let new = SyncOperation.creation(row: try await machine.item("n").id)
            let planned = try operations(of: machine, limit: 8, position: &position)
            #expect(planned.count == 8)
            #expect(planned.firstIndex(of: new) == 1)
        }
    }

    @Test("SEND-4: a circle is found although many items that can be sent are between its members")
    func circlesAreFoundInPlans() async throws {
        let names = ["a"] + (0..<8).map { "f\($0)" } + ["z"]
        try await Machine.run { tree in
            for name in names {
                tree.addFile(name, content: RemoteContent(name), identifier: ItemIdentifier(name))
            }
        } _: { machine in
            for name in names { try await machine.write("new", to: name) }
            try await machine.rename("a", to: "z", .exchange)
            let rows = [try await machine.item("z").id, try await machine.item("a").id]
            for row in rows {
                var position = PendingPosition()
                position.items = row - 1
                let planned = try operations(of: machine, limit: 2, position: &position)
                #expect(planned.count == 3)
                #expect(planned.first == .moveAside(row: row))
            }
        }
    }
}

extension PendingDeletion {
    fileprivate var removal: PendingRemoval { PendingRemoval(self) }
}
