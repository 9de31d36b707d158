import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Offering items again after their identifiers were given up.
    @Suite struct ReimportTests {
        private func creates(_ machine: Machine) -> [ProviderCall] {
            machine.provider.log.calls.filter { $0.kind == .create }
        }

        @Test("R1 after the identifiers were lost, every item has the remote's new one, and its inode and content")
        func everyItemHasItsNewIdentifier() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("a")
                try await machine.materialize("d/x")
                var before: [String: InodeRecord] = [:]
                for path in ["a", "b", "d", "d/x", "d/y", "e", "e/f", "e/f/deep"] {
                    before[path] = try await machine.record(path)
                }
                machine.provider.log.clear()
                try await machine.reimport()
                for (path, inode) in before {
                    let item = try await machine.item(path)
                    #expect(item.inode.number == inode.number, "\(path)")
                    #expect(item.identifier == machine.provider.tree.identifier(at: path), "\(path)")
                    #expect(item.inode.changedAt == inode.changedAt, "\(path)")
                }
                #expect(try await machine.record("a").content == .materialized)
            }
        }

        @Test(
            "R2 each item below is offered once with mayAlreadyExist and all its fields, a parent before its children")
        func eachItemIsOffered() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("a")
                machine.provider.log.clear()
                try await machine.loseIdentifiers()
                try await machine.send()
                let calls = creates(machine)
                #expect(calls.compactMap(\.name).sorted() == ["a", "b", "d", "deep", "e", "f", "x", "y"])
                for call in calls {
                    guard case .create(let options) = call.options else {
                        Issue.record("\(call.name ?? "") was offered without options")
                        continue
                    }
                    #expect(options.contains(.mayAlreadyExist), "\(call.name ?? "")")
                    let fields = try #require(call.fields)
                    #expect(fields.isSuperset(of: [.filename, .parentItemIdentifier, .contentModificationDate]))
                    #expect((call.size != nil) == (call.name == "a"), "\(call.name ?? ""): only what is here is sent")
                }
                let order = calls.compactMap(\.name)
                let place = { (name: String) in order.firstIndex(of: name) ?? -1 }
                #expect(place("d") < place("x") && place("e") < place("f") && place("f") < place("deep"))
                #expect(machine.provider.log.calls.allSatisfy { $0.kind != .fetch })
            }
        }

        @Test("CHECK-8: items that wait to be recognized are no differences from the remote")
        func nothingIsComparedMeanwhile() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.loseIdentifiers()
                await #expect {
                    _ = try await machine.engine.compareWithRemote(comparesBytes: false, isRepairing: false)
                } throws: { error in
                    (error as? FileProviderError)?.message.contains("a reimport is under way") == true
                }
                try await machine.expectReimported()
                let report = try await machine.engine.compareWithRemote(comparesBytes: false, isRepairing: false)
                #expect(report.findings == [] && report.directories > 0)
            }
        }

        @Test("R3 it is accepted at once, and importDidFinish comes once, when all is offered")
        func theEndIsTold() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                machine.provider.log.clear()
                try await machine.loseIdentifiers()
                #expect(creates(machine).isEmpty)
                let began = try #require(try machine.replica.database.reimports.progress())
                #expect(began.total == 8 && began.done == 0)
                await machine.engine.continueReimport()
                #expect(machine.provider.log.count(of: .importDidFinish) == 0)
                let first = try #require(try await machine.operations().first)
                await machine.engine.runAlone(first)
                #expect(try machine.replica.database.reimports.progress()?.done == 1)
                await machine.engine.continueReimport()
                #expect(machine.provider.log.count(of: .importDidFinish) == 0)
                try await machine.expectReimported()
                await machine.engine.continueReimport()
                #expect(machine.provider.log.count(of: .importDidFinish) == 1)
            }
        }

        @Test("R4 the item and all below it are imported again, and nothing beside it has to be")
        func theSubtreeIsImported() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                machine.provider.log.clear()
                try await machine.engine.reimport(below: machine.number("e"))
                try await machine.expectReimported()
                #expect(creates(machine).compactMap(\.name).sorted() == ["deep", "e", "f"])
            }
        }

        @Test("R5 what is not shown here, or waits to be reimported already, is noSuchItem")
        func reimportOfUnknownItemIsRefused() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                func code(_ number: InodeNumber) async -> FileProviderError.Code? {
                    await failureCode { try await machine.engine.reimport(below: number) }
                }
                #expect(await code(InodeNumber(rawValue: 4711)) == .noSuchItem)
                let directory = try await machine.number("d")
                #expect(await code(directory) == nil)
                #expect(await code(directory) == .noSuchItem)
                try await machine.expectReimported()
                #expect(await code(directory) == nil)
                try await machine.expectReimported()
            }
        }

        /// Evicts directories of the root, and keeps the walk that has listed the remote from listing any ahead.
        private func evict(_ names: [String], _ machine: Machine) async throws {
            await machine.engine.directoryPrefetcher.leaveAlone(.root)
            for name in names {
                let report = try await machine.engine.evict(machine.number(name), isStrict: true)
                #expect(report.refusals.isEmpty)
                #expect(try await machine.record(name).content == .dataless)
            }
        }

        @Test("R5 what a directory contained that was evicted is noSuchItem")
        func reimportBelowAnEvictedDirectoryIsRefused() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                let (file, directory) = (try await machine.number("d/x"), try await machine.number("e/f"))
                try await evict(["d", "e"], machine)
                for number in [file, directory] {
                    let code = await failureCode { try await machine.engine.reimport(below: number) }
                    #expect(code == .noSuchItem)
                }
                // Listed again it is on the disk.
                #expect(try await machine.number("d/x") == file)
                #expect(await failureCode { try await machine.engine.reimport(below: file) } == nil)
                try await machine.expectReimported()
            }
        }

        @Test("REIMPORT-3: what was deleted on the remote and remembered of an evicted directory does not come back")
        func deletedAfterEviction() async throws {
            let fill: (inout RemoteTree) -> Void = { tree in
                Machine.fillForReimport(&tree)
                for name in ["link", "kept link", "replaced"] {
                    tree.addSymbolicLink(name, to: "x", in: "d", identifier: ItemIdentifier(name))
                }
                tree.addFile("empty", in: "d", content: RemoteContent(""), identifier: "empty")
            }
            try await Machine.run(fill: fill) { machine in
                // Not known here yet.
                machine.provider.changeSilently { tree in
                    for name in ["link", "empty", "y", "replaced"] as [ItemIdentifier] { tree.delete(name) }
                    tree.addFile("replaced", in: "d", content: RemoteContent("file"), identifier: "replacement")
                }
                try await evict(["d"], machine)
                try await machine.engine.reimport(below: .root)
                await machine.engine.continueReimport()
                try await machine.send()
                #expect(machine.provider.tree.identifier(at: "d/link") == nil)
                #expect(machine.provider.tree.identifier(at: "d/empty") == nil)
                try await machine.drain()
                await machine.engine.continueReimport()
                let directory = try await machine.number("d")
                let names = ["kept link", "replaced", "x"]
                #expect(try await eventually { try await machine.names(in: directory).sorted() == names })
                #expect(try await machine.read("d/replaced") == "file")
                let children = machine.provider.tree.items(in: "d").map(\.filename)
                #expect(children.sorted() == names)
                #expect(machine.provider.tree.identifier(at: "d/link") == nil)
                #expect(machine.provider.tree.identifier(at: "d/empty") == nil)
            }
        }

        @Test(
            "REIMPORT-3: what was made in a directory without a listing is made again, with the directory where that is lost",
            arguments: ["d", "late"], [false, true])
        func madeWithoutAListing(name: String, isDirectoryLost: Bool) async throws {
            let fill: (inout RemoteTree) -> Void = { tree in
                Machine.fillForReimport(&tree)
                tree.addSymbolicLink("old", to: "x", in: "d", identifier: "old")
            }
            try await Machine.run(fill: fill) { machine in
                // It comes by news, and is not listed.
                machine.provider.change { _ = $0.addDirectory("late", identifier: "late") }
                try await machine.ingest()
                machine.provider.changeSilently { $0.delete("old") }
                try await evict(["d"], machine)
                let directory = try await machine.number(name)
                for (made, kind) in [("link", InodeKind.symbolicLink), ("empty", .file)] {
                    let new = NewInode(kind: kind, permissions: 0o777, linkTarget: kind == .symbolicLink ? "x" : nil)
                    try await machine.change {
                        try $0.names.create(
                            made, in: directory, new, caller: Machine.caller, usualGroup: 0, isListed: false)
                    }
                }
                try await machine.send()
                let paths = ["\(name)/link", "\(name)/empty"]
                let sent = paths.compactMap { machine.provider.tree.identifier(at: $0) }
                #expect(sent.count == 2)
                machine.provider.changeSilently { tree in
                    for identifier in sent { tree.delete(identifier) }
                    if isDirectoryLost { tree.delete(ItemIdentifier(name)) }
                }
                try await machine.engine.reimport(below: .root)
                // What is in a listed directory is made again in any case.
                #expect(try machine.replica.database.inode(directory)?.content == .dataless)
                await machine.engine.continueReimport()
                try await machine.send()
                for path in paths { #expect(machine.provider.tree.identifier(at: path) != nil, "\(path)") }
                #expect(machine.provider.tree.identifier(at: "d/old") == nil)
                try await machine.drain()
                await machine.engine.continueReimport()
                for path in paths { #expect(await machine.exists(path), "\(path)") }
                #expect(await !machine.exists("d/old"))
            }
        }

        @Test("R6 an expired anchor keeps the identifiers: nothing is offered again")
        func anExpiredAnchorIsNoReimport() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                var before: [String: InodeRecord] = [:]
                for path in ["a", "d", "d/x", "e/f/deep"] { before[path] = try await machine.record(path) }
                // One file is dirty and one is new: these are sent, and nothing else.
                try await machine.write("edited", to: "d/x")
                try await machine.write("new", to: "n")
                machine.provider.log.clear()
                machine.provider.change { $0.expireAnchors() }
                try await machine.drain()
                #expect(creates(machine).map(\.name) == ["n"])
                for case .create(let options) in creates(machine).compactMap(\.options) {
                    #expect(!options.contains(.mayAlreadyExist))
                }
                // The root has another date: a file was made in it.
                let modified = machine.provider.log.calls.filter { $0.kind == .modify }.map(\.identifier)
                #expect(modified.filter { $0 != .rootContainer } == ["x"])
                #expect(machine.provider.tree.entries()["d/x"]?.content == "edited")
                #expect(try machine.replica.database.reimports.requests().isEmpty)
                #expect(machine.provider.log.count(of: .importDidFinish) == 0)
                for (path, inode) in before {
                    let item = try await machine.item(path)
                    #expect(item.identifier == machine.provider.tree.identifier(at: path), "\(path)")
                    #expect(item.inode.number == inode.number, "\(path)")
                }
                #expect(try await machine.item("d/x").identifier == "x")
            }
        }

        @Test("48 a pin survives a reimport")
        func pinsSurvive() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                let number = try await machine.number("d")
                _ = try machine.replica.setPolicy(.keepDownloaded, of: number)
                try await machine.reimport()
                let item = try #require(try machine.replica.database.item(ofInode: number))
                #expect(item.policy == .keepDownloaded)
            }
        }

        @Test func waitingItemsAreNeitherEvictedNorSynced() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("a")
                let number = try await machine.number("a")
                try await machine.loseIdentifiers()
                let report = try await machine.engine.evict(number, isStrict: true)
                #expect(report.refusals.map(\.refusal) == [.unsyncedEdits])
                let waiting = try await machine.item("a")
                #expect(try machine.replica.database.syncState(of: waiting) == .pending)
                try await machine.expectReimported()
                let done = try await machine.item("a")
                #expect(try machine.replica.database.syncState(of: done) == .synced)
            }
        }

        @Test func aReaderComesFirst() async throws {
            try await EngineFixture.run(fill: Machine.fillForReimport, listing: "d") { fixture async throws in
                let number = try fixture.number("x")
                let version = try fixture.inode("x").contentVersion
                fixture.provider.change { $0.loseIdentifiers() }
                try await fixture.engine.reimport(below: .root)
                fixture.engine.start()
                #expect(try await fixture.read(number, version: version, 0..<7) == Array("first x".utf8))
            }
        }

        @Test func symbolicLinksAreKnownByWhereTheyPoint() async throws {
            let fill: (inout RemoteTree) -> Void = { tree in
                tree.addSymbolicLink("same", to: "a", identifier: "same")
                tree.addSymbolicLink("other", to: "a", identifier: "other")
            }
            try await Machine.run(fill: fill) { machine in
                let number = try await machine.number("other")
                machine.provider.change { tree in tree.edit("other") { $0.symlinkTargetPath = "elsewhere" } }
                try await machine.loseIdentifiers()
                try await machine.drain()
                #expect(try machine.replica.database.linkTarget(of: number) == "elsewhere")
                #expect(try await machine.names(in: .root).sorted() == ["other", "same"])
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(machine.provider.tree.count == 2)
            }
        }

        @Test func aRemoteThatIsAwayHoldsIt() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                machine.provider.faults.add(
                    .fail(FileProviderError(.serverUnreachable)), to: .create)
                try await machine.loseIdentifiers()
                try await machine.send(passes: 1)
                #expect(try machine.replica.database.reimports.progress()?.done == 0)
                machine.provider.faults.clear()
                machine.engine.connection.reset()
                try await machine.expectReimported()
            }
        }

        @Test func refusedOfferStaysPending() async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("a")
                let placeholder = "a"
                try await machine.loseIdentifiers()
                let row = try await machine.item(placeholder).placeholder
                machine.provider.faults.add(.refuse(reason: "no"), to: .create, of: row)
                await machine.engine.continueReimport()
                try await machine.send()
                await machine.engine.continueReimport()
                // All was offered: that is the end of it, and what could not be taken is a change as others are.
                #expect(machine.provider.log.count(of: .importDidFinish) == 1)
                #expect(try machine.replica.database.pendingCounts().items == 1)
                #expect(try await machine.read("a") == "first a")
                machine.provider.faults.clear()
                try await machine.engine.retry()
                try await machine.expectReimported()
            }
        }

        @Test func aReadOnlyRemoteIsOfferedNothing() async throws {
            try await EngineFixture.run(options: .with(\.writing, false), fill: Machine.fillForReimport) { fixture in
                let failure = await failure { try await fixture.engine.reimport(below: .root) }
                #expect(failure?.code == .featureUnsupported)
            }
        }

        @Test func emptyFilesHaveNoContentFile() async throws {
            try await Machine.run(fill: { $0.addFile("empty", content: RemoteContent("")) }) { machine in
                try await machine.reimport()
                #expect(try await machine.item("empty").identifier == machine.provider.tree.identifier(at: "empty"))
            }
        }
    }
}
