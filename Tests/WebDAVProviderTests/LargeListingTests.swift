import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import WebDAVProvider

/// Counts what a provider asks of the system, in items.
private final class CountingManager: FileProviderManager {
    private let manager: TestManager
    private let work = Atomic<Int>(0)

    init(_ manager: TestManager) {
        self.manager = manager
    }

    /// How many items have been given or looked up.
    var count: Int { work.load(ordering: .relaxed) }

    private func counted<Value>(_ count: Int, _ value: Value) -> Value {
        work.add(count, ordering: .relaxed)
        return value
    }

    var domain: FileProviderDomain { manager.domain }
    var stateDirectory: FilePath { manager.stateDirectory }
    var store: any ProviderStore { manager.store }
    func signalEnumerator() {}
    func signalErrorResolved(_ code: FileProviderError.Code) {}
    func report(_ warning: String) { manager.report(warning) }
    func materializedDirectories() -> [ItemIdentifier] { [] }

    func remotePath(of identifier: ItemIdentifier) -> [String]? { counted(1, manager.remotePath(of: identifier)) }

    func identifier(ofChildNamed name: String, in directory: ItemIdentifier) -> ItemIdentifier? {
        counted(1, manager.identifier(ofChildNamed: name, in: directory))
    }

    func identifiers(ofChildrenNamed names: [String], in directory: ItemIdentifier) -> [ItemIdentifier?] {
        counted(names.count, manager.identifiers(ofChildrenNamed: names, in: directory))
    }

    func knownItems(in directory: ItemIdentifier) -> [KnownItem] {
        let items = manager.knownItems(in: directory)
        return counted(items.count, items)
    }

    func visitKnownItems(in directory: ItemIdentifier, _ visit: (KnownItem) -> Bool) {
        for item in manager.knownItems(in: directory) where !counted(1, visit(item)) { return }
    }

    func knownItems(withContentVersions versions: [[UInt8]]) -> [KnownItem] {
        counted(versions.count, manager.knownItems(withContentVersions: Array(Set(versions).prefix(1))))
    }

    func knownIdentifiers(among identifiers: [ItemIdentifier]) -> Set<ItemIdentifier> {
        counted(identifiers.count, manager.knownIdentifiers(among: identifiers))
    }
}

@Suite("Large directories on WebDAV", .tags(.server, .timing), .serialized)
struct LargeListingTests {
    /// Lists a directory page by page, and lets the system know each page before the next is asked for.
    ///
    /// - Returns: the sizes of the pages.
    private func pages(
        _ provider: any FileProviderReplicatedExtension, _ manager: TestManager, of directory: FileProviderItem
    ) async throws -> [Int] {
        let enumerator = try provider.enumerator(
            for: directory.itemIdentifier, request: FileProviderRequest(reason: .listing))
        defer { enumerator.invalidate() }
        var sizes: [Int] = []
        var page: FileProviderPage? = .initial
        while let current = page {
            let answer = try await enumerator.enumerateItems(startingAt: current, suggestedPageSize: 1000)
            manager.learn(answer.items)
            sizes.append(answer.items.count)
            page = answer.nextPage
        }
        return sizes
    }

    /// Lists a directory of so many files twice: as one that is new, and compared with what is known.
    ///
    /// - Returns: how many items the provider has asked the system for, each time.
    private func work(for count: Int) async throws -> (first: Int, again: Int) {
        var work = (first: 0, again: 0)
        try await PlainServer.run("many=\(count)") { server async throws in
            let manager = TestManager(
                domain: FileProviderDomain(identifier: "test", source: "webdav://127.0.0.1:\(server.server.port)/"),
                stateDirectory: server.directory.path)
            let counting = CountingManager(manager)
            let provider = try WebDAVProvider.make(
                for: counting, credentials: { nil }, logger: Logger(label: "test"))
            let session = ProviderSession(provider: provider, manager: manager)
            let directory = try await session.find("many")
            let before = counting.count
            let sizes = try await pages(provider, manager, of: directory)
            work.first = counting.count - before
            #expect(sizes.reduce(0, +) == count && sizes.allSatisfy { $0 <= 1000 }, "\(sizes)")
            #expect(sizes.count >= count / 1000)
            _ = try await pages(provider, manager, of: directory)
            work.again = counting.count - before - work.first
            await provider.invalidate()
        }
        return work
    }

    @Test("DAV-23: the work of listing a directory grows as the number of its entries") func isLinear() async throws {
        let (small, large) = (try await work(for: 2000), try await work(for: 8000))
        #expect(large.first <= 5 * small.first && large.again <= 5 * small.again, "\(small) and \(large)")
        #expect(large.first <= 5 * 8000 && large.again <= 5 * 8000, "\(large)")
    }

    @Test("DAV-23: entries are given while the rest of the listing is still to come") func isStreamed() async throws {
        try await PlainServer.withSession("many=6000", "hold=2500") { server, session async throws in
            let directory = try await session.find("many")
            let enumerator = try session.provider.enumerator(
                for: directory.itemIdentifier, request: FileProviderRequest(reason: .listing))
            var (items, page) = ([FileProviderItem](), FileProviderPage.initial)
            while items.count < 2500 {
                let answer = try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: 1000)
                items += answer.items
                page = try #require(answer.nextPage)
            }
            #expect(items.count == 2500)
            try await Command.run("curl", "-sS", "http://127.0.0.1:\(server.server.port)/.release").expectSuccess()
            var next: FileProviderPage? = page
            while let current = next {
                let answer = try await enumerator.enumerateItems(startingAt: current, suggestedPageSize: 1000)
                items += answer.items
                next = answer.nextPage
            }
            #expect(Set(items.map(\.itemIdentifier)).count == 6000)
        }
    }

    @Test("An invalidated listing ends, and one that failed starts again")
    func endsWhenUnwanted() async throws {
        try await PlainServer.withSession("many=6000", "hold=2500") { server, session async throws in
            let directory = try await session.find("many")
            let enumerator = try session.provider.enumerator(
                for: directory.itemIdentifier, request: FileProviderRequest(reason: .listing))
            let first = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 1000)
            // One of them is the request for the state.
            #expect(try await server.state().connections.busy == 2)
            enumerator.invalidate()
            let next = try #require(first.nextPage)
            do {
                _ = try await enumerator.enumerateItems(startingAt: next, suggestedPageSize: 1000)
            } catch let error as FileProviderError {
                #expect(error.code == .pageExpired)
            }
            _ = try await Command.run("curl", "-sS", "http://127.0.0.1:\(server.server.port)/.release")
            #expect(await eventually { (try? await server.state().connections.busy) == 1 })
        }
    }

    @Test("Entries that are not consumed go to a file, and come back in order") func spool() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        var spool = EntrySpool(in: directory.path)
        defer { spool.close() }
        func entry(_ number: Int) -> RemoteEntry {
            var entry = RemoteEntry(
                name: "näme \(number)\u{1F600}", kind: number % 7 == 0 ? .directory : .file,
                tag: Array("e5-\(number)".utf8), isTagStrong: number % 2 == 0,
                stableIdentifier: number % 3 == 0 ? nil : "\(number)",
                size: number % 5 == 0 ? nil : Int64(number) << 20,
                attributes: RemoteAttributes(
                    contentModificationDate: number % 11 == 0
                        ? nil : FileTimestamp(seconds: Int64(number), nanoseconds: 7),
                    permissions: number % 13 == 0 ? nil : 0o751),
                isWritable: [nil, true, false][number % 3])
            entry.isTagUnsettled = number % 17 == 0
            entry.isTrashable = number % 19 == 0
            return entry
        }
        var (added, taken) = (0, 0)
        for (more, less) in [(30_000, 10), (5, 20_000), (20_000, 1), (0, 29_994), (3000, 3000), (9000, 9000)] {
            for _ in 0..<more {
                try spool.append(entry(added))
                added += 1
            }
            if more == 30_000 { #expect(spool.spilled > 500_000) }
            for found in try spool.take(less) {
                #expect(found == entry(taken))
                taken += 1
            }
            #expect(spool.count == added - taken)
        }
        #expect(taken == added && spool.spilled == 0)
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path.string).isEmpty)
    }

    @Test("DAV-23: entries that were consumed take no memory, also where there are always more")
    func forgetsConsumed() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        var spool = EntrySpool(in: directory.path)
        defer { spool.close() }
        var (added, taken) = (0, 0)
        for round in 0..<50 {
            for _ in 0..<(round == 0 ? 1100 : 1000) {
                try spool.append(RemoteEntry(name: "\(added)", kind: .file, tag: [], isTagStrong: false, size: 0))
                added += 1
            }
            for found in try spool.take(1000) {
                #expect(found.name == "\(taken)")
                taken += 1
            }
            #expect(spool.count == 100 && spool.held <= 200 && spool.spilled == 0)
        }
        #expect(taken == 50_000)
    }

    @Test("DAV-23: long entries go to the file although they are few, and come back a few at a time")
    func countsBytes() throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        var spool = EntrySpool(in: directory.path)
        defer { spool.close() }
        let tag = [UInt8](repeating: 1, count: 1 << 20)
        for number in 0..<64 {
            try spool.append(RemoteEntry(name: "\(number)", kind: .file, tag: tag, isTagStrong: false, size: 0))
        }
        #expect(spool.held <= 5)
        var taken = 0
        while spool.count > 0 {
            let found = try spool.take(1000)
            #expect((1...10).contains(found.count))
            for entry in found {
                #expect(entry.name == "\(taken)")
                taken += 1
            }
        }
        #expect(taken == 64)
    }
}
