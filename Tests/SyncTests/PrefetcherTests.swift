import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Listing ahead of a process that walks a tree.
    @Suite struct DirectoryPrefetcherTests {
        private func tree(_ tree: inout RemoteTree) {
            for number in 0..<60 {
                let directory = tree.addDirectory("d\(number)", identifier: ItemIdentifier("d\(number)"))
                tree.addDirectory("below", in: directory, identifier: ItemIdentifier("below\(number)"))
            }
        }

        private func ahead(_ fixture: EngineFixture) -> Int {
            fixture.provider.log.calls(of: .enumerate).filter { $0.request?.reason == .lookAhead }.count
        }

        @Test func aWalkIsListedAhead() async throws {
            // Three quarters of the places that the provider has, and as many again that wait for one.
            let window = DirectoryPrefetcher.window(atOnce: 24)
            try await EngineFixture.run(fill: tree, listing: "d0") { fixture async throws in
                #expect(ahead(fixture) == 0)
                try await fixture.engine.list(fixture.number("below0"), request: fixture.request)
                #expect(try await eventually { try fixture.inode("d9").content == .materialized })
                #expect(await eventually { ahead(fixture) == window })
                // The walker comes to what was listed ahead and is not kept waiting; more is listed then.
                let calls = fixture.provider.log.count(of: .enumerate)
                try await fixture.engine.list(fixture.number("d1"), request: fixture.request)
                try await fixture.engine.list(fixture.number("d2"), request: fixture.request)
                #expect(await eventually { ahead(fixture) == window + 2 })
                #expect(fixture.provider.log.count(of: .enumerate) == calls + 2)
            }
        }

        @Test func aLookHereAndThereIsNoWalk() async throws {
            try await EngineFixture.run(fill: tree, listing: "/") { fixture async throws in
                try await fixture.list("d3")
                #expect(ahead(fixture) == 0)
                #expect(fixture.provider.log.count(of: .enumerate) == 2)
            }
        }

        @Test func aForegroundListingNeverWaitsForThoseAhead() async throws {
            try await EngineFixture.run(options: .with(\.concurrentCalls, 4), fill: tree, listing: "d0") {
                fixture async throws in
                let gates = (1..<9).map { fixture.provider.faults.hold(.enumerate, of: ItemIdentifier("d\($0)")) }
                try await fixture.engine.list(fixture.number("below0"), request: fixture.request)
                #expect(await eventually { gates.reduce(0) { $0 + $1.waiting } >= 3 })
                try await fixture.engine.list(fixture.number("d9"), request: fixture.request)
                #expect(try fixture.inode("d9").content == .materialized)
                for gate in gates { gate.open() }
            }
        }
    }

    /// Fetching ahead of a process that reads the files of a directory in order.
    @Suite struct FilePrefetcherTests {
        private static let count = 40

        private func files(_ tree: inout RemoteTree) {
            for number in 0..<Self.count {
                let name = Self.name(number)
                tree.addFile(name, content: RemoteContent("content \(number)"), identifier: ItemIdentifier(name))
            }
            tree.addFile("large", content: .pattern(size: 300 << 10, seed: 1), identifier: "large")
            let other = tree.addDirectory("other", identifier: "other")
            for number in 0..<8 {
                tree.addFile(
                    "o\(number)", in: other, content: RemoteContent("o"), identifier: ItemIdentifier("o\(number)"))
            }
        }

        private static func name(_ number: Int) -> String { number < 10 ? "f0\(number)" : "f\(number)" }

        private func read(_ number: Int, _ fixture: EngineFixture) async throws {
            try await read(ItemIdentifier(Self.name(number)), fixture)
        }

        private func read(_ identifier: ItemIdentifier, _ fixture: EngineFixture) async throws {
            let inode = try fixture.inode(identifier)
            fixture.engine.inodeWasOpened(inode.number)
            guard inode.content != .materialized else { return }
            try await fixture.engine.provide(
                inode.number, version: inode.contentVersion, range: 0..<inode.size, request: fixture.request)
        }

        /// Reads the files of another directory in order until some are prefetched: by then the prefetcher has seen all
        /// reads before.
        private func prefetches(in directory: String, _ fixture: EngineFixture) async throws -> Bool {
            try await fixture.list(directory)
            for number in 0..<3 { try await read(ItemIdentifier("o\(number)"), fixture) }
            return await eventually { ahead(fixture, of: "o") > 0 }
        }

        /// How many files with this first letter were prefetched.
        private func ahead(_ fixture: EngineFixture, of letter: Character) -> Int {
            fixture.provider.log.calls(of: .fetch).filter {
                $0.request?.reason == .lookAhead && $0.identifier.rawValue.first == letter
            }.count
        }

        @Test func theNextSmallFilesAreFetchedAhead() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                for number in 0..<3 { try await read(number, fixture) }
                #expect(await eventually { ahead(fixture, of: "f") >= ReadPredictor.smallestWindow })
                for number in 3..<Self.count {
                    let identifier = ItemIdentifier(Self.name(number))
                    let isComing = await eventually { fixture.provider.log.count(of: .fetch, identifier) > 0 }
                    #expect(isComing, "'\(identifier)' was not fetched ahead")
                    try await read(number, fixture)
                }
                #expect(fixture.provider.log.count(of: .fetch, "large") == 0)
                for number in 0..<Self.count {
                    #expect(fixture.provider.log.count(of: .fetch, ItemIdentifier(Self.name(number))) == 1)
                }
            }
        }

        @Test func readingHereAndThereFetchesNothingAhead() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                for number in [3, 30, 12] { try await read(number, fixture) }
                #expect(try await prefetches(in: "other", fixture))
                #expect(ahead(fixture, of: "f") == 0)
            }
        }

        @Test func readingInAnyOrderFetchesTheDirectoryAhead() async throws {
            try await EngineFixture.run(fill: files, listing: "/") { fixture async throws in
                // Files before the last one that was read come, too.
                for number in [3, 30, 12, 38, 21, 35, 25] { try await read(number, fixture) }
                for number in [0, 39] {
                    let identifier = ItemIdentifier(Self.name(number))
                    #expect(await eventually { fixture.provider.log.count(of: .fetch, identifier) == 1 })
                }
                #expect(fixture.provider.log.count(of: .fetch, "large") == 0)
            }
        }

        @Test func failedPrefetchEndsPrefetching() async throws {
            var options = InMemoryProvider.Options()
            // One file is prefetched at a time.
            options.concurrentCalls = 2
            try await EngineFixture.run(options: options, fill: files, listing: "/") { fixture async throws in
                for number in 3..<Self.count {
                    fixture.provider.faults.fail(
                        .fetch, of: ItemIdentifier(Self.name(number)), with: FileProviderError(.cannotSynchronize))
                }
                for number in 0..<3 { try await read(number, fixture) }
                #expect(await eventually { ahead(fixture, of: "f") > 0 })
                #expect(try await prefetches(in: "other", fixture))
                #expect(ahead(fixture, of: "f") == 1)
            }
        }
    }
}
