import FileProvider
import FileProviderTesting
import Foundation
import Logging
import Replica
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Sync

/// Tests of the whole engine. One at a time, because what they say about time would not hold on a crowded machine.
@Suite("the engine", .serialized)
struct EngineTests {}

/// An engine over a real replica in a folder of its own and a remote in memory. Everything goes with the test.
final class EngineFixture: Sendable {
    let provider: InMemoryProvider
    let replica: Replica
    let engine: SyncEngine
    let open = OpenSet()
    let kernel = KernelRecorder()
    let request = FileProviderRequest(reason: .reading, processIdentifier: 1)

    /// Runs a test with a fixture of its own.
    ///
    /// - Parameters:
    ///   - patience: how long a call may make no progress.
    ///   - fill: makes the remote what it is before anybody looks.
    ///   - listed: the path of a directory that is listed before the test, with those on the way to it; `/` for the root alone.
    static func run(
        options: InMemoryProvider.Options = .init(), patience: Duration = .seconds(30),
        fill: (inout RemoteTree) -> Void = { _ in }, listing listed: String? = nil,
        _ test: (EngineFixture) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let fixture = try EngineFixture(in: directory, options: options, patience: patience)
        // A signal from before the start may lead to another round after the one with which the engine begins.
        fixture.provider.changeSilently(fill)
        try await withCleanUp({ await fixture.end() }) {
            if let listed { try await fixture.list(listed) }
            try await test(fixture)
        }
    }

    private init(in directory: TemporaryDirectory, options: InMemoryProvider.Options, patience: Duration) throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        provider = InMemoryProvider(options: options)
        replica = try Replica(at: directory["replica"], readers: 4, logger: logger)
        engine = SyncEngine(
            provider: provider, replica: replica, open: open, kernel: kernel, polling: .never, patience: patience,
            logger: logger)
        provider.attach(Signals(engine: engine))
    }

    private func end() async {
        provider.faults.clear()
        await engine.stop()
        try? replica.close()
    }

    /// A remote with the files `f0` to `f39`.
    static func fortyFiles(_ tree: inout RemoteTree) {
        for number in 0..<40 {
            tree.addFile("f\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
        }
    }

    // MARK: - What a process would do

    /// Lists the directory at a path, and all those on the way to it.
    @discardableResult
    func list(_ path: String = "") async throws -> [String] {
        var directory = InodeNumber.root
        try await engine.list(directory, request: request)
        for name in path.split(separator: "/") {
            let inode = try replica.database.lookup(String(name), in: directory).inode
            directory = try #require(inode, "no '\(name)' is shown").number
            try await engine.list(directory, request: request)
        }
        return try names(in: directory)
    }

    /// The inode that an item of the remote is here.
    func number(_ identifier: ItemIdentifier) throws -> InodeNumber {
        try #require(try replica.database.item(identifier), "'\(identifier)' is not known").inode.number
    }

    func inode(_ identifier: ItemIdentifier) throws -> InodeRecord {
        try #require(try replica.database.inode(try number(identifier)))
    }

    func names(in directory: InodeNumber = .root) throws -> [String] {
        try replica.database.entries(of: directory, after: 0, limit: 100_000).map(\.name)
    }

    /// Reads a file, all of it or a range, as a process does that has just opened it.
    func read(_ identifier: ItemIdentifier, _ range: Range<Int64>? = nil) async throws -> [UInt8] {
        let inode = try inode(identifier)
        return try await read(inode.number, version: inode.contentVersion, range ?? 0..<inode.size)
    }

    /// Reads a range of a file that was opened when it was of this version.
    func read(_ number: InodeNumber, version: [UInt8], _ range: Range<Int64>) async throws -> [UInt8] {
        try await engine.provide(number, version: version, range: range, request: request)
        let path = replica.directory.appending("contents").appending(String(number.rawValue)).string
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(range.lowerBound))
        return [UInt8](try file.read(upToCount: range.count) ?? Data())
    }

    /// Whether a warning with these words was given.
    func hasWarning(_ words: String) -> Bool {
        engine.warnings.texts.contains { $0.contains(words) }
    }
}

/// Hands a provider's signals to an engine.
private struct Signals: FileProviderManager {
    let engine: SyncEngine
    var domain: FileProviderDomain { FileProviderDomain(identifier: "test", source: "memory") }
    var stateDirectory: FilePath { "/nonexistent" }
    let store: any ProviderStore = InMemoryProviderStore()

    func signalEnumerator() { engine.signal() }
    func signalErrorResolved(_ code: FileProviderError.Code) {
        Task { [engine] in await engine.errorWasResolved(code) }
    }
    func remotePath(of identifier: ItemIdentifier) -> [String]? { nil }
    func identifier(ofChildNamed name: String, in directory: ItemIdentifier) -> ItemIdentifier? { nil }
    func materializedDirectories() -> [ItemIdentifier] { [] }
    func knownItems(in directory: ItemIdentifier) -> [KnownItem] { [] }
    func knownItems(withContentVersions versions: [[UInt8]]) -> [KnownItem] { [] }
    func knownIdentifiers(among identifiers: [ItemIdentifier]) -> Set<ItemIdentifier> { [] }
    func report(_ warning: String) { engine.warnings.report(warning) }
}

/// Inodes that a test says are open.
final class OpenSet: OpenInodes {
    private let numbers = Mutex<Set<InodeNumber>>([])

    func isOpen(_ number: InodeNumber) -> Bool { numbers.withLock { $0.contains(number) } }
    func insert(_ number: InodeNumber) { numbers.withLock { _ = $0.insert(number) } }
    func remove(_ number: InodeNumber) { numbers.withLock { _ = $0.remove(number) } }
}

/// Writes down what the kernel is told to forget.
final class KernelRecorder: KernelCache {
    private let told = Mutex<[KernelInvalidation]>([])

    var invalidations: [KernelInvalidation] { told.withLock { $0 } }
    func forget(_ effects: ReplicaEffects) { told.withLock { $0 += effects.invalidations } }
    func clear() { told.withLock { $0 = [] } }
}
