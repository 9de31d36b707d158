import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// How news from the remote come in.
    @Suite struct ChangeTests {
        func tree(_ tree: inout RemoteTree) {
            tree.addFile("a", content: RemoteContent("a"), identifier: "a")
            tree.addFile("b", content: RemoteContent("b"), identifier: "b")
            tree.addDirectory("d", identifier: "d")
            tree.addFile("inner", in: "d", content: RemoteContent("inner"), identifier: "inner")
            tree.addDirectory("unlisted", identifier: "unlisted")
        }

        /// With the root and `d` listed and an anchor taken.
        func run(
            options: InMemoryProvider.Options = .init(), _ test: (EngineFixture) async throws -> Void
        ) async throws {
            try await EngineFixture.run(options: options, fill: tree, listing: "d") { fixture async throws in
                try await fixture.engine.refresh()
                fixture.kernel.clear()
                fixture.provider.log.clear()
                try await test(fixture)
            }
        }

        @Test func aNewFileIsShownAndTheKernelForgetsThatItWasNotThere() async throws {
            try await run { fixture in
                fixture.provider.change {
                    $0.addFile("new", content: RemoteContent("new"), identifier: "new")
                    $0.addFile("far", in: "unlisted", content: RemoteContent("far"), identifier: "far")
                }
                try await fixture.engine.refresh()
                #expect(try fixture.names().contains("new"))
                #expect(fixture.kernel.invalidations.contains(.entry(parent: .root, name: "new")))
                #expect(fixture.kernel.invalidations.contains(.contents(.root)))
                #expect(try fixture.replica.database.item("far") == nil)
                #expect(fixture.provider.log.count(of: .enumerate) == 0)
            }
        }

        /// The number of listings in a round.
        private func listings(of fixture: EngineFixture) async throws -> [ItemIdentifier] {
            fixture.provider.log.clear()
            try await fixture.engine.refresh()
            return fixture.provider.log.calls(of: .enumerate).map(\.identifier)
                .sorted { $0.rawValue < $1.rawValue }
        }

        @Test func onlyChangedSubtreesAreComparedWhereVersionsCoverTrees() async throws {
            var options = InMemoryProvider.Options()
            options.changeFeed = false
            options.directoryVersionsCoverTrees = true
            try await EngineFixture.run(options: options) { tree in
                for name in ["a", "b"] {
                    tree.addDirectory(name, identifier: ItemIdentifier(name))
                    tree.addDirectory("in", in: ItemIdentifier(name), identifier: ItemIdentifier(name + "/in"))
                    tree.addFile(
                        "f", in: ItemIdentifier(name + "/in"), content: RemoteContent("f"),
                        identifier: ItemIdentifier(name + "/in/f"))
                }
            } _: { fixture in
                try await fixture.list("a/in")
                try await fixture.list("b/in")
                // One of them may be listed ahead as well, while this begins.
                #expect(Set(try await listings(of: fixture)).count == 5)
                // What was said of the directories above is a round older than what is below them.
                _ = try await listings(of: fixture)
                #expect(try await listings(of: fixture) == [])
                fixture.provider.change { $0.addFile("new", in: "a/in", content: RemoteContent("n"), identifier: "n") }
                #expect(try await listings(of: fixture) == ["a", "a/in", .rootContainer])
                #expect(try fixture.names(in: fixture.number("a/in")).contains("new"))
                #expect(try await listings(of: fixture) == [])
                // A round that did not get through is made again.
                fixture.provider.change { $0.delete("b/in/f") }
                fixture.provider.faults.add(.fail(FileProviderError(.timedOut)), to: .enumerate, of: "b/in", times: 9)
                _ = try? await listings(of: fixture)
                fixture.provider.faults.clear()
                fixture.engine.errorWasResolved()
                _ = try await listings(of: fixture)
                #expect(try fixture.names(in: fixture.number("b/in")) == [])
                #expect(try await listings(of: fixture) == [])
            }
        }

        @Test func aChangedFileIsReadAnew() async throws {
            try await run { fixture in
                _ = try await fixture.read("a")
                #expect(try await eventually { try fixture.inode("a").content == .materialized })
                let number = try fixture.number("a")
                fixture.provider.change { $0.write(RemoteContent("other"), to: "a") }
                try await fixture.engine.refresh()
                #expect(fixture.kernel.invalidations.contains(.contents(number)))
                #expect(try fixture.inode("a").size == 5)
                #expect(try fixture.number("a") == number)
                #expect(try await fixture.read("a") == Array("other".utf8))
            }
        }

        @Test func aRenamedFileKeepsItsInodeAndItsContent() async throws {
            try await run { fixture in
                _ = try await fixture.read("a")
                #expect(try await eventually { try fixture.inode("a").content == .materialized })
                let number = try fixture.number("a")
                let directory = try fixture.number("d")
                fixture.kernel.clear()
                fixture.provider.change { $0.move("a", to: "d", as: "moved") }
                try await fixture.engine.refresh()
                let told = fixture.kernel.invalidations
                #expect(told.contains(.departedFile(parent: .root, name: "a")))
                #expect(told.contains(.entry(parent: directory, name: "moved")))
                #expect(told.contains(.contents(.root)))
                #expect(told.contains(.contents(directory)))
                #expect(try fixture.number("a") == number)
                #expect(try fixture.inode("a").content == .materialized)
                #expect(try fixture.names(in: directory).sorted() == ["inner", "moved"])
            }
        }

        @Test func namesThatAreSwappedArrive() async throws {
            try await run { fixture in
                let (a, b) = (try fixture.number("a"), try fixture.number("b"))
                fixture.provider.change {
                    $0.rename("a", to: "c")
                    $0.rename("b", to: "a")
                    $0.rename("a", to: "b")
                }
                try await fixture.engine.refresh()
                #expect(try fixture.replica.database.lookup("b", in: .root).inode?.number == a)
                #expect(try fixture.replica.database.lookup("a", in: .root).inode?.number == b)
                #expect(fixture.engine.warnings.texts.isEmpty)
            }
        }

        @Test("CHANGE-2: a directory whose new parent moves in a later batch is placed in the same round")
        func newParentMovesInALaterBatch() async throws {
            try await EngineFixture.run(options: .with(\.pageSize, 1)) { tree in
                tree.addDirectory("a", identifier: "a")
                tree.addDirectory("b", in: "a", identifier: "b")
            } _: { fixture in
                try await fixture.list("a/b")
                try await fixture.engine.refresh()
                fixture.provider.change {
                    $0.move("a", to: "b")
                    $0.move("b", to: .rootContainer, as: "c")
                }
                try await fixture.engine.refresh()
                #expect(try fixture.names() == ["c"])
                #expect(try fixture.names(in: fixture.number("b")) == ["a"])
                #expect(fixture.engine.warnings.texts.isEmpty)
            }
        }

        @Test("CHANGE-1: an item in no directory is looked up", arguments: [false, true])
        func itemInNoDirectoryIsLookedUp(isGone: Bool) async throws {
            try await run(options: .with(\.changeFeed, false)) { fixture in
                // The remote moves it into a directory that is gone when it is looked up.
                let report = try #require(fixture.provider.tree["a"]).moved(to: "gone")
                _ = try await fixture.replica.ingest(open: fixture.open) { try $0.changes.move(report) }
                #expect(try fixture.replica.database.item("a")?.parent == nil)
                fixture.provider.change { isGone ? $0.delete("a") : $0.move("a", to: "unlisted") }
                try await fixture.engine.refresh()
                let item = try fixture.replica.database.item("a")
                #expect((item == nil) == isGone)
                if !isGone { #expect(try item?.parent == fixture.number("unlisted")) }
            }
        }

        @Test("CONFLICT-2: a deleted directory goes with all below it") func aDeletedDirectoryGoesWithAllBelowIt()
            async throws
        {
            try await run { fixture in
                let number = try fixture.number("d")
                fixture.provider.change { $0.delete("d") }
                try await fixture.engine.refresh()
                #expect(fixture.kernel.invalidations.contains(.deletion(parent: .root, child: number, name: "d")))
                #expect(try fixture.replica.database.item("d") == nil)
                #expect(try fixture.replica.database.item("inner") == nil)
                #expect(try fixture.names() == ["a", "b", "unlisted"])
            }
        }

        @Test("CHANGE-8: changes come in batches") func changesComeInBatches() async throws {
            try await run(options: .with(\.pageSize, 7)) { fixture in
                fixture.provider.change { tree in
                    for number in 0..<50 { tree.addFile("new\(number)", content: RemoteContent("x")) }
                }
                try await fixture.engine.refresh()
                #expect(try fixture.names().count == 54)
                #expect(fixture.provider.log.count(of: .changes) == 8)
                #expect(fixture.provider.log.count(of: .enumerate) == 0)
            }
        }

        @Test("CHANGE-8: a round begins at the last anchor that was committed, also after a failure and a crash")
        func lastCommittedAnchor() async throws {
            try await Machine.run(options: .with(\.pageSize, 7), fill: tree) { machine async throws in
                machine.provider.changeSilently { tree in
                    for number in 0..<50 { tree.addFile("new\(number)", content: RemoteContent("x")) }
                }
                machine.provider.faults.fail(.changes, with: FileProviderError(.malformedResponse), skipping: 3)
                #expect(await failureCode { try await machine.ingest() } == .malformedResponse)
                #expect(machine.provider.log.count(of: .changes) == 4)
                let machine = try machine.crash()
                machine.provider.log.clear()
                try await machine.ingest()
                // Three batches of seven were taken in before.
                #expect(machine.provider.log.count(of: .changes) == 5)
                #expect(try await machine.names(in: .root).count == 54)
                #expect(machine.provider.log.count(of: .enumerate) == 0)
            }
        }

        @Test func theProvidersSignalIsHeeded() async throws {
            try await run { fixture in
                fixture.engine.start()
                fixture.provider.change { $0.addFile("new", content: RemoteContent("x")) }
                let isShown = try await eventually { try fixture.names().contains("new") }
                #expect(isShown)
            }
        }

        @Test("CHANGE-8: two rounds never run at once") func twoRoundsNeverRunAtOnce() async throws {
            try await run { fixture in
                fixture.provider.faults.delay(.changes, by: .milliseconds(5))
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for number in 0..<10 {
                        group.addTask {
                            fixture.provider.change { $0.addFile("n\(number)", content: RemoteContent("x")) }
                            try await fixture.engine.refresh()
                            #expect(try fixture.names().contains("n\(number)"))
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(fixture.provider.log.mostAtOnce(.changes) == 1)
            }
        }

        @Test("CHANGE-4: a hold ends also in a round in which a lookup cannot tell anything of one item")
        func holdBesideAnUnclearItem() async throws {
            func add(_ numbers: Range<Int>, to tree: inout RemoteTree) {
                for number in numbers {
                    tree.addFile("\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
                }
            }
            try await EngineFixture.run(
                options: .with(\.changeFeed, false), fill: { add(0..<200, to: &$0) }, listing: "/"
            ) { fixture in
                fixture.provider.change { tree in (0..<150).forEach { tree.delete(ItemIdentifier("f\($0)")) } }
                _ = await failure { try await fixture.engine.refresh() }
                #expect(fixture.engine.heldRemovals != nil)
                fixture.provider.faults.fail(.item, of: "f0", with: FileProviderError(.malformedResponse), times: nil)
                fixture.provider.change { add(1..<150, to: &$0) }
                let said = await failure { try await fixture.engine.refresh() }
                #expect(said?.code == .malformedResponse)
                #expect(fixture.engine.heldRemovals == nil)
            }
        }

        @Test("NAME-6: a missing item that a lookup cannot tell anything of stays, and the others are removed")
        func unclearItems() async throws {
            try await run(options: .with(\.changeFeed, false)) { fixture in
                fixture.provider.faults.fail(.item, of: "a", with: FileProviderError(.malformedResponse), times: nil)
                fixture.provider.change {
                    $0.delete("a")
                    $0.delete("b")
                }
                let said = await failure { try await fixture.engine.refresh() }
                #expect(said?.code == .malformedResponse)
                #expect(try fixture.names() == ["a", "d", "unlisted"])
                #expect(fixture.hasWarning("changes on the remote cannot be taken in"))
                // The pauses after it grow.
                let attempts = try fixture.replica.database.failure(of: .root)?.attempts ?? 0
                _ = await failure { try await fixture.engine.refresh() }
                #expect(try fixture.replica.database.failure(of: .root)?.attempts ?? 0 > attempts)
                fixture.provider.faults.clear()
                try await fixture.engine.refresh()
                #expect(try fixture.names() == ["d", "unlisted"])
                #expect(fixture.engine.warnings.texts == [])
            }
        }

        @Test("CHANGE-3: an expired anchor compares everything and looks up what is missing")
        func expiredAnchorComparesAllAndLooksUpMissingItems() async throws {
            try await run { fixture in
                let moved = try fixture.number("b")
                fixture.provider.change {
                    $0.delete("a")
                    $0.move("b", to: "unlisted")
                    $0.delete("inner")
                    $0.addFile("new", in: "d", content: RemoteContent("x"))
                    $0.expireAnchors()
                }
                try await fixture.engine.refresh()
                #expect(try fixture.names() == ["d", "unlisted"])
                #expect(try fixture.names(in: fixture.number("d")) == ["new"])
                #expect(try fixture.number("b") == moved)
                for identifier in ["a", "b", "inner"] as [ItemIdentifier] {
                    #expect(fixture.provider.log.count(of: .item, identifier) == 1)
                }
                #expect(fixture.provider.log.count(of: .enumerate, "unlisted") == 0)
                fixture.provider.log.clear()
                try await fixture.engine.refresh()
                #expect(fixture.provider.log.count(of: .enumerate) == 0)
            }
        }

        @Test(arguments: [FileProviderError.Code.fileReadNoPermission, .timedOut])
        func oneDirectoryThatCannotBeComparedDoesNotKeepTheOthers(code: FileProviderError.Code) async throws {
            try await run { fixture in
                fixture.provider.faults.fail(.enumerate, of: "d", with: FileProviderError(code), times: nil)
                fixture.provider.change {
                    $0.delete("a")
                    $0.expireAnchors()
                }
                let failure = await failure { try await fixture.engine.refresh() }
                #expect(failure?.code == (code == .timedOut ? .timedOut : nil))
                let names = try fixture.names()
                #expect(names == ["b", "d", "unlisted"])
                #expect(fixture.hasWarning("the directory 'd' cannot be compared"))
                #expect(try fixture.replica.database.failure(of: fixture.number("d"))?.code == code.rawValue)
            }
        }

        @Test func withoutAHistoryEverythingIsCompared() async throws {
            try await run(options: .with(\.changeFeed, false)) { fixture in
                fixture.provider.change {
                    $0.delete("a")
                    $0.write(RemoteContent("longer"), to: "b")
                }
                try await fixture.engine.refresh()
                #expect(try fixture.names() == ["b", "d", "unlisted"])
                #expect(try fixture.inode("b").size == 6)
                #expect(fixture.provider.log.count(of: .changes) == 0)
            }
        }

        @Test func stalePagesDoNotUndoReportedChanges() async throws {
            try await run { fixture in
                let gate = fixture.provider.faults.hold(.enumerate, of: "unlisted", skipping: 0)
                let lister = Task { try await fixture.list("unlisted") }
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.change { $0.addFile("late", in: "unlisted", content: RemoteContent("x")) }
                try await fixture.engine.refresh()
                gate.open()
                #expect(try await lister.value == ["late"])
            }
        }
    }
}
