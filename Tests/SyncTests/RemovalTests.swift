import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Items that the remote has removed, and that have to stay.
    @Suite struct RemovalTests {
        @Test("CONFLICT-2: what was written here is offered again") func locallyWrittenFilesAreOfferedAgain()
            async throws
        {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine in
                try await machine.write("here", to: "d/x")
                machine.provider.change { $0.delete("d") }
                try await machine.settle()
                #expect(try await machine.read("d/x") == "here")
                #expect(await !machine.exists("d/y"))
            }
        }

        @Test(
            "CONFLICT-7: what was moved here into directories that the remote removes is moved there, too",
            arguments: [false, true], [false, true])
        func itemsMovedIntoRemovedDirectoriesAreMoved(isTold: Bool, isWritten: Bool) async throws {
            try await Machine.run(fill: { tree in
                tree.addFile("f", content: RemoteContent("text"), identifier: "f")
                var directory = ItemIdentifier.rootContainer
                for name in ["x", "y", "z", "u", "v"] {
                    directory = tree.addDirectory(name, in: directory, identifier: ItemIdentifier(name))
                }
            }) { machine in
                let path = "x/y/z/u/v/g"
                try await machine.rename("f", to: path)
                if isWritten { try await machine.write("written", to: path) }
                machine.provider.change { $0.delete("x") }
                // The order in which one batch removes them is not the same each time.
                if isTold { try await machine.ingest() }
                try await machine.settle()
                #expect(machine.provider.tree.identifier(at: path) == "f")
                #expect(machine.provider.tree.entries()[path]?.content == (isWritten ? "written" : "text"))
            }
        }

        @Test("FOLDER-2: an item that moves into an unlisted directory keeps its place")
        func anItemMovedIntoAnUnlistedDirectoryKeepsItsPlace() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine in
                try await machine.write("here", to: "a")
                let before = try await machine.item("a")
                machine.provider.log.clear()
                machine.provider.change { tree in
                    let outer = tree.addDirectory("outer", identifier: "outer")
                    let inner = tree.addDirectory("inner", in: outer, identifier: "inner")
                    tree.move("a", to: inner)
                }
                try await machine.ingest()
                try await machine.send()
                #expect(machine.provider.tree.entries()["outer/inner/a"]?.content == "here")
                #expect(machine.provider.tree.identifier(at: "outer/inner/a") == "a")
                #expect(machine.provider.log.calls.allSatisfy { $0.kind != .create && $0.kind != .delete })
                try await machine.settle()
                let after = try await machine.item("outer/inner/a")
                #expect(after.identifier == before.identifier && after.inode.number == before.inode.number)
            }
        }

        // MARK: - The guard

        private func many(_ tree: inout RemoteTree) {
            tree.addDirectory("big", identifier: "big")
            for number in 0..<150 {
                tree.addFile("f\(number)", in: "big", content: RemoteContent("\(number)"))
            }
            for number in 0..<200 { tree.addFile("r\(number)", content: RemoteContent("r\(number)")) }
        }

        @Test(arguments: ["news", "comparison", "no feed"])
        func manyRemovalsAtOnceAreHeldUntilTheyAreConfirmed(how: String) async throws {
            var options = InMemoryProvider.Options()
            options.changeFeed = how != "no feed"
            options.pageSize = 40
            try await Machine.run(options: options, fill: many) { machine in
                machine.provider.change { tree in
                    tree.delete("big")
                    tree.addFile("new", content: RemoteContent("new"))
                    if how == "comparison" { tree.expireAnchors() }
                }
                for _ in 0..<2 {
                    try await machine.ingest()
                    #expect(try machine.replica.database.counts().knownItems == 352)
                    #expect(
                        machine.engine.warnings.texts.contains {
                            $0.contains("151 of 352 items have vanished from the remote at once; 'yonder retry NAME'")
                        })
                }
                #expect(try await machine.record("big/f7").size == 1)
                #expect(try await machine.read("new") == "new")
                try await machine.engine.retry(machine.number("new"))
                try await machine.ingest()
                #expect(await machine.exists("big/f7"))
                try await machine.engine.retry()
                try await machine.ingest()
                #expect(await !machine.exists("big"))
                #expect(try machine.replica.database.counts().knownItems == 201)
                #expect(machine.engine.warnings.texts == [])
                try await machine.expectSettled()
            }
        }

        @Test func returnedItemsEndTheHold() async throws {
            try await Machine.run(fill: many) { machine in
                let before = machine.provider.tree
                machine.provider.change { $0.delete("big") }
                try await machine.ingest()
                #expect(!machine.engine.warnings.texts.isEmpty)
                machine.provider.change { tree in
                    tree.addDirectory("big", identifier: "big")
                    for item in before.items(in: "big") {
                        tree.addFile(
                            item.filename, in: "big", content: before.content(of: item.itemIdentifier) ?? .bytes([]),
                            identifier: item.itemIdentifier)
                    }
                }
                try await machine.ingest()
                #expect(machine.engine.warnings.texts == [])
                try await machine.expectSettled()
            }
        }

        @Test("CHANGE-4: consent is for one round") func consentIsForOneRound() async throws {
            try await Machine.run(fill: many) { machine in
                try await machine.engine.retry()
                machine.provider.change { $0.delete("big") }
                try await machine.ingest()
                #expect(await machine.exists("big/f7"))
            }
        }

        @Test func fewOfManyGoAtOnce() async throws {
            try await Machine.run(fill: many) { machine in
                machine.provider.change { tree in
                    for item in tree.items(in: "big").prefix(100) { tree.delete(item.itemIdentifier) }
                }
                try await machine.ingest()
                #expect(try machine.replica.database.counts().knownItems == 251)
                #expect(machine.engine.warnings.texts == [])
            }
        }

        // MARK: - News that are older than an answer

        @Test func aChangeReportedDuringAnUploadIsNotMissed() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine in
                try await machine.setPermissions(of: "a", to: 0o600)
                let gate = machine.provider.faults.hold(.changes, times: 1)
                let ingestion = Task { try await machine.ingest() }
                #expect(await eventually { gate.waiting == 1 })
                try await machine.send(passes: 1)
                machine.provider.change { $0.write(RemoteContent("there"), to: "a") }
                gate.open()
                try await ingestion.value
                #expect(try await machine.read("a") == "there")
                try await machine.settle()
            }
        }

        @Test("CHANGE-5: a file that a read finds replaced is there under its name at once, as the new one")
        func aReplacedFileIsRead() async throws {
            try await Machine.run { tree in
                tree.addFile("file", content: RemoteContent("old"), identifier: "old")
            } _: { machine async throws in
                try await machine.ingest()
                // The provider has not signalled it yet.
                machine.provider.changeSilently { tree in
                    tree.delete("old")
                    tree.addFile("file", content: RemoteContent("new"), identifier: "new")
                }
                let failure = await #expect(throws: FileProviderError.self) { try await machine.materialize("file") }
                #expect(failure?.code == .noSuchItem)
                #expect(try await machine.names(in: .root) == ["file"])
                try await machine.materialize("file")
                #expect(try await machine.read("file") == "new")
            }
        }

        private func twoFiles(_ tree: inout RemoteTree) {
            for name in ["a", "b"] {
                tree.addFile(name, content: RemoteContent("old"), identifier: ItemIdentifier("old-\(name)"))
            }
        }

        /// Another client replaces a file, and the provider does not signal it.
        private func replace(_ name: String, _ fixture: EngineFixture) {
            fixture.provider.changeSilently { tree in
                tree.delete(ItemIdentifier("old-\(name)"))
                tree.addFile(name, content: RemoteContent("new"), identifier: ItemIdentifier("new-\(name)"))
            }
        }

        /// Begins to read both files, which are replaced, the second while the changes that the first has asked for are held.
        ///
        /// - Parameter areBothInAnswer: whether the second is replaced before the remote answers, too.
        private func beginReadingBoth(
            _ fixture: EngineFixture, areBothInAnswer: Bool
        ) async throws -> (gate: Gate, first: Task<[UInt8], any Error>, second: Task<[UInt8], any Error>) {
            try await fixture.engine.refresh()
            replace("a", fixture)
            if areBothInAnswer { replace("b", fixture) }
            let gate = fixture.provider.faults.holdAnswer(.changes, times: 1)
            let first = Task { try await fixture.read("old-a") }
            #expect(await eventually { gate.waiting == 1 })
            if !areBothInAnswer { replace("b", fixture) }
            let second = Task { try await fixture.read("old-b") }
            #expect(await eventually { fixture.provider.log.count(of: .fetch, "old-b") == 1 })
            // It waits for changes then.
            try await Task.sleep(for: .milliseconds(200))
            return (gate, first, second)
        }

        @Test("CHANGE-5: a file that is replaced after the changes were asked for another reader is there at once, too")
        func replacedWhileChangesAreTakenIn() async throws {
            try await EngineFixture.run(fill: twoFiles, listing: "/") { fixture async throws in
                let (gate, first, second) = try await beginReadingBoth(fixture, areBothInAnswer: false)
                gate.open()
                #expect(await failure { _ = try await first.value }?.code == .noSuchItem)
                #expect(await failure { _ = try await second.value }?.code == .noSuchItem)
                #expect(try fixture.names().sorted() == ["a", "b"])
                #expect(try await fixture.read("new-a") == Array("new".utf8))
                #expect(try await fixture.read("new-b") == Array("new".utf8))
            }
        }

        @Test("CHANGE-5: a replaced file is there at once also where another reader is interrupted")
        func replacedAndAnotherReaderIsInterrupted() async throws {
            try await EngineFixture.run(fill: twoFiles, listing: "/") { fixture async throws in
                let (gate, first, second) = try await beginReadingBoth(fixture, areBothInAnswer: true)
                first.cancel()
                _ = await first.result
                gate.open()
                #expect(await failure { _ = try await second.value }?.code == .noSuchItem)
                #expect(try fixture.names().sorted() == ["a", "b"])
                #expect(try await fixture.read("new-b") == Array("new".utf8))
            }
        }

        @Test("CHANGE-5: a file that is replaced while its content is fetched is there at once, as the new one")
        func replacedWhileItIsFetched() async throws {
            try await EngineFixture.run(fill: twoFiles, listing: "/") { fixture async throws in
                try await fixture.engine.refresh()
                replace("a", fixture)
                // A folder finds that the file it reads has changed: it has lost its name.
                let changed = FileProviderError(.versionNoLongerAvailable)
                fixture.provider.faults.fail(.fetch, of: "old-a", with: changed)
                #expect(await failure { _ = try await fixture.read("old-a") }?.code == .versionNoLongerAvailable)
                #expect(try fixture.names().sorted() == ["a", "b"])
                #expect(try await fixture.read("new-a") == Array("new".utf8))
            }
        }

        @Test("CHANGE-5: a file that is replaced while it is open is there as the new one when the old one goes")
        func replacedWhileItIsOpen() async throws {
            try await EngineFixture.run(
                options: .with(\.documentEnumeration, true), fill: twoFiles, listing: "/"
            ) { fixture async throws in
                try await fixture.engine.refresh()
                replace("a", fixture)
                let number = try fixture.number("old-a")
                fixture.open.insert(number)
                // The observer alone: nothing else asks for changes.
                await fixture.engine.documents.start()
                fixture.engine.documents.opened(number)
                #expect(
                    try await eventually(within: .seconds(10)) {
                        try fixture.replica.database.item("old-a") == nil
                    })
                #expect(try fixture.names().sorted() == ["a", "b"])
                #expect(try await fixture.read("new-a") == Array("new".utf8))
            }
        }

        @Test("CHANGE-7: a directory that moves while it is compared stays, though it is found nowhere just then")
        func aDirectoryThatAnotherListingShowsStays() async throws {
            try await Machine.run(
                options: .with(\.changeFeed, false),
                fill: { tree in
                    tree.addDirectory("from", identifier: "from")
                    tree.addDirectory("to", identifier: "to")
                    tree.addDirectory("dir", in: "from", identifier: "dir")
                    tree.addFile("file", in: "dir", content: RemoteContent("text"), identifier: "file")
                }
            ) { machine in
                #expect(try await machine.read("from/dir/file") == "text")
                #expect(await !machine.exists("to/dir"))
                let number = try await machine.number("from/dir")
                // As on a remote that knows only paths: nothing is at the old one, and the new one is not known yet.
                let missing = FileProviderError.noSuchItem("dir")
                let gate = machine.provider.faults.hold(.item, of: "dir")
                machine.provider.faults.fail(.item, of: "dir", with: missing, times: nil)
                machine.provider.faults.fail(.enumerator, of: "dir", with: missing)
                machine.provider.change { $0.move("dir", to: "to") }
                let newPlace = machine.provider.faults.hold(.enumerate, of: "to")
                let ingestion = Task { try await machine.ingest() }
                // Both looks begin before the listing, that for its old directory's sake and that for its own.
                #expect(await eventually { gate.waiting == 2 })
                newPlace.open()
                #expect(await eventually { await machine.exists("to/dir") })
                gate.open()
                try await ingestion.value
                #expect(try await machine.number("to/dir") == number)
                #expect(try await machine.read("to/dir/file") == "text")
            }
        }

        @Test("CHANGE-6: a lookup that is older than an answer moves nothing back")
        func staleLookupDoesNotUndoAcknowledgedMove() async throws {
            try await Machine.run(options: .with(\.changeFeed, false), fill: { ScriptRun.fill(&$0) }) { machine in
                try await machine.listAll()
                try await machine.rename("d/x", to: "e/x")
                try await machine.rename("d/y", to: "e/y")
                // When 'e' is compared both are looked up, one after the other, and what is said of the first is old by then.
                let gate = Gate()
                machine.provider.faults.add(.hold(gate), to: .item, of: "y", times: 1)
                let ingestion = Task { try await machine.ingest() }
                #expect(await eventually { gate.waiting == 1 })
                try await machine.send()
                let seen = machine.kernel.invalidations.count
                gate.open()
                try await ingestion.value
                let moved = machine.kernel.invalidations.dropFirst(seen).contains { invalidation in
                    switch invalidation {
                    case .entry(_, let name), .departedFile(_, let name): name == "x"
                    default: false
                    }
                }
                #expect(!moved)
                #expect(await machine.exists("e/x"))
                try await machine.settle()
            }
        }

        @Test func anAnswerAboutSomethingElseDoesNotHideNewContent() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine in
                try await machine.setPermissions(of: "a", to: 0o600)
                let gate = machine.provider.faults.hold(.modify, times: 1)
                let sending = Task { try await machine.send(passes: 1) }
                #expect(await eventually { gate.waiting == 1 })
                machine.provider.change { $0.write(RemoteContent("there"), to: "a") }
                try await machine.write("here", to: "a")
                gate.open()
                try await sending.value
                try await machine.settle()
                let contents = Set(machine.provider.tree.entries().values.compactMap(\.content))
                #expect(contents.isSuperset(of: ["here", "there"]))
            }
        }
    }
}
