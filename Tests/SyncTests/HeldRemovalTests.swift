import FileProvider
import FileProviderTesting
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// What a change feed reports while removals are held.
    @Suite struct HeldRemovalTests {
        @Test(
            "CHANGE-4: while removals of a feed are held, other changes arrive, nothing is asked for twice, and no removal is forgotten"
        )
        func otherChanges() async throws {
            try await Machine.run(fill: { $0.addFullDirectories() }) { machine async throws in
                try await machine.loseTwoDirectories()
                #expect(machine.engine.heldRemovals != nil)
                let anchor = try machine.replica.database.bytes(of: .syncAnchor)
                machine.provider.change { $0.addFile("late", content: RemoteContent("late"), identifier: "late") }
                try await machine.ingest()
                #expect(await machine.exists("late"))
                #expect(try machine.replica.database.bytes(of: .syncAnchor) != anchor)
                let restarted = try machine.crash()
                try await restarted.ingest()
                #expect(restarted.engine.heldRemovals != nil)
                #expect(await restarted.exists("one/one-7"))
                // One of them is back.
                restarted.provider.change { $0.addDirectory("one", identifier: "one") }
                try await restarted.ingest()
                try await restarted.engine.retry()
                try await restarted.ingest()
                #expect(restarted.engine.heldRemovals == nil)
                #expect(try await restarted.names(in: restarted.number("one")).isEmpty)
                #expect(await !restarted.exists("two"))
                #expect(await restarted.exists("late"))
                #expect(try restarted.replica.database.heldRemovals().isEmpty)
            }
        }

        @Test("CHANGE-4: a removal stays held although a change of the item fails while a round runs")
        func failedChange() async throws {
            try await Machine.run(fill: { $0.addFullDirectories() }) { machine async throws in
                try await machine.loseTwoDirectories()
                let held = try machine.replica.database.heldRemovals()
                try await machine.rename("two/two-7", to: "two/mine")
                let item = try await machine.item("two/mine")
                #expect(try held.contains(#require(item.identifier)))
                machine.provider.faults.fail(.modify, with: FileProviderError(.insufficientQuota), times: nil)
                let gate = machine.provider.faults.hold(.changes)
                let round = Task { try await machine.ingest() }
                #expect(await eventually { gate.waiting == 1 })
                await machine.engine.runAlone(.modification(row: item.id))
                #expect(!machine.provider.log.calls(of: .modify).isEmpty)
                gate.open()
                try await round.value
                #expect(machine.engine.heldRemovals != nil)
                #expect(try machine.replica.database.heldRemovals() == held)
            }
        }

        @Test(
            "CHANGE-4: a report of changes that takes longer than a round goes on while removals are held",
            .timeLimit(.minutes(1)))
        func longReport() async throws {
            try await EngineFixture.run(
                options: .with(\.pageSize, 120),
                fill: { tree in
                    for number in 0..<200 {
                        tree.addFile(
                            "\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
                    }
                }, listing: "/"
            ) { fixture in
                try await fixture.engine.refresh()
                await fixture.engine.feed.endReports(after: .zero)
                fixture.provider.change { tree in
                    for number in 0..<150 { tree.delete(ItemIdentifier("f\(number)")) }
                    tree.addFile("late", content: RemoteContent("x"), identifier: "late")
                }
                try await fixture.engine.refresh()
                #expect(try await eventually { try fixture.names().contains("late") })
                #expect(fixture.engine.heldRemovals != nil)
                #expect(try fixture.names().count == 201)
                try await fixture.engine.retry()
                try await fixture.engine.refresh()
                #expect(try await eventually { try fixture.names().count == 51 })
            }
        }
    }
}
