import FileProvider
import FileProviderTesting
import Logging
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Sync

/// What is held because the root of the remote is empty, as that of a disk that is not mounted.
extension EngineTests.DeletionGuardTests {
    /// A remote that holds a directory of 150 files, and nothing else.
    static func runOnDirectory(
        changeFeed: Bool = false, _ test: (Machine) async throws -> Void
    ) async throws {
        try await Machine.run(options: .with(\.changeFeed, changeFeed)) { tree in
            tree.addDirectory("doc", identifier: "doc")
            for number in 0..<150 { tree.addFile("f\(number)", in: "doc", content: RemoteContent("\(number)")) }
        } _: { machine async throws in
            try await test(machine)
        }
    }

    @Test(
        "CHANGE-4: while nearly everything is missing on the remote, nothing is sent; it arrives once that is back",
        arguments: [true, false])
    func disksThatAreNotMounted(isNoticed: Bool) async throws {
        try await Self.runOnDirectory { machine async throws in
            let full = machine.provider.tree
            machine.provider.changeSilently { $0.delete("doc") }
            if isNoticed { try await machine.ingest() }
            try await machine.write("changed", to: "doc/f7")
            try await machine.write("new", to: "doc/new")
            if isNoticed { try await machine.remove("doc/f8") }
            try await machine.send()
            #expect(machine.provider.tree.entries().isEmpty)
            #expect(machine.engine.warnings.texts.contains { $0.contains("no change is sent") })
            // A caller that would wait for ever is told.
            let number = try await machine.number("doc/new")
            await #expect { try await machine.engine.send(number) } throws: {
                ($0 as? FileProviderError)?.message.contains("no change is sent") == true
            }
            let machine = try machine.crash()
            try await machine.write("new, too", to: "top")
            try await machine.send()
            #expect(machine.provider.tree.entries().isEmpty)
            machine.provider.changeSilently { $0 = full }
            try await machine.ingest()
            #expect(machine.engine.warnings.texts == [])
            try await machine.engine.retry()
            try await machine.drain()
            #expect(machine.provider.tree.entries()["doc/f7"]?.content == "changed")
            #expect(machine.provider.tree.entries()["doc/new"]?.content == "new")
            #expect(machine.provider.tree.entries()["top"]?.content == "new, too")
            #expect((machine.provider.tree.entries()["doc/f8"] == nil) == isNoticed)
            #expect(try await machine.operations().isEmpty)
        }
    }

    @Test(
        "CHANGE-4: while the root is empty and a feed reports nothing, the root is asked seldom, and sending goes on after it"
    )
    func emptyRootOfAFeed() async throws {
        try await Machine.run(isInteractive: false) { tree in
            tree.addDirectory("doc", identifier: "doc")
            for number in 0..<150 { tree.addFile("f\(number)", in: "doc", content: RemoteContent("\(number)")) }
        } _: { machine async throws in
            // The round that this begins with is over.
            #expect(await machine.provider.log.waits(.changes))
            try await machine.engine.refresh()
            let full = machine.provider.tree
            machine.provider.changeSilently { $0.delete("doc") }
            // As if that had been reported: the feed has nothing more to say.
            let enumerator = try machine.provider.enumerator(for: .workingSet, request: machine.request)
            let anchor = try await enumerator.currentSyncAnchor()
            enumerator.invalidate()
            try machine.replica.database.set(.syncAnchor, to: anchor?.rawValue)
            try await machine.write("new", to: "new")
            #expect(await eventually(within: .seconds(20)) { machine.engine.context.holdsChanges })
            machine.provider.log.clear()
            let end = ContinuousClock.now + .seconds(2)
            var isSteady = true
            while .now < end {
                if !machine.engine.context.holdsChanges { isSteady = false }
                try await Task.sleep(for: .milliseconds(5))
            }
            #expect(isSteady)
            let count = machine.provider.log.count(of: .enumerate, .rootContainer)
            #expect(count < 6, "\(count)")
            machine.provider.changeSilently { $0 = full }
            #expect(
                await eventually(within: .seconds(30)) {
                    machine.provider.tree.entries()["new"]?.content == "new"
                })
            #expect(await eventually { machine.engine.warnings.texts.isEmpty })
        }
    }

    @Test("CHANGE-4: a round that finds nothing missing does not end what is held because of the root")
    func heldByTheRoot() {
        let (guardian, warnings) = make()
        #expect(guardian.holdForRoot(gone: 200, of: 201))
        guardian.beginRound()
        guardian.endRound()
        #expect(guardian.holdsChanges && warnings.texts.count == 1)
        guardian.rootIsThere()
        #expect(!guardian.holdsRemovals && warnings.texts.isEmpty)
        // Leave lasts until the root is there again.
        #expect(guardian.holdForRoot(gone: 200, of: 201))
        guardian.release()
        #expect(!guardian.holdsChanges)
        guardian.beginRound()
        guardian.endRound()
        #expect(!guardian.holdForRoot(gone: 200, of: 201))
        guardian.rootIsThere()
        #expect(guardian.holdForRoot(gone: 200, of: 201))
    }

    @Test("CHANGE-4: leave that is given while the root holds holds for the next round, too")
    func leaveWhileTheRootHolds() {
        let (guardian, _) = make()
        #expect(guardian.holdForRoot(gone: 200, of: 201))
        guardian.release()
        guardian.beginRound()
        #expect(guardian.admits(gone: 200, of: 201))
        guardian.endRound()
        guardian.beginRound()
        #expect(!guardian.admits(gone: 200, of: 201))
    }

    @Test("CHANGE-4: what is held because of the root is held after a restart, until the root is there")
    func heldByTheRootOverARestart() throws {
        let kept = Mutex<String?>(nil)
        let guardian = DeletionGuard(domainName: "NAME", warnings: Warnings(logger: .init(label: "test"))) { hold in
            kept.withLock { $0 = hold?.text }
        }
        #expect(guardian.holdForRoot(gone: 200, of: 201))
        let hold = try #require(kept.withLock { $0 }.flatMap(DeletionGuard.Hold.init))
        let warnings = Warnings(logger: .init(label: "test"))
        let next = DeletionGuard(domainName: "NAME", warnings: warnings, hold: hold)
        #expect(next.isHeldByRoot)
        next.beginRound()
        #expect(next.holdForRoot(gone: 200, of: 201))
        #expect(warnings.texts.count == 1)
        next.endRound()
        #expect(next.holdsChanges)
        next.beginRound()
        next.endRound()
        #expect(next.holdsChanges && warnings.texts.count == 1)
        next.rootIsThere()
        #expect(!next.holdsChanges && warnings.texts.isEmpty)
    }

    @Test(
        "CHANGE-4: a deletion of what is missing because the root is empty is held, and made when the root is there"
    )
    func deletionBelowAnEmptyRoot() async throws {
        try await Self.runOnDirectory(changeFeed: true) { machine async throws in
            let full = machine.provider.tree
            let identifier = try #require(full.identifier(at: "doc/f8"))
            machine.provider.changeSilently { $0.delete("doc") }
            machine.provider.faults.fail(
                .delete, of: identifier, with: FileProviderError.noSuchItem(identifier), times: nil)
            try await machine.remove("doc/f8")
            try await machine.send()
            #expect(machine.engine.context.holdsChanges)
            machine.provider.faults.clear()
            machine.provider.changeSilently { $0 = full }
            try await machine.drain()
            #expect(machine.provider.tree.identifier(at: "doc/f8") == nil)
            #expect(machine.provider.tree.identifier(at: "doc/f9") != nil)
        }
    }
}
