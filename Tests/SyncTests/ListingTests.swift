import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// How directories are listed.
    @Suite struct ListingTests {
        private func thirtyFiles(_ tree: inout RemoteTree) {
            for number in 0..<30 { tree.addFile("f\(number)", content: RemoteContent("x")) }
        }

        private var tenAPage: InMemoryProvider.Options {
            var options = InMemoryProvider.Options()
            options.pageSize = 10
            return options
        }

        @Test func oneListingServesEverybody() async throws {
            try await EngineFixture.run(fill: thirtyFiles) { fixture in
                let gate = fixture.provider.faults.hold(.enumerate)
                try await withThrowingTaskGroup(of: [String].self) { group in
                    for _ in 0..<10 { group.addTask { try await fixture.list() } }
                    #expect(await fixture.provider.log.waits(.enumerate))
                    gate.open()
                    for try await names in group { #expect(names.count == 30) }
                }
                try await fixture.list()
                #expect(fixture.provider.log.count(of: .enumerate) == 1)
            }
        }

        @Test("NAME-12: the first entries come before the last page") func theFirstEntriesComeBeforeTheLastPage()
            async throws
        {
            try await EngineFixture.run(options: tenAPage, fill: thirtyFiles) { fixture in
                let gate = fixture.provider.faults.hold(.enumerate, skipping: 1)
                try await fixture.engine.list(.root, beyond: 0, request: fixture.request)
                #expect(try fixture.names().count == 10)
                #expect(try fixture.replica.database.inode(.root)?.content == .partial)
                gate.open()
                #expect(try await fixture.list() == (0..<30).map { "f\($0)" })
            }
        }

        @Test("NAME-12: an expired page starts again without duplicates or gaps")
        func anExpiredPageStartsAgainWithoutDuplicatesOrGaps() async throws {
            try await EngineFixture.run(options: tenAPage, fill: thirtyFiles) { fixture in
                fixture.provider.faults.fail(.enumerate, with: FileProviderError(.pageExpired), skipping: 2)
                let names = try await fixture.list()
                #expect(names == (0..<30).map { "f\($0)" })
                #expect(fixture.provider.log.count(of: .enumerate) == 6)
            }
        }

        @Test func pagesThatExpireForeverAreGivenUp() async throws {
            try await EngineFixture.run(options: tenAPage, fill: thirtyFiles) { fixture in
                fixture.provider.faults.fail(.enumerate, with: FileProviderError(.pageExpired), times: nil)
                #expect(await failure { try await fixture.list() }?.code == .pageExpired)
                #expect(fixture.provider.log.count(of: .enumerate) < 20)
            }
        }

        @Test(arguments: [
            FaultScript.Effect.pageToken(nil),
            .pageToken(FileProviderPage(rawValue: [UInt8](repeating: 1, count: 501))),
        ])
        func aTokenThatMakesNoSenseIsReported(effect: FaultScript.Effect) async throws {
            try await EngineFixture.run(options: tenAPage, fill: thirtyFiles) { fixture in
                fixture.provider.faults.add(effect, to: .enumerate)
                #expect(await failure { try await fixture.list() }?.code == .malformedResponse)
                #expect(fixture.hasWarning("a page token"))
                #expect(try fixture.replica.database.inode(.root)?.content == .dataless)
                fixture.provider.faults.clear()
                let names = try await fixture.list()
                #expect(names.count == 30)
            }
        }

        @Test func aPageOfFarTooManyItemsIsRefused() async throws {
            try await EngineFixture.run { fixture in
                let item = FileProviderItem(
                    itemIdentifier: "x", parentItemIdentifier: .rootContainer, filename: "x", kind: .directory,
                    itemVersion: ItemVersion(contentVersion: "1", metadataVersion: "1"))
                fixture.provider.faults.add(
                    .extraItems(Array(repeating: item, count: 100 * PageValidator.pageSize + 1)), to: .enumerate)
                #expect(await failure { try await fixture.list() }?.code == .malformedResponse)
                #expect(fixture.hasWarning("a page of 100001 items"))
            }
        }

        @Test("NAME-8: a listing of ever new items ends with an error", arguments: [100_000, 1])
        func endlessItems(aPage count: Int) throws {
            let item = FileProviderItem(
                itemIdentifier: "x", parentItemIdentifier: .rootContainer, filename: "x", kind: .directory,
                itemVersion: ItemVersion(contentVersion: "1", metadataVersion: "1"))
            let items = Array(repeating: item, count: count)
            var (validator, pages) = (PageValidator(of: .rootContainer), 0)
            let error = #expect(throws: FileProviderError.self) {
                while pages < 1_000_000 {
                    let next = FileProviderPage(rawValue: Array(String(pages).utf8))
                    try validator.take(ItemPage(items: items, nextPage: next)) { _ in false }
                    pages += 1
                }
            }
            #expect(error?.code == .malformedResponse && pages == min(100_000, 10_000_000 / count))
        }

        @Test func itemsThatCannotBeShownAreReportedAndTheOthersShown() async throws {
            try await EngineFixture.run(fill: { tree in
                for name in ["", ".", "..", "a/b", "nul\0", String(repeating: "x", count: 256)] {
                    tree.addFile(name, content: RemoteContent("x"))
                }
                tree.addSymbolicLink("empty", to: "")
                let negative = tree.addFile("negative", content: RemoteContent("x"))
                tree.edit(negative) { $0.documentSize = -1 }
                tree.addFile("good", content: RemoteContent("x"))
                tree.addFile("caf\u{E9}", content: RemoteContent("composed"))
                tree.addFile("cafe\u{301}", content: RemoteContent("decomposed"))
            }) { fixture in
                let names = try await fixture.list().map { Array($0.utf8) }
                #expect(names == ["good", "caf\u{E9}", "cafe\u{301}"].map { Array($0.utf8) })
                #expect(fixture.engine.warnings.texts.count == 8)
            }
        }

        @Test func twoItemsOfOneNameAreBothShown() async throws {
            try await EngineFixture.run(fill: { tree in
                tree.addFile("a.txt", content: RemoteContent("first"), identifier: "1")
                tree.addFile("a.txt", content: RemoteContent("second"), identifier: "2")
            }) { fixture in
                let names = try await fixture.list()
                #expect(names.count == 2)
                #expect(Set(names).count == 2)
                #expect(names.contains("a.txt"))
                #expect(fixture.hasWarning("two items are called 'a.txt'"))
                #expect(try await fixture.read("1") == Array("first".utf8))
                #expect(try await fixture.read("2") == Array("second".utf8))
                fixture.provider.change { $0.delete("1") }
                try await fixture.engine.refresh()
                #expect(try await fixture.list() == ["a.txt"])
                #expect(try fixture.engine.currentWarnings() == [])
            }
        }

        @Test func oneItemOfTwoNamesIsReported() async throws {
            try await EngineFixture.run { fixture in
                let twins = ["one", "other"].map { name in
                    FileProviderItem(
                        itemIdentifier: "x", parentItemIdentifier: .rootContainer, filename: name, kind: .directory,
                        itemVersion: ItemVersion(contentVersion: "1", metadataVersion: "1"))
                }
                fixture.provider.faults.add(.extraItems(twins), to: .enumerate)
                let names = try await fixture.list()
                #expect(names == ["other"])
                #expect(fixture.hasWarning("'one' and 'other' in"))
                // A listing without twins ends the warning.
                fixture.provider.faults.clear()
                fixture.provider.faults.add(.extraItems([twins[0]]), to: .enumerate)
                _ = try await fixture.engine.evict(.root, isStrict: false)
                #expect(try await fixture.list() == ["one"])
                #expect(fixture.engine.warnings.texts == [])
            }
        }

        @Test("NAME-6: items that cannot be shown are reported each, and not as one item")
        func itemsWithoutIdentifiers() async throws {
            try await EngineFixture.run { fixture in
                let unusable = ["one", "other"].map { name in
                    FileProviderItem(
                        itemIdentifier: "", parentItemIdentifier: .rootContainer, filename: name, kind: .file,
                        itemVersion: ItemVersion(contentVersion: "", metadataVersion: ""))
                }
                fixture.provider.faults.add(.extraItems(unusable), to: .enumerate)
                let listed = try await fixture.list()
                #expect(listed == [])
                #expect(fixture.hasWarning("'one'") && fixture.hasWarning("'other'"))
                #expect(!fixture.hasWarning("as one item"), "\(fixture.engine.warnings.texts)")
            }
        }

        @Test("NAME-6: a warning about what a directory leaves out ends with the next listing, or the directory")
        func omissions() async throws {
            try await EngineFixture.run(
                options: .with(\.changeFeed, false),
                fill: { tree in
                    tree.addDirectory("d", identifier: "d")
                    tree.addFile("f", in: "d", content: RemoteContent("x"))
                }
            ) { fixture async throws in
                fixture.provider.faults.add(.omissions(["one", "two", "two"]), to: .enumerate, of: "d")
                #expect(try await fixture.list("d") == ["f"])
                #expect(try fixture.engine.currentWarnings() == ["one", "two (2 times)"])
                try await fixture.engine.refresh()
                #expect(try fixture.engine.currentWarnings() == ["one", "two (2 times)"])
                fixture.provider.faults.clear()
                fixture.provider.faults.add(.omissions(["two"]), to: .enumerate, of: "d")
                try await fixture.engine.refresh()
                #expect(try fixture.engine.currentWarnings() == ["two"])
                fixture.provider.faults.clear()
                try await fixture.engine.refresh()
                #expect(try fixture.engine.currentWarnings() == [])
                fixture.provider.faults.add(.omissions(["two"]), to: .enumerate, of: "d")
                try await fixture.engine.refresh()
                #expect(try fixture.engine.currentWarnings() == ["two"])
                fixture.provider.changeSilently { $0.delete("d") }
                try await fixture.engine.refresh()
                #expect(try fixture.engine.currentWarnings() == [])
            }
        }

        @Test func theOnlyWaiterLeavingCancelsTheListing() async throws {
            try await EngineFixture.run(fill: thirtyFiles) { fixture in
                let gate = fixture.provider.faults.hold(.enumerate, times: 1)
                let lister = Task { await failure { try await fixture.list() } }
                #expect(await fixture.provider.log.waits(.enumerate))
                let start = ContinuousClock.now
                lister.cancel()
                #expect(await lister.value?.code == .userCancelled)
                #expect(ContinuousClock.now - start < .seconds(5))
                #expect(await eventually { fixture.provider.log.calls(of: .enumerate).first?.wasCancelled == true })
                gate.open()
                let names = try await fixture.list()
                #expect(names.count == 30)
            }
        }

        @Test func listingAfterACancelledListingIsServed() async throws {
            try await EngineFixture.run(fill: thirtyFiles) { fixture in
                for _ in 0..<20 {
                    let gate = fixture.provider.faults.hold(.enumerate, times: 1)
                    let leaves = Task { await failure { try await fixture.list() } }
                    #expect(await eventually { gate.arrivals == 1 })
                    leaves.cancel()
                    #expect(await leaves.value?.code == .userCancelled)
                    #expect(try await fixture.list().count == 30)
                    _ = try await fixture.engine.evict(.root, isStrict: false)
                }
            }
        }

        @Test func aMissingDirectoryIsLookedUpBeforeItGoes() async throws {
            try await EngineFixture.run(fill: { $0.addDirectory("d", identifier: "d") }, listing: "/") {
                fixture async throws in
                let number = try fixture.number("d")
                fixture.provider.faults.fail(.enumerate, of: "d", with: FileProviderError.noSuchItem("d"), times: nil)
                #expect(await failure { try await fixture.list("d") }?.code == .cannotSynchronize)
                #expect(fixture.provider.log.count(of: .item, "d") == 4)
                #expect(try fixture.number("d") == number)
                fixture.provider.faults.clear()

                fixture.provider.change { $0.delete("d") }
                fixture.kernel.clear()
                let failure = await failure { try await fixture.engine.list(number, request: fixture.request) }
                #expect(failure?.code == .noSuchItem)
                #expect(try fixture.replica.database.item("d") == nil)
                #expect(fixture.kernel.invalidations.contains(.deletion(parent: .root, child: number, name: "d")))
            }
        }

        @Test("CHANGE-7: a directory that is not found while it moves is listed again, and its listing compared")
        func aDirectoryThatMovesMeanwhile() async throws {
            try await EngineFixture.run(
                options: .with(\.changeFeed, false),
                fill: { tree in
                    let directory = tree.addDirectory("d", identifier: "d")
                    tree.addFile("one", in: directory, content: RemoteContent("1"))
                }
            ) { fixture in
                try await fixture.list()
                fixture.provider.faults.fail(.enumerate, of: "d", with: FileProviderError.noSuchItem("d"), times: 2)
                let first = try await fixture.list("d")
                #expect(first == ["one"])
                fixture.provider.change { tree in _ = tree.addFile("two", in: "d", content: RemoteContent("2")) }
                fixture.provider.faults.fail(.enumerate, of: "d", with: FileProviderError.noSuchItem("d"), times: 2)
                try await fixture.engine.refresh()
                #expect(try fixture.names(in: fixture.number("d")).sorted() == ["one", "two"])
            }
        }

        @Test func theRootNeverGoes() async throws {
            try await EngineFixture.run(fill: thirtyFiles) { fixture in
                let error = FileProviderError.noSuchItem(.rootContainer)
                fixture.provider.faults.fail(.enumerate, with: error)
                fixture.provider.faults.fail(.item, with: error)
                #expect(await failure { try await fixture.list() }?.code == .serverUnreachable)
                let names = try await fixture.list()
                #expect(names.count == 30)
            }
        }
    }
}
