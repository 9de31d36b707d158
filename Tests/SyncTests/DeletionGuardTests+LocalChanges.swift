import FileProvider
import FileProviderTesting
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

/// What becomes of items and of local changes while removals are held.
extension EngineTests.DeletionGuardTests {
    @Test("CHANGE-4: what is held is not evicted, and while less than 90 % are missing the rest is sent")
    func lastCopies() async throws {
        try await Machine.run(fill: { $0.addFullDirectories() }) { machine async throws in
            for name in ["one", "three"] { _ = try await machine.read("\(name)/\(name)-0") }
            try await machine.loseTwoDirectories()
            let held = try await machine.number("one/one-0")
            let other = try await machine.number("three/three-0")
            // Nothing at all is evicted meanwhile.
            for number in [held, other] {
                let report = try await machine.engine.evict(number, isStrict: false)
                #expect(report.refusals.map(\.refusal) == [.removalsAreHeld])
                // As a limit of the cache does.
                #expect(await machine.engine.downloads.evictIfUnused(number) == nil)
            }
            #expect(try await machine.read("one/one-0") == "one 0")
            try await machine.write("new", to: "three/new")
            try await machine.send()
            #expect(machine.provider.tree.entries()["three/new"]?.content == "new")
            try await machine.engine.retry()
            try await machine.ingest()
            #expect(try await machine.engine.evict(other, isStrict: false).refusals.isEmpty)
        }
    }

    @Test(
        "CHANGE-4: what is made or changed in a directory whose removal is held says why it waits, and is sent after a decision",
        arguments: ["retry", "reimport"])
    func newWork(decision: String) async throws {
        try await Machine.run(fill: { $0.addFullDirectories() }) { machine async throws in
            try await machine.loseTwoDirectories()
            try await machine.write("new", to: "one/new")
            try await machine.write("changed", to: "one/one-7")
            try await machine.send()
            for (path, missing) in [("one/new", "its directory 'one'"), ("one/one-7", "it")] {
                let number = try await machine.number(path)
                let failure = try #require(try machine.replica.database.failure(of: number))
                #expect(failure.code == "removalsAreHeld")
                let reason = failure.message
                #expect(reason.hasPrefix("the remote no longer has \(missing), and removals are held"), "\(reason)")
                #expect(reason.contains("'yonder retry NAME'") && reason.contains("'yonder reimport'"))
            }
            #expect(machine.provider.tree.identifier(at: "one") == nil)
            if decision == "retry" {
                try await machine.engine.retry()
                try await machine.ingest()
                try await machine.drain()
                #expect(await !machine.exists("one/one-8"))
            } else {
                try await machine.engine.reimport(below: .root)
                await machine.engine.continueReimport()
                try await machine.drain(atMost: 2000)
                await machine.engine.continueReimport()
            }
            let entries = machine.provider.tree.entries()
            #expect(entries["one/new"]?.content == "new")
            #expect(entries["one/one-7"]?.content == "changed")
            #expect(machine.engine.heldRemovals == nil)
        }
    }

    @Test(
        "CHANGE-4: what was made in a directory that was missing is sent at once when that is back, and nothing else for that",
        arguments: [["one", "two", "three"], ["one"]])
    func directoryIsBack(back: [String]) async throws {
        func fillSix(_ tree: inout RemoteTree) {
            tree.addFullDirectories(["one", "two", "three", "four", "five", "six"])
        }
        try await Machine.run(isInteractive: false, fill: fillSix) { machine async throws in
            let before = machine.provider.tree
            machine.provider.faults.add(.refuse(reason: "no"), to: .create)
            try await machine.write("refused", to: "six/new")
            let refused = try await machine.item("six/new")
            let isRefused = try await eventually(within: .seconds(10)) {
                try machine.replica.database.failure(of: refused.inode.number) != nil
            }
            #expect(isRefused)
            machine.provider.faults.clear()
            machine.provider.change { tree in
                for directory: ItemIdentifier in ["one", "two", "three"] { tree.delete(directory) }
            }
            try await machine.ingest()
            try await machine.write("new", to: "one/new")
            let number = try await machine.number("one/new")
            let isHeld = try await eventually(within: .seconds(10)) {
                try machine.replica.database.failure(of: number)?.code == "removalsAreHeld"
            }
            #expect(isHeld)
            // A caller that waits has it tried once, and is told.
            await #expect { try await machine.engine.send(number) } throws: {
                guard let error = $0 as? FileProviderError else { return false }
                return error.code == .removalsAreHeld && error.readerErrno == .ioError
            }
            machine.provider.change { tree in
                for directory in back.map(ItemIdentifier.init(rawValue:)) {
                    tree.addDirectory(directory.rawValue, identifier: directory)
                    for item in before.items(in: directory) {
                        let content = before.content(of: item.itemIdentifier) ?? .bytes([])
                        tree.addFile(
                            item.filename, in: directory, content: content, identifier: item.itemIdentifier)
                    }
                }
            }
            try await machine.ingest()
            // A change that is refused is tried again after half a minute.
            #expect(
                await eventually(within: .seconds(10)) {
                    machine.provider.tree.entries()["one/new"]?.content == "new"
                })
            #expect((machine.engine.heldRemovals == nil) == (back.count == 3))
            #expect(try machine.replica.database.pendingItem(refused.id)?.state.attempts == 1)
        }
    }

    @Test("CHANGE-4: what waits for what is held is tried after an hour, then after two, also after a restart")
    func triedOnce() async throws {
        try await Machine.run(options: .with(\.changeFeed, false), fill: { $0.addFullDirectories() }) {
            machine async throws in
            let before = machine.provider.tree
            machine.provider.changeSilently { tree in
                tree.delete("one")
                tree.delete("two")
            }
            try await machine.ingest()
            try await machine.write("new", to: "one/new")
            // The first time it waits for a comparison.
            try await machine.send(passes: 1)
            try await machine.ingest()
            try await machine.send(passes: 1)
            let restarted = try machine.crash()
            let item = try await restarted.item("one/new")
            let row = item.id
            let unread = FileProviderError(.cannotSynchronize, "cannot be read")
            await restarted.engine.commits.recordFailure(unread, of: item.inode.number)
            let waiting = try #require(try restarted.replica.database.pendingItem(row)?.state)
            #expect(waiting.attempts == 1 && waiting.waitsForRemovals)
            var planner = Planner()
            planner.holdsRemovals = restarted.engine.context.guardian.holdsRemovals
            for (seconds, count) in [(3_000, 0), (3_700, 1)] {
                var position = PendingPosition()
                let plan = try planner.plan(
                    from: restarted.replica, at: FileTimestamp.now.advanced(by: .seconds(seconds)), limit: 100,
                    position: &position, isBusy: { _ in false })
                #expect(plan.steps.count { $0.operation == .creation(row: row) } == count, "\(seconds)")
            }
            // It waits for no comparison again.
            try await restarted.send(passes: 1)
            let later = try #require(try restarted.replica.database.pendingItem(row)?.state)
            #expect(later.attempts == 2 && later.waitsForRemovals)
            let time = try #require(later.nextTry)
            #expect(time > FileTimestamp.now.advanced(by: .seconds(7_000)))
            restarted.provider.changeSilently { $0 = before }
            try await restarted.ingest()
            #expect(restarted.engine.heldRemovals == nil)
            #expect(try await restarted.operations().contains(.creation(row: row)))
            try await restarted.drain()
            #expect(restarted.provider.tree.entries()["one/new"]?.content == "new")
        }
    }
}
