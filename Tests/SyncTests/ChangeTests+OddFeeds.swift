import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

/// Feeds that do not end, or say what cannot be.
extension EngineTests.ChangeTests {
    @Test func theSameAnchorWithMoreToComeIsReportedAndNotFollowed() async throws {
        try await run { fixture in
            fixture.provider.faults.add(.sameAnchorMoreComing, to: .changes)
            fixture.provider.change {
                $0.addFile("new", content: RemoteContent("x"))
                $0.delete("a")
            }
            let failure = await failure { try await fixture.engine.refresh() }
            #expect(failure?.code == .malformedResponse)
            #expect(fixture.provider.log.count(of: .changes) == 1)
            #expect(fixture.hasWarning("the changes after a sync anchor"))
            #expect(try fixture.names() == ["b", "d", "unlisted", "new"])
            fixture.provider.faults.clear()
            try await fixture.engine.refresh()
            #expect(fixture.engine.warnings.texts == [])
        }
    }

    @Test("NAME-8: a feed that says for ever that more is coming, and reports nothing, is left")
    func endlessChangesAreReportedAndNotFollowed() async throws {
        try await run { fixture in
            fixture.provider.faults.add(.endlessChanges, to: .changes)
            let failure = await failure { try await fixture.engine.refresh() }
            #expect(failure?.code == .malformedResponse)
            #expect(fixture.provider.log.count(of: .changes) < 1100)
            #expect(fixture.hasWarning("does not end"))
            fixture.provider.faults.clear()
            fixture.provider.change { $0.addFile("new", content: RemoteContent("x")) }
            try await fixture.engine.refresh()
            #expect(try fixture.names().contains("new"))
            #expect(fixture.engine.warnings.texts == [])
        }
    }

    @Test("NAME-8: a feed of ever new changes holds nothing up", .timeLimit(.minutes(1)))
    func everNewChanges() async throws {
        try await Machine.run(isInteractive: false, fill: tree) { machine async throws in
            machine.provider.faults.add(.everNewChanges, to: .changes)
            machine.engine.signal()
            let database = machine.replica.database
            let anchor = try database.bytes(of: .syncAnchor)
            #expect(
                try await eventually { try database.entries(of: .root, after: 0, limit: 100).count > 20 })
            #expect(try database.bytes(of: .syncAnchor) != anchor)
            #expect(try await machine.read("d/inner") == "inner")
            try await machine.write("text", to: "mine")
            #expect(
                await eventually(within: .seconds(10)) {
                    machine.provider.tree.entries()["mine"]?.content == "text"
                })
            // Another round is asked for, and is not begun after the end.
            let waiting = Task { try await machine.engine.refresh() }
            await machine.engine.feed.stop()
            #expect(await failure { try await waiting.value }?.code == .domainDisabled)
        }
    }

    @Test(
        "NAME-8: what a feed without end reports as deleted is removed, and the next round goes on from there",
        .timeLimit(.minutes(1)))
    func deletionInEverNewChanges() async throws {
        try await run { fixture in
            await fixture.engine.feed.endReports(after: .zero)
            fixture.provider.faults.add(.everNewChanges, to: .changes)
            fixture.provider.changeSilently { $0.delete("a") }
            try await fixture.engine.refresh()
            #expect(try !fixture.names().contains("a"))
            let anchor = try fixture.replica.database.bytes(of: .syncAnchor)
            #expect(try await eventually { try fixture.replica.database.bytes(of: .syncAnchor) != anchor })
            fixture.provider.faults.clear()
            try await fixture.engine.refresh()
            #expect(fixture.engine.warnings.texts == [])
        }
    }

    @Test("NAME-6: no change makes an item of an identifier of the system, or takes one out of its directory")
    func identifiersOfTheSystemAreNoItems() async throws {
        try await run { fixture in
            fixture.provider.change {
                $0.addDirectory("trash", identifier: .trashContainer)
                $0.addDirectory("set", identifier: .workingSet)
                $0.edit("a") { $0.parentItemIdentifier = .workingSet }
                $0.addFile("new", content: RemoteContent("x"))
            }
            try await fixture.engine.refresh()
            #expect(try fixture.names() == ["a", "b", "d", "unlisted", "new"])
            #expect(fixture.engine.warnings.texts.count == 3, "\(fixture.engine.warnings.texts)")
        }
    }

    @Test func anAnchorOfFarTooManyBytesIsReported() async throws {
        try await run { fixture in
            let long = SyncAnchor(rawValue: [UInt8](repeating: 1, count: 501))
            fixture.provider.faults.add(.anchor(long), to: .changes, times: 1)
            fixture.provider.change { $0.addFile("new", content: RemoteContent("x")) }
            try await fixture.engine.refresh()
            #expect(fixture.hasWarning("a sync anchor of 501 bytes"))
            #expect(try fixture.names().contains("new"))
        }
    }
}

extension ChangeFeed {
    /// Ends each round after this time; zero is one batch of changes.
    func endReports(after time: Duration) { longestReport = time }
}
