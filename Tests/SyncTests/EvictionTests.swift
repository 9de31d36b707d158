import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Making a tree local and dataless again.
    @Suite struct EvictionTests {
        private static let names: [ItemIdentifier] = ["a", "b", "c", "deep"]

        private func tree(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            for name in ["a", "b", "c"] {
                tree.addFile(name, in: "d", content: RemoteContent("12345"), identifier: ItemIdentifier(name))
            }
            tree.addDirectory("below", in: "d", identifier: "below")
            tree.addFile("deep", in: "below", content: RemoteContent("12345"), identifier: "deep")
            tree.addSymbolicLink("link", to: "a", in: "d", identifier: "link")
            tree.addFile("empty", in: "d", content: RemoteContent(""), identifier: "empty")
        }

        private func run(_ test: (EngineFixture) async throws -> Void) async throws {
            try await EngineFixture.run(fill: tree, listing: "/") { fixture async throws in
                try await test(fixture)
            }
        }

        private func downloadAll(_ fixture: EngineFixture) async throws {
            let failures = try await fixture.engine.download(
                fixture.number("d"), request: fixture.request, progress: { _, _ in })
            try #require(failures.isEmpty)
        }

        @Test("EVICT-1: an empty file that was evicted is materialized again when all of it is requested")
        func anEmptyFileComesBack() async throws {
            try await run { fixture in
                try await fixture.list("d")
                let number = try fixture.number("empty")
                let caller = LocalCaller(user: 0, group: 0)
                // Opened to be written, and not written.
                _ = try fixture.replica.change(open: fixture.open) {
                    try $0.contents.beginWriting(number, truncating: false, caller: caller)
                    try $0.contents.endWriting(number)
                }
                for _ in 0..<2 {
                    _ = try await fixture.engine.evict(number, isStrict: true)
                    #expect(try fixture.inode("empty").content == .dataless)
                    try await fixture.engine.materialize(number, request: fixture.request)
                    #expect(try fixture.inode("empty").content == .materialized)
                }
                #expect(fixture.provider.log.count(of: .fetch) == 0)
            }
        }

        @Test func aTreeIsDownloadedAndEvicted() async throws {
            try await run { fixture in
                try await downloadAll(fixture)
                for name in Self.names { #expect(try fixture.inode(name).content == .materialized) }
                let before = try Self.names.map { try fixture.inode($0) }

                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: false)
                #expect(report.refusals.isEmpty)
                #expect(report.evictedFiles == 4)
                #expect(report.freedBytes == 20)
                #expect(try fixture.inode("d").content == .dataless)
                #expect(try fixture.inode("below").content == .dataless)
                for (name, old) in zip(Self.names, before) {
                    let inode = try fixture.inode(name)
                    #expect(inode.content == .dataless)
                    #expect(inode.number == old.number)
                    #expect(inode.size == old.size)
                    #expect(inode.modifiedAt == old.modifiedAt)
                    #expect(fixture.kernel.invalidations.contains(.contents(inode.number)))
                }
                #expect(try await fixture.list("d/below") == ["deep"])
                #expect(try fixture.number("deep") == before[3].number)
                #expect(try await fixture.read("deep") == Array("12345".utf8))
            }
        }

        @Test(
            "EVICT-2: an eviction is told of each file, and of each directory whose listing goes",
            .timeLimit(.minutes(1)))
        func isTold() async throws {
            try await run { fixture in
                try await downloadAll(fixture)
                let events = fixture.engine.events
                _ = try await fixture.engine.evict(fixture.number("d"), isStrict: true)
                // Of what is dataless already there is nothing to tell.
                _ = try await fixture.engine.evict(fixture.number("below"), isStrict: true)
                _ = try await fixture.engine.evict(fixture.number("d"), isStrict: true)
                _ = try await fixture.engine.evict(.root, isStrict: true)
                var told: [InodeNumber] = []
                for await event in events where event.kind == .evicted {
                    if let number = event.number { told.append(number) }
                    if event.number == .root { break }
                }
                let expected = try (Self.names + ["below", "d", .rootContainer]).map { try fixture.number($0) }
                #expect(told.sorted() == expected.sorted())
            }
        }

        @Test func theRestGoesWhenOneRefuses() async throws {
            try await run { fixture in
                try await downloadAll(fixture)
                fixture.open.insert(try fixture.number("b"))
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: false)
                #expect(report.refusals.map(\.number) == [try fixture.number("b")])
                #expect(report.refusals.map(\.refusal) == [.isOpen])
                #expect(report.evictedFiles == 3)
                #expect(try fixture.inode("b").content == .materialized)
                #expect(try fixture.inode("d").content == .materialized)
                #expect(try fixture.inode("below").content == .dataless)
            }
        }

        @Test func keptDownloadedItemsRefuseEviction() async throws {
            try await run { fixture in
                fixture.provider.change { $0.edit("c") { $0.contentPolicy = .keepDownloaded } }
                try await downloadAll(fixture)
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: false)
                #expect(report.refusals.map(\.number) == [try fixture.number("c")])
                #expect(report.refusals.map(\.refusal) == [.nonEvictable])
                #expect(report.evictedFiles == 3)
            }
        }

        @Test func strictStopsAtTheFirstThatRefuses() async throws {
            try await run { fixture in
                try await downloadAll(fixture)
                fixture.open.insert(try fixture.number("a"))
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: true)
                #expect(report.refusals.map(\.refusal) == [.isOpen])
                #expect(report.evictedFiles == 0)
                #expect(try fixture.inode("c").content == .materialized)
            }
        }

        @Test func evictionStopsPrefetchesAndNotAwaitedDownloads() async throws {
            try await run { fixture in
                try await fixture.list("d")
                let gate = fixture.provider.faults.hold(.fetch, of: "a")
                let reader = Task { try await fixture.read("a") }
                #expect(await eventually { gate.waiting == 1 })
                let report = try await fixture.engine.evict(fixture.number("a"), isStrict: false)
                #expect(report.refusals.map(\.refusal) == [.isDownloading])
                gate.open()
                #expect(try await reader.value == Array("12345".utf8))
            }
        }

        @Test func directoryEvictedDuringComparisonStaysEvicted() async throws {
            try await run { fixture in
                try await downloadAll(fixture)
                fixture.provider.faults.fail(
                    .changes, with: FileProviderError(.syncAnchorExpired), times: 1)
                let gate = fixture.provider.faults.hold(.enumerate, of: "below")
                let round = Task { try await fixture.engine.refresh() }
                #expect(await eventually { gate.waiting == 1 })
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: false)
                #expect(report.refusals.isEmpty)
                let lookups = fixture.provider.log.count(of: .item)
                gate.open()
                try await round.value
                #expect(try fixture.inode("below").content == .dataless)
                #expect(try fixture.inode("d").content == .dataless)
                #expect(fixture.provider.log.count(of: .item) == lookups)
                #expect(try await fixture.list("d/below") == ["deep"])
            }
        }

        @Test func directoryEvictedBeforeComparisonIsNotListed() async throws {
            try await run { fixture in
                try await downloadAll(fixture)
                fixture.provider.faults.fail(
                    .changes, with: FileProviderError(.syncAnchorExpired), times: 1)
                // All that can be under way at once waits here, and the round has its list of directories already.
                let gate = fixture.provider.faults.hold(.enumerate, of: .rootContainer)
                let round = Task { try await fixture.engine.refresh() }
                #expect(await eventually { gate.waiting == 1 })
                #expect(await eventually { fixture.provider.log.count(of: .enumerate) > 0 })
                _ = try await fixture.engine.evict(fixture.number("d"), isStrict: false)
                gate.open()
                try await round.value
                #expect(try fixture.inode("d").content == .dataless)
                #expect(try fixture.inode("below").content == .dataless)
            }
        }

        @Test func listingDuringEvictionAndComparisonSucceeds() async throws {
            try await run { fixture in
                try await fixture.list("d")
                fixture.provider.faults.fail(
                    .changes, with: FileProviderError(.syncAnchorExpired), times: 1)
                let gate = fixture.provider.faults.hold(.enumerate, of: "d")
                let round = Task { try await fixture.engine.refresh() }
                #expect(await eventually { gate.waiting == 1 })
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: false)
                #expect(report.refusals.isEmpty)
                let reader = Task { try await fixture.list("d") }
                gate.open()
                #expect(try await reader.value.contains("a"))
                try await round.value
                #expect(try fixture.inode("d").content == .materialized)
            }
        }

        @Test func aListingThatIsMadeAheadOfAWalkerIsGivenUp() async throws {
            func fill(_ tree: inout RemoteTree) {
                for outer in 0..<6 {
                    tree.addDirectory("o\(outer)", identifier: ItemIdentifier("o\(outer)"))
                    for inner in 0..<4 {
                        let name = "i\(outer)\(inner)"
                        tree.addDirectory(name, in: ItemIdentifier("o\(outer)"), identifier: ItemIdentifier(name))
                    }
                }
            }
            try await EngineFixture.run(fill: fill) { fixture in
                let gate = fixture.provider.faults.hold(.enumerate, of: "o5")
                try await fixture.list("o0/i00")
                try await fixture.list("o0/i01")
                try await fixture.list("o1/i10")
                #expect(await eventually { gate.waiting == 1 })
                let report = try await fixture.engine.evict(.root, isStrict: false)
                gate.open()
                #expect(report.refusals.isEmpty, "\(report.refusals)")
                #expect(try fixture.replica.database.inode(.root)?.content == .dataless)
                #expect(try fixture.inode("o5").content == .dataless)
            }
        }

        @Test func aListingThatAProcessWaitsForRefuses() async throws {
            try await run { fixture in
                try await fixture.list("d")
                let gate = fixture.provider.faults.hold(.enumerate, of: "below")
                let reader = Task { try await fixture.list("d/below") }
                #expect(await eventually { gate.waiting == 1 })
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: false)
                #expect(report.refusals.map(\.number) == [try fixture.number("below")])
                #expect(report.refusals.map(\.refusal) == [.isBeingListed])
                gate.open()
                #expect(try await reader.value == ["deep"])
            }
        }

        @Test func evictionOfDatalessItemSucceeds() async throws {
            try await run { fixture in
                let report = try await fixture.engine.evict(fixture.number("d"), isStrict: true)
                #expect(report.refusals.isEmpty)
                #expect(report.freedBytes == 0)
            }
        }

        @Test("EVICT-10: a download goes on past what fails") func downloadContinuesAfterFailures() async throws {
            try await run { fixture in
                fixture.provider.faults.fail(
                    .fetch, of: "b", with: FileProviderError(.fileReadNoPermission), times: nil)
                fixture.provider.faults.fail(
                    .enumerate, of: "below", with: FileProviderError(.fileReadNoPermission), times: nil)
                let failures = try await fixture.engine.download(
                    fixture.number("d"), request: fixture.request, progress: { _, _ in })
                #expect(failures.map(\.error.code) == [.fileReadNoPermission, .fileReadNoPermission])
                #expect(Set(failures.map(\.number)) == [try fixture.number("b"), try fixture.number("below")])
                #expect(try fixture.inode("a").content == .materialized)
                #expect(try fixture.inode("c").content == .materialized)
            }
        }

        @Test func aDownloadCanBeCancelled() async throws {
            try await run { fixture in
                let gate = fixture.provider.faults.hold(.fetch)
                let download = Task {
                    try await fixture.engine.download(
                        fixture.number("d"), request: fixture.request, progress: { _, _ in })
                }
                #expect(await eventually { gate.waiting > 0 })
                let start = ContinuousClock.now
                download.cancel()
                _ = try? await download.value
                #expect(ContinuousClock.now - start < .seconds(5))
                #expect(await eventually { gate.waiting == 0 })
            }
        }
    }
}
