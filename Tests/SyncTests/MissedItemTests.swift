import FileProvider
import FileProviderTesting
import Foundation
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Changes of items that the remote does not find.
    @Suite struct MissedItemTests {
        private func makeMissing(_ identifier: ItemIdentifier, on machine: Machine) {
            for kind: ProviderCallKind in [.modify, .item] {
                machine.provider.faults.fail(
                    kind, of: identifier, with: FileProviderError.noSuchItem(identifier), times: nil)
            }
        }

        @Test(
            "PIN-1: what takes the place of a file or directory is pinned and tagged as that was, also if a change of that finds it first",
            arguments: ["a", "d"])
        func successor(of name: String) async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine async throws in
                let number = try await machine.number(name)
                _ = try machine.replica.setPolicy(.keepDownloaded, of: number)
                try await machine.change { _ = try $0.items.setTagData([1, 2], of: ItemIdentifier(name)) }
                let row = try await machine.item(name).id
                machine.provider.changeSilently {
                    $0.delete(ItemIdentifier(name))
                    if name == "d" {
                        $0.addDirectory(name, identifier: "another")
                    } else {
                        $0.addFile(name, content: RemoteContent("another"), identifier: "another")
                    }
                }
                await machine.engine.runAlone(.modification(row: row))
                let successor = try await machine.item(name)
                #expect(successor.identifier == "another" && successor.policy == .keepDownloaded)
                #expect(try machine.replica.database.marks(of: successor).tagData == Data([1, 2]))
                try await machine.settle()
                #expect(try await machine.item(name).identifier == "another")
            }
        }

        @Test("PIN-1: a directory in which something was made here stays pinned when a change of it finds it replaced")
        func keptDirectory() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine async throws in
                let number = try await machine.number("d")
                _ = try machine.replica.setPolicy(.keepDownloaded, of: number)
                try await machine.write("new", to: "d/new")
                try await machine.change { _ = try $0.items.setTagData([1, 2], of: "d") }
                let row = try await machine.item("d").id
                machine.provider.changeSilently {
                    $0.delete("d")
                    $0.addDirectory("d", identifier: "another")
                }
                await machine.engine.runAlone(.modification(row: row))
                try await machine.settle()
                let kept = try await machine.item("d")
                #expect(kept.identifier == "another" && kept.policy == .keepDownloaded)
                #expect(machine.provider.tree.entries()["d/new"]?.content == "new")
            }
        }

        /// Runs a test in which `a` was changed here, and the remote does not find it, which reports no changes by itself; the test is given
        /// its row.
        private func runWithMissing(_ test: (Machine, Int64) async throws -> Void) async throws {
            try await Machine.run(options: .with(\.changeFeed, false), fill: { ScriptRun.fill(&$0) }) {
                machine async throws in
                try await machine.write("here", to: "a")
                let row = try await machine.item("a").id
                makeMissing("a", on: machine)
                try await test(machine, row)
            }
        }

        @Test("PATH-2: a change waits for a comparison of all directories that began later, however often it is tried")
        func waitsForAComparison() async throws {
            try await runWithMissing { machine, row async throws in
                for _ in 0..<2 {
                    await machine.engine.runAlone(.modification(row: row))
                    #expect(try await machine.item("a").identifier == "a")
                }
                // Another client had moved it, and the comparison finds it.
                machine.provider.faults.clear()
                machine.provider.change { $0.move("a", to: "e") }
                try await machine.settle()
                #expect(machine.provider.tree.identifier(at: "e/a") == "a")
                #expect(machine.provider.tree.entries()["e/a"]?.content == "here")
                #expect(machine.provider.tree.identifier(at: "a") == nil)
            }
        }

        @Test("PATH-2: a comparison that fails does not show that an item is gone; one that ends well does")
        func waitsForOneThatEndsWell() async throws {
            try await runWithMissing { machine, row async throws in
                await machine.engine.runAlone(.modification(row: row))
                machine.provider.faults.fail(.enumerate, of: "d", with: FileProviderError(.timedOut))
                await #expect(throws: FileProviderError.self) { try await machine.ingest() }
                await machine.engine.runAlone(.modification(row: row))
                #expect(try await machine.item("a").identifier == "a")
                try await machine.ingest()
                await machine.engine.runAlone(.modification(row: row))
                #expect(try await machine.item("a").identifier == nil)
            }
        }

        @Test(
            "PATH-2: a round that fails does not make a second item of one that was changed here and moved by another client",
            arguments: [false, true], [false, true])
        func staysInARoundThatFails(isInDirectory: Bool, hasChangeFeed: Bool) async throws {
            let written = isInDirectory ? "d/x" : "a"
            let moved: ItemIdentifier = isInDirectory ? "d" : "a"
            let directory: ItemIdentifier = isInDirectory ? "e" : "d"
            try await Machine.run(options: .with(\.changeFeed, hasChangeFeed), fill: { ScriptRun.fill(&$0) }) {
                machine async throws in
                try await machine.write("here", to: written)
                let identifier = try await machine.item(written).identifier
                makeMissing(moved, on: machine)
                machine.provider.changeSilently {
                    $0.move(moved, to: directory)
                    $0.delete("b")
                    // A feed tells nothing of it.
                    $0.expireAnchors()
                }
                machine.provider.faults.fail(.enumerate, of: directory, with: FileProviderError(.timedOut), times: nil)
                await #expect(throws: FileProviderError.self) { try await machine.ingest() }
                #expect(identifier != nil)
                #expect(try await machine.item(written).identifier == identifier)
                // What was not changed here is removed nevertheless.
                #expect(await !machine.exists("b"))
                machine.provider.faults.clear()
                try await machine.settle()
                #expect(machine.provider.tree.entries()["\(directory.rawValue)/\(written)"]?.content == "here")
                #expect(machine.provider.tree.identifier(at: moved.rawValue) == nil)
            }
        }

        @Test(
            "PATH-2: a comparison that leaves an item out, because its change is being sent, does not show that it is gone"
        )
        func isLeftOut() async throws {
            try await runWithMissing { machine, row async throws in
                await machine.engine.runAlone(.modification(row: row))
                let gate = machine.provider.faults.hold(.modify, of: "a")
                machine.provider.changeSilently { $0.move("a", to: "e") }
                let attempt = Task { await machine.engine.runAlone(.modification(row: row)) }
                #expect(await eventually { gate.waiting == 1 })
                try await machine.ingest()
                gate.open()
                await attempt.value
                #expect(try await machine.item("a").identifier == "a")
                machine.provider.faults.clear()
                try await machine.settle()
                #expect(machine.provider.tree.entries()["e/a"]?.content == "here")
                #expect(machine.provider.tree.identifier(at: "a") == nil)
            }
        }
    }

    /// Since when items are missing.
    @Suite struct MissedItemTimeTests {
        @Test("PATH-2: an item that was not missed for a while is missed anew") func anew() {
            let (missed, start) = (MissedItems(), ContinuousClock.now)
            #expect(missed.note("a", at: start).isNew)
            // The pause of a change that is refused is an hour at most.
            for time in [600, 600 + 3600] {
                let again = missed.note("a", at: start + .seconds(time))
                #expect(again.since == start && !again.isNew)
            }
            #expect(missed.note("a", at: start + .seconds(9000)).isNew)
            missed.forget("a")
            #expect(missed.note("a", at: start + .seconds(9001)).isNew)
        }

        @Test("PATH-2: an item counts as gone after a comparison that ended well, and after a day without one")
        func dayWithoutAComparison() {
            let (missed, start) = (MissedItems(), ContinuousClock.now)
            for hour in 0...24 {
                let now = start + .seconds(3600 * hour)
                let since = missed.note("a", at: now).since
                #expect(since == start)
                let countsAsGone = MissedItems.isGone(
                    missedSince: since, lastGoodRoundBegan: nil, lastLeftOut: nil, at: now)
                #expect(countsAsGone == (hour == 24))
            }
            func isGone(roundBegan begun: Int, leftOut: Int? = nil) -> Bool {
                MissedItems.isGone(
                    missedSince: start, lastGoodRoundBegan: start + .seconds(begun),
                    lastLeftOut: leftOut.map { start + .seconds($0) }, at: start + .seconds(600))
            }
            #expect(!isGone(roundBegan: -1))
            #expect(isGone(roundBegan: 1))
            #expect(!isGone(roundBegan: 1, leftOut: 2))
            #expect(isGone(roundBegan: 3, leftOut: 2))
        }
    }
}
