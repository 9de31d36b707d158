import FileProvider
import FileProviderTesting
import Logging
import Replica
import Synchronization
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// A remote that reports which of the listed directories have changed.
    @Suite struct ReportedDirectoriesTests {
        @Test("CHANGE-1: what is made in a directory that is being listed is shown, though no report names it")
        func listedWhileARemoteReports() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let remote = InMemoryProvider(options: .with(\.changeFeed, false))
            remote.change { _ = $0.addDirectory("d", identifier: "d") }
            let reporter = Reporter(remote: remote)
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let replica = try Replica(at: directory["replica"], readers: 4, logger: logger)
            let engine = SyncEngine(
                provider: reporter, replica: replica, open: OpenSet(), kernel: KernelRecorder(), polling: .never,
                logger: logger)
            let request = FileProviderRequest(reason: .reading, processIdentifier: 1)
            try await withCleanUp({
                remote.faults.clear()
                await engine.stop()
                try? replica.close()
            }) {
                try await engine.list(.root, request: request)
                // From here on there is a mark.
                try await engine.refresh()
                let number = try #require(try replica.database.item("d")).inode.number
                let gate = remote.faults.holdAnswer(.enumerate, of: "d", times: 1)
                let listing = Task { try await engine.list(number, request: request) }
                #expect(await eventually { gate.waiting == 1 })
                remote.changeSilently { _ = $0.addFile("new", in: "d", content: RemoteContent("new")) }
                reporter.note("d")
                try await engine.refresh()
                gate.open()
                try await listing.value
                try await engine.refresh()
                #expect(try replica.database.entries(of: number, after: 0, limit: 10).map(\.name) == ["new"])
            }
        }
    }
}

/// Reports the directories that a test has noted; a mark is how many there were.
private final class Reporter: FileProviderReplicatedExtension, ChangeReporter {
    private let remote: InMemoryProvider
    private let noted = Mutex<[ItemIdentifier]>([])

    init(remote: InMemoryProvider) {
        self.remote = remote
    }

    func note(_ directory: ItemIdentifier) { noted.withLock { $0.append(directory) } }

    func changeReports() async throws -> ChangeReports { .ofAll }

    func changes(since mark: ChangeMark?, among directories: [ItemIdentifier]) async throws -> ChangeReport {
        noted.withLock { noted in
            let changed = mark.map { Set(noted.dropFirst(Int($0.first ?? 0))).intersection(directories) }
            return ChangeReport(changed: changed, mark: [UInt8(noted.count)])
        }
    }

    func changes(since mark: ChangeMark?, in directory: ItemIdentifier) async throws -> ChangeReport {
        ChangeReport(changed: nil, mark: nil)
    }

    var features: ProviderFeatures { remote.features }

    func invalidate() async { await remote.invalidate() }

    func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
        try await remote.item(for: identifier, request: request)
    }

    func enumerator(for container: ItemIdentifier, request: FileProviderRequest) throws -> any FileProviderEnumerator {
        try remote.enumerator(for: container, request: request)
    }

    func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        try await remote.fetchContents(for: identifier, version: version, range: range, request: request, into: sink)
    }
}
