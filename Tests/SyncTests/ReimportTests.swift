import FileProvider
import FileProviderTesting
import Foundation
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Identifiers that are not to be trusted any more.
    @Suite struct ReimportTests {
        private static func fill(_ tree: inout RemoteTree) {
            ScriptRun.fill(&tree)
            tree.addFile("deep", in: "f", content: RemoteContent("first deep"), identifier: "deep")
        }

        private func expectSettled(_ machine: Machine, sourceLocation: SourceLocation = #_sourceLocation) async throws {
            await machine.engine.continueReimport()
            try await machine.drain()
            await machine.engine.continueReimport()
            let complaints = try await machine.complaints()
            #expect(complaints == [], sourceLocation: sourceLocation)
            #expect(try machine.replica.database.reimports.requests().isEmpty, sourceLocation: sourceLocation)
        }

        /// The remote loses its identifiers, and the machine is told so.
        private func lose(_ machine: Machine, below path: String = "") async throws {
            machine.provider.change { $0.loseIdentifiers() }
            try await machine.engine.reimport(below: machine.number(path))
        }

        /// Brings a file here, and returns when the replica knows.
        private func fetch(_ path: String, _ machine: Machine) async throws {
            try await machine.engine.materialize(machine.number(path), request: machine.request)
        }

        private func creates(_ machine: Machine) -> [ProviderCall] {
            machine.provider.log.calls.filter { $0.kind == .create }
        }

        @Test("R1 after the identifiers were lost, every item has the remote's new one, and its inode and content")
        func everyItemHasItsNewIdentifier() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("a", machine)
                try await fetch("d/x", machine)
                var before: [String: InodeRecord] = [:]
                for path in ["a", "b", "d", "d/x", "d/y", "e", "e/f", "e/f/deep"] {
                    before[path] = try await machine.record(path)
                }
                machine.provider.log.clear()
                try await lose(machine)
                try await expectSettled(machine)
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
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("a", machine)
                machine.provider.log.clear()
                try await lose(machine)
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

        @Test("R3 it is accepted at once, and importDidFinish comes once, when all is offered")
        func theEndIsTold() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                machine.provider.log.clear()
                try await lose(machine)
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
                try await expectSettled(machine)
                await machine.engine.continueReimport()
                #expect(machine.provider.log.count(of: .importDidFinish) == 1)
            }
        }

        @Test("R4 the item and all below it are imported again, and nothing beside it has to be")
        func theSubtreeIsImported() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                machine.provider.log.clear()
                try await machine.engine.reimport(below: machine.number("e"))
                try await expectSettled(machine)
                #expect(creates(machine).compactMap(\.name).sorted() == ["deep", "e", "f"])
            }
        }

        @Test("R5 what is not shown here, or waits to be reimported already, is noSuchItem")
        func reimportOfUnknownItemIsRefused() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                func code(_ number: InodeNumber) async -> FileProviderError.Code? {
                    do {
                        try await machine.engine.reimport(below: number)
                        return nil
                    } catch {
                        return (error as? FileProviderError)?.code
                    }
                }
                #expect(await code(InodeNumber(rawValue: 4711)) == .noSuchItem)
                let directory = try await machine.number("d")
                #expect(await code(directory) == nil)
                #expect(await code(directory) == .noSuchItem)
                try await expectSettled(machine)
                #expect(await code(directory) == nil)
                try await expectSettled(machine)
            }
        }

        @Test("R6 an expired anchor keeps the identifiers: nothing is offered again")
        func anExpiredAnchorIsNoReimport() async throws {
            try await Machine.run(fill: Self.fill) { machine in
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

        @Test func localChangesArriveOnceAfterReimport() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await machine.write("here", to: "a")
                try await machine.write("new", to: "d/new")
                try await machine.rename("d/y", to: "e/z")
                try await machine.setPermissions(of: "b", to: 0o600)
                try await machine.remove("d/x")
                try await lose(machine)
                try await expectSettled(machine)
                let remote = machine.provider.tree.entries()
                #expect(remote["a"]?.content == "here")
                #expect(remote["d/new"]?.content == "new")
                #expect(remote["e/z"]?.content == "first y")
                #expect(remote["d/y"] == nil && remote["d/x"] == nil)
                #expect(remote["b"]?.permissions == 0o600)
                #expect(machine.provider.tree.applied.count { $0.kind == .create } == 1)
            }
        }

        @Test func changeOfWaitingItemArrives() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("b", machine)
                try await fetch("d/x", machine)
                try await lose(machine)
                try await machine.write("here", to: "b")
                try await machine.rename("d/y", to: "y")
                try await machine.rename("e", to: "g")
                try await machine.rename("g/f/deep", to: "d/deeper")
                try await machine.remove("d/x")
                try await machine.makeDirectory("d/made")
                try await machine.write("made", to: "d/made/it")
                try await expectSettled(machine)
                let paths = machine.provider.tree.entries().keys.sorted()
                #expect(paths == ["a", "b", "d", "d/deeper", "d/made", "d/made/it", "g", "g/f", "y"])
                #expect(machine.provider.tree.entries()["b"]?.content == "here")
                #expect(machine.provider.tree.applied.count { $0.kind == .create } == 2)
            }
        }

        @Test func aWholeDirectoryIsRemovedWhileItWaits() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await machine.remove("d/y")
                try await lose(machine)
                try await machine.remove("e")
                try await machine.remove("d")
                try await expectSettled(machine)
                #expect(machine.provider.tree.entries().keys.sorted() == ["a", "b"])
            }
        }

        @Test func itemsLostByRemoteAreCreatedFromLocalContent() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("d/x", machine)
                let number = try await machine.number("d/x")
                machine.provider.change { tree in
                    tree.delete("d")
                    tree.delete("deep")
                }
                try await lose(machine)
                try await expectSettled(machine)
                #expect(machine.provider.tree.entries()["d/x"]?.content == "first x")
                #expect(try await machine.number("d/x") == number)
                #expect(await !machine.exists("d/y"))
                #expect(await !machine.exists("e/f/deep"))
            }
        }

        @Test func anUnlistedDirectoryIsNotCreatedAgain() async throws {
            try await EngineFixture.run(fill: Self.fill) { fixture in
                try await fixture.list()
                fixture.provider.change { tree in
                    tree.delete("d")
                    tree.loseIdentifiers()
                }
                try await fixture.engine.reimport(below: .root)
                fixture.engine.start()
                #expect(await eventually { (try? fixture.names())?.contains("d") == false })
                #expect(await eventually { (try? fixture.replica.database.reimports.requests().isEmpty) == true })
                #expect(fixture.provider.tree.identifier(at: "d") == nil)
                #expect(try fixture.names().sorted() == ["a", "b", "e"])
            }
        }

        @Test func bothSidesChangedAndBothAreKept() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await machine.write("here", to: "a")
                try await fetch("b", machine)
                machine.provider.change { tree in
                    tree.write(RemoteContent("there"), to: "a")
                    tree.write(RemoteContent("newer b"), to: "b")
                    tree.addFile("came", in: "d", content: RemoteContent("came"))
                }
                try await lose(machine)
                try await expectSettled(machine)
                #expect(try await machine.read("a") == "there")
                #expect(try await machine.read("a (conflicted copy)") == "here")
                #expect(try await machine.read("b") == "newer b")
                #expect(try await machine.read("d/came") == "came")
                #expect(try machine.replica.database.conflictCopies().count == 1)
            }
        }

        @Test func anOlderRemoteTakesNothingAway() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                machine.provider.change { $0.write(RemoteContent("second b"), to: "b") }
                try await machine.drain()
                #expect(try await machine.read("b") == "second b")
                machine.provider.change { tree in
                    // A backup was restored.
                    tree.write(RemoteContent("first b"), to: "b")
                    tree.edit("b") { $0.contentModificationDate = FileTimestamp(seconds: 1000, nanoseconds: 0) }
                }
                try await lose(machine)
                try await expectSettled(machine)
                let contents = Set(machine.provider.tree.entries().values.compactMap(\.content))
                #expect(contents.isSuperset(of: ["first b", "second b"]))
            }
        }

        @Test func metadataThatChangedThereIsNotWrittenOver() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("a", machine)
                try await machine.setPermissions(of: "b", to: 0o640)
                machine.provider.change { tree in
                    tree.edit("a") { $0.permissions = 0o711 }
                    tree.edit("b") { $0.extendedAttributes = ["k": [1]] }
                }
                try await lose(machine)
                try await expectSettled(machine)
                #expect(try await machine.record("a").permissions == 0o711)
                #expect(machine.provider.tree.entries()["b"]?.permissions == 0o640)
                let number = try await machine.number("b")
                #expect(try machine.replica.database.extendedAttribute("k", of: number) == [1])
            }
        }

        @Test("48 a pin survives a reimport")
        func pinsSurvive() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                let number = try await machine.number("d")
                _ = try machine.replica.setPolicy(.keepDownloaded, of: number)
                try await lose(machine)
                try await expectSettled(machine)
                let item = try #require(try machine.replica.database.item(ofInode: number))
                #expect(item.policy == .keepDownloaded)
            }
        }

        @Test func waitingItemsAreNeitherEvictedNorSynced() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("a", machine)
                let number = try await machine.number("a")
                try await lose(machine)
                let report = try await machine.engine.evict(number, isStrict: true)
                #expect(report.refusals.map(\.refusal) == [.unsyncedEdits])
                let waiting = try await machine.item("a")
                #expect(try machine.replica.database.syncState(of: waiting) == .pending)
                try await expectSettled(machine)
                let done = try await machine.item("a")
                #expect(try machine.replica.database.syncState(of: done) == .synced)
            }
        }

        @Test func aReaderComesFirst() async throws {
            try await EngineFixture.run(fill: Self.fill) { fixture in
                try await fixture.list("d")
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
                try await lose(machine)
                try await machine.drain()
                #expect(try machine.replica.database.linkTarget(of: number) == "elsewhere")
                #expect(try await machine.names(in: .root).sorted() == ["other", "same"])
                #expect(try machine.replica.database.pendingCounts().items == 0)
                #expect(machine.provider.tree.count == 2)
            }
        }

        @Test func aRemoteThatIsAwayHoldsIt() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                machine.provider.faults.add(
                    .fail(FileProviderError(.serverUnreachable)), to: .create)
                try await lose(machine)
                try await machine.send(passes: 1)
                #expect(try machine.replica.database.reimports.progress()?.done == 0)
                machine.provider.faults.clear()
                machine.engine.connection.reset()
                try await expectSettled(machine)
            }
        }

        @Test func refusedOfferStaysPending() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("a", machine)
                let placeholder = "a"
                try await lose(machine)
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
                try await expectSettled(machine)
            }
        }

        @Test func aReadOnlyRemoteIsOfferedNothing() async throws {
            var options = InMemoryProvider.Options()
            options.writing = false
            try await EngineFixture.run(options: options, fill: Self.fill) { fixture in
                let failure = await fixture.failure { try await fixture.engine.reimport(below: .root) }
                #expect(failure?.code == .featureUnsupported)
            }
        }

        @Test func emptyFilesHaveNoContentFile() async throws {
            try await Machine.run(fill: { $0.addFile("empty", content: RemoteContent("")) }) { machine in
                try await lose(machine)
                try await expectSettled(machine)
                #expect(try await machine.item("empty").identifier == machine.provider.tree.identifier(at: "empty"))
            }
        }

        /// What is done here at random, before a reimport and during it, with crashes: all of it arrives, nothing twice.
        @Test(arguments: 0..<30) func anythingMayHappenMeanwhile(seed: UInt64) async throws {
            var random = SeededNumbers(seed: seed)
            try await Machine.run(fill: Self.fill) { machine in
                for path in ["a", "d/x", "e/f/deep"] where Bool.random(using: &random) {
                    try await fetch(path, machine)
                }
                var texts: Set<String> = []
                var current = machine
                var others: [Machine] = []
                func change(_ number: Int) async throws {
                    let paths = ["a", "b", "d/x", "d/y", "e/f/deep", "new", "d/new", "e/new", "e/f/z"]
                    let (path, other) = (
                        paths.randomElement(using: &random) ?? "a", paths.randomElement(using: &random) ?? "b"
                    )
                    do {
                        switch Int.random(in: 0..<7, using: &random) {
                        case 0, 1:
                            try await current.write("text \(seed) \(number)", to: path)
                            texts.insert("text \(seed) \(number)")
                        case 2, 3: try await current.rename(path, to: other)
                        case 4: try await current.remove(path)
                        case 5: try await current.makeDirectory("made \(number)")
                        default:
                            let directories = ["d", "e", "e/f"]
                            try await current.rename(directories.randomElement(using: &random) ?? "d", to: "m\(number)")
                        }
                    } catch is LocalObstacle {}
                }
                for number in 0..<6 { try await change(number) }
                try await lose(machine)
                for number in 6..<18 {
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0, 1:
                        if let next = try await current.operations().randomElement(using: &random) {
                            await current.engine.runAlone(next)
                        }
                    case 2: try await change(number)
                    default:
                        guard others.count < 2 else { continue }
                        current = try current.crash()
                        others.append(current)
                    }
                }
                do {
                    try await expectSettled(current)
                    // What was written and is shown here is there, and the other way round; nothing else is asked.
                    let here = Set(try await current.entries().values.compactMap(\.content)).intersection(texts)
                    let there = Set(current.provider.tree.entries().values.compactMap(\.content)).intersection(texts)
                    #expect(here == there)
                } catch {
                    for other in others { await other.stop() }
                    throw error
                }
                for other in others { await other.stop() }
            }
        }

        @Test("REIMPORT-1: killed at any moment, it goes on where it was and makes nothing twice", arguments: 0..<24)
        func crashes(at step: Int) async throws {
            try await Machine.run(fill: Self.fill) { machine in
                try await fetch("a", machine)
                try await fetch("d/x", machine)
                try await machine.write("here", to: "b")
                try await machine.write("new", to: "e/new")
                try await machine.rename("d/y", to: "z")
                machine.provider.change { $0.delete("x") }
                let inode = try await machine.number("d/x")
                try await lose(machine)
                // Every second time the call had arrived when the daemon died.
                for _ in 0..<step / 2 {
                    guard let next = try await machine.operations().first else { break }
                    await machine.engine.runAlone(next)
                }
                if step % 2 == 1, let next = try await machine.operations().first {
                    for kind in [ProviderCallKind.create, .modify, .delete] {
                        machine.provider.faults.add(
                            .applyThenFail(FileProviderError(.userCancelled)), to: kind, times: 1)
                    }
                    await machine.engine.runAlone(next)
                    machine.provider.faults.clear()
                }
                let other = try machine.crash()
                do {
                    try await expectSettled(other)
                    let remote = other.provider.tree.entries()
                    #expect(remote["b"]?.content == "here")
                    #expect(remote["e/new"]?.content == "new")
                    #expect(remote["z"]?.content == "first y")
                    #expect(remote["d/x"]?.content == "first x")
                    #expect(try await other.number("d/x") == inode)
                    #expect(remote.count == 9)
                } catch {
                    await other.stop()
                    throw error
                }
                await other.stop()
            }
        }
    }
}
