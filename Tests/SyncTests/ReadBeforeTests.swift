import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Listings that were read before a change on the remote, and are recorded after it.
    @Suite struct ReadBeforeTests {
        private func fill(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("one", in: "d", content: RemoteContent("one"), identifier: "one")
        }

        /// Starts an engine, and returns when the round that it begins with is over.
        private func start(_ fixture: EngineFixture) async throws {
            try await fixture.engine.refresh()
            fixture.engine.start()
            #expect(await eventually { fixture.provider.log.count(of: .changes) >= 1 })
            try await fixture.engine.refresh()
        }

        @Test("CHANGE-1: what is made in a directory while that and all others are listed is shown")
        func listedWhileAllIsCompared() async throws {
            try await EngineFixture.run(fill: fill) { fixture in
                let gate = fixture.provider.faults.holdAnswer(.enumerate, of: "d", times: 1)
                let listing = Task { try await fixture.list("d") }
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.changeSilently { _ = $0.addFile("new", in: "d", content: RemoteContent("new")) }
                // There is no anchor yet: the round takes one, which stands behind the new file.
                try await fixture.engine.refresh()
                gate.open()
                _ = try await listing.value
                try await fixture.engine.refresh()
                #expect(try fixture.names(in: fixture.number("d")).sorted() == ["new", "one"])
            }
        }

        @Test(
            "CHANGE-1: a directory that became incomplete while it was listed is compared without being asked for, and alone",
            arguments: [true, false])
        func comparedAfterItsListing(hasChangeFeed: Bool) async throws {
            try await EngineFixture.run(options: .with(\.changeFeed, hasChangeFeed), fill: fill, listing: "/") {
                fixture in
                fixture.engine.start()
                // The round that this begins with is over.
                #expect(await fixture.provider.log.waits(for: 2, .enumerate, .rootContainer))
                try await fixture.engine.refresh()
                let gate = fixture.provider.faults.holdAnswer(.enumerate, of: "d", times: 1)
                let listing = Task { try await fixture.list("d") }
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.changeSilently { _ = $0.addFile("new", in: "d", content: RemoteContent("new")) }
                let number = try fixture.number("d")
                try await fixture.engine.context.commits.commit { try $0.listings.noteListingsUnderWay() }
                fixture.provider.log.clear()
                gate.open()
                _ = try await listing.value
                #expect(await eventually { (try? fixture.names(in: number).sorted()) == ["new", "one"] })
                #expect(await eventually { (try? fixture.replica.database.isToBeCompared(number)) == false })
                try await Task.sleep(for: .milliseconds(200))
                #expect(fixture.provider.log.count(of: .enumerate, .rootContainer) == 0)
                #expect(fixture.provider.log.count(of: .enumerate, "d") == 1)
            }
        }

        @Test("CHANGE-1: a directory that waits for local changes to be sent is compared after them, and alone")
        func comparedAfterUploads() async throws {
            var options = InMemoryProvider.Options()
            options.changeFeed = false
            try await Machine.run(options: options, isInteractive: false, fill: fill) { machine in
                // The round that this begins with is over.
                #expect(await machine.provider.log.waits(.enumerate, .rootContainer))
                try await machine.engine.refresh()
                let gate = machine.provider.faults.holdAnswer(.create, times: 1)
                try await machine.write("here", to: "here")
                #expect(await eventually(within: .seconds(20)) { gate.waiting == 1 })
                let number = try await machine.number("d")
                machine.provider.changeSilently { _ = $0.addFile("new", in: "d", content: RemoteContent("new")) }
                try await machine.engine.context.commits.commit { try $0.listings.noteIncomplete(number) }
                machine.provider.log.clear()
                gate.open()
                // Asking the machine would list the directory.
                #expect(
                    await eventually { (try? machine.replica.database.lookup("new", in: number).inode) != nil })
                #expect(await eventually { (try? machine.replica.database.isToBeCompared(number)) == false })
                try await Task.sleep(for: .milliseconds(200))
                #expect(machine.provider.log.count(of: .enumerate, .rootContainer) == 0)
                #expect(machine.provider.log.count(of: .enumerate, "d") == 1)
            }
        }

        @Test(
            "CHANGE-6: a file that was replaced while its directory was listed keeps its name to the new one",
            arguments: [false, true])
        func replacedWhileItIsListed(isCompared: Bool) async throws {
            try await EngineFixture.run(fill: fill) { fixture in
                let old = try fixture.provider.change { tree in
                    let old = tree.addFile("f", in: "d", content: RemoteContent("old"), identifier: "old")
                    defer { tree.delete(old) }
                    return try #require(tree[old])
                }
                try await fixture.list(isCompared ? "d" : "")
                try await fixture.engine.refresh()
                let number = try fixture.number("d")
                // The provider has never told of the old file but in this page.
                fixture.provider.faults.add(.extraItems([old]), to: .enumerate, of: "d", times: 1)
                let gate = fixture.provider.faults.holdAnswer(.enumerate, of: "d", times: 1)
                let listing = Self.listing(of: number, isCompared: isCompared, fixture)
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.changeSilently {
                    _ = $0.addFile("f", in: "d", content: RemoteContent("new"), identifier: "new")
                }
                try await fixture.engine.refresh()
                gate.open()
                try await listing.value
                let shown = try fixture.replica.database.lookup("f", in: number).inode
                #expect(try shown?.number == fixture.number("new"))
                #expect(try fixture.names(in: number).sorted() == ["f", "one"])
                #expect(try fixture.replica.database.item("old") == nil)
                #expect(try fixture.inode("d").content == .materialized)
            }
        }

        private static func listing(
            of number: InodeNumber, isCompared: Bool, _ fixture: EngineFixture
        ) -> Task<Void, any Error> {
            let (engine, request) = (fixture.engine, fixture.request)
            return Task {
                if isCompared {
                    try await engine.listings.compare(number, request: request)
                } else {
                    try await engine.list(number, request: request)
                }
            }
        }

        @Test(
            "CHANGE-6: doubtful files of a listing are looked up together, and compared later if they cannot be",
            arguments: [false, true])
        func doubtfulFiles(isCompared: Bool) async throws {
            try await EngineFixture.run(fill: fill) { fixture in
                let numbers = 0..<4
                let old = fixture.provider.change { tree in
                    var old: [FileProviderItem] = []
                    for number in numbers {
                        let identifier = ItemIdentifier("old\(number)")
                        tree.addFile("f\(number)", in: "d", content: RemoteContent("old"), identifier: identifier)
                        if let item = tree[identifier] { old.append(item) }
                        tree.delete(identifier)
                    }
                    return old
                }
                try await fixture.list(isCompared ? "d" : "")
                try await fixture.engine.refresh()
                let number = try fixture.number("d")
                fixture.provider.faults.add(.extraItems(old), to: .enumerate, of: "d", times: 1)
                let gate = fixture.provider.faults.holdAnswer(.enumerate, of: "d", times: 1)
                let listing = Self.listing(of: number, isCompared: isCompared, fixture)
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.changeSilently { tree in
                    for number in numbers { tree.addFile("f\(number)", in: "d", content: RemoteContent("new")) }
                }
                try await fixture.engine.refresh()
                fixture.provider.log.clear()
                for identifier in old.map(\.itemIdentifier) {
                    fixture.provider.faults.delay(.item, of: identifier, by: .milliseconds(200))
                }
                fixture.provider.faults.fail(.item, of: "old0", with: FileProviderError(.malformedResponse), times: nil)
                gate.open()
                try await listing.value
                #expect(fixture.provider.log.mostAtOnce(.item) > 1)
                let names = ["f0", "f1", "f2", "f3", "one"]
                #expect(try fixture.names(in: number).sorted() == names)
                #expect(try fixture.replica.database.isToBeCompared(number))
                try await fixture.engine.refresh()
                #expect(try fixture.names(in: number).sorted() == names)
                #expect(try !fixture.replica.database.isToBeCompared(number))
            }
        }

        @Test("CHANGE-6: two files of one name are both shown, also where one is reported while they are listed")
        func twinReportedWhileItIsListed() async throws {
            try await EngineFixture.run(fill: fill, listing: "/") { fixture async throws in
                fixture.provider.change { _ = $0.addFile("f", in: "d", content: RemoteContent("1"), identifier: "1") }
                try await fixture.engine.refresh()
                let gate = fixture.provider.faults.holdAnswer(.enumerate, of: "d", times: 1)
                let listing = Task { try await fixture.list("d") }
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.changeSilently {
                    _ = $0.addFile("f", in: "d", content: RemoteContent("2"), identifier: "2")
                }
                try await fixture.engine.refresh()
                gate.open()
                _ = try await listing.value
                #expect(try fixture.names(in: fixture.number("d")).sorted() == ["f", "f (2)", "one"])
            }
        }

        @Test("CHANGE-1: news that a reader has asked for and does not wait for are taken in all the same")
        func newsThatAReaderGivesUp() async throws {
            try await EngineFixture.run(fill: fill, listing: "d") { fixture async throws in
                try await start(fixture)
                let gate = fixture.provider.faults.holdAnswer(.changes, times: 1)
                let feed = fixture.engine.feed
                let news = Task { try await feed.takeNewsOnly() }
                #expect(await eventually { gate.waiting == 1 })
                // The provider does not signal what it answers with.
                fixture.provider.changeSilently { _ = $0.addFile("new", in: "d", content: RemoteContent("new")) }
                news.cancel()
                _ = await news.result
                let number = try fixture.number("d")
                #expect(await eventually { (try? fixture.names(in: number).sorted()) == ["new", "one"] })
            }
        }

        @Test("CHANGE-1: a reader that gives up while it waits for a round has no other round made")
        func newsThatAReaderGivesUpBefore() async throws {
            try await EngineFixture.run(fill: fill, listing: "d") { fixture async throws in
                try await start(fixture)
                let gate = fixture.provider.faults.holdAnswer(.changes, times: 1)
                let engine = fixture.engine
                let round = Task { try await engine.refresh() }
                #expect(await eventually { gate.waiting == 1 })
                let count = fixture.provider.log.count(of: .changes)
                let news = Task { try await engine.feed.takeNewsOnly() }
                try await Task.sleep(for: .milliseconds(100))
                news.cancel()
                gate.open()
                try await round.value
                _ = await news.result
                try await Task.sleep(for: .seconds(1))
                #expect(fixture.provider.log.count(of: .changes) == count)
            }
        }

        @Test("CHANGE-1: a comparison that is asked for sees what was there by then, also while another is under way")
        func comparedOnceMore() async throws {
            try await EngineFixture.run(fill: fill, listing: "d") { fixture async throws in
                let number = try fixture.number("d")
                let (listings, request) = (fixture.engine.listings, fixture.request)
                let gate = fixture.provider.faults.holdAnswer(.enumerate, of: "d", times: 1)
                let first = Task { try await listings.compare(number, request: request) }
                #expect(await eventually { gate.waiting == 1 })
                fixture.provider.changeSilently { _ = $0.addFile("new", in: "d", content: RemoteContent("new")) }
                let second = Task { try await listings.compare(number, request: request) }
                // Until it has asked: nothing shows that.
                try await Task.sleep(for: .milliseconds(50))
                gate.open()
                try await first.value
                try await second.value
                #expect(try fixture.names(in: number).sorted() == ["new", "one"])
            }
        }
    }
}
