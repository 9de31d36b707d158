import FileProvider
import FileProviderPaths
import HTTPTransport
import SystemPackage

/// A collection on a WebDAV server (RFC 4918), as a remote that knows its items by path.
///
/// No request is made before the first call. Servers differ: their features are read from the first response, and their
/// behavior is probed before the first change.
package final class WebDAVRemote: PathRemote {
    let server: WebDAVServer
    let prober: CapabilityProber
    private let listings: DirectoryListings
    private let reader: ContentReader
    private let attributes: AttributeStorage
    private let items: ItemChanges
    private let earlyUploads: EarlyUploads
    private let writer: FileWriter
    private let reports: CollectionReports
    private let restoration: TrashRestoration

    /// - Parameters:
    ///   - store: keeps what must survive a restart.
    ///   - spoolDirectory: holds listings that arrive faster than they are consumed.
    ///   - isReadOnly: the domain must not change anything on the server.
    ///   - credentials: looks the credentials up, whenever the server requires them.
    ///   - report: shows the user a message.
    init(
        source: WebDAVSource, transport: HTTPTransport, store: ReportingStore, spoolDirectory: FilePath,
        isReadOnly: Bool = false, credentials: @escaping @Sendable () -> WebDAVCredentials?,
        report: @escaping @Sendable (String) -> Void
    ) {
        let client = WebDAVClient(base: source.url, transport: transport, credentials: credentials)
        server = WebDAVServer(client, in: store, isReadOnly: isReadOnly, report: report)
        let changes = ChangeRequests(server: server)
        prober = CapabilityProber(changes)
        listings = DirectoryListings(server: server, spoolDirectory: spoolDirectory, report: report)
        reader = ContentReader(server: server)
        attributes = AttributeStorage(prober: prober)
        items = ItemChanges(prober: prober, attributes: attributes)
        earlyUploads = EarlyUploads(prober: prober)
        writer = FileWriter(
            prober: prober, attributes: attributes, earlyUploads: earlyUploads,
            chunkedUploads: ChunkedUploads(ChunkJournal(in: store), changes))
        reports = CollectionReports(server)
        restoration = TrashRestoration(items: items, journal: RestorationJournal(in: store))
    }

    package var traits: RemoteTraits { RemoteTraits(of: server, reportRemark: reports.remark) }

    package func close() async {
        server.hiddenFiles.close()
        server.lostUploads.contents.close()
        listings.endAll()
        server.cancelConnecting()
        let probe = prober.cancel()
        if !server.isReadOnly { await server.hiddenFiles.deleteAll(after: probe) }
        await server.client.transport.close()
    }

    // MARK: - Reading

    package func entry(at path: RemotePath) async throws -> RemoteEntry {
        try await server.entry(at: path, isDirectory: path.names.isEmpty)
    }

    package func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        try await listings.entries(in: path, from: token, limit: limit)
    }

    package func endListing(_ token: [UInt8]) { listings.end(token) }

    package func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        try await reader.read(path, tag: tag, range: range, into: sink)
    }

    package func quota() async throws -> RemoteQuota? { try await server.quota() }

    // MARK: - Changing

    package func write(
        _ contents: ContentSource, to path: RemotePath, attributes: RemoteAttributes, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await writer.write(contents, to: path, attributes, if: condition)
    }

    /// Before a change of anything but content.
    private func requireNoMove(to path: RemotePath) async throws {
        try await server.requireNoMove(to: path)
        try await writer.chunkedUploads.requireNoMove(to: path)
    }

    package func makeDirectory(at path: RemotePath, attributes: RemoteAttributes) async throws -> RemoteEntry {
        try await requireNoMove(to: path)
        return try await items.makeDirectory(at: path, attributes)
    }

    package func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        try await requireNoMove(to: path)
        try await requireNoMove(to: newPath)
        return try await items.move(path, to: newPath, kind: kind)
    }

    package func set(
        _ attributes: RemoteAttributes, of path: RemotePath, kind: ItemKind
    ) async throws -> (entry: RemoteEntry, notStored: ItemFields) {
        try await self.attributes.set(attributes, of: path, kind: kind)
    }

    package func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await requireNoMove(to: path)
        try await items.delete(path, kind: kind, if: condition)
    }
}

extension WebDAVRemote: RetryingProvider {
    package func retryNow() async { prober.retryNow() }
}

extension WebDAVRemote: HidingRemote {
    package func isRemoval(_ name: String) -> Bool { server.hiddenFiles.isSought(name) }

    package func finishRemoval(at path: RemotePath) async throws { await server.hiddenFiles.deleteSought(at: path) }
}

extension WebDAVRemote: EarlyRemote {
    package func receive(_ content: GrowingContent, in directory: RemotePath) async {
        await earlyUploads.receive(content, in: directory)
    }
}

extension WebDAVRemote: ThumbnailRemote {
    package var hasThumbnails: Bool { ServerPreviews(server: server).areMade }

    package func thumbnail(of path: RemotePath, size: ThumbnailSize) async throws -> [UInt8]? {
        try await ServerPreviews(server: server).preview(of: path, size: size)
    }
}

extension WebDAVRemote: ReportingRemote {
    package func changeReports() async throws -> ChangeReports { try await reports.changeReports() }

    package func changes(since mark: ChangeMark?, at path: RemotePath, isDeep: Bool) async throws -> RemoteReport {
        try await reports.changes(since: mark, at: path, isDeep: isDeep)
    }
}

extension WebDAVRemote: TrashingRemote {
    private func trash() async throws -> TrashContents {
        try await server.connect()
        return server.trash
    }

    package func trashedEntries() async throws -> [TrashedEntry] { try await trash().entries() }

    package func trashedEntries(in directory: TrashedEntry) async throws -> [TrashedEntry] {
        try await trash().entries(in: directory)
    }

    package func trashedEntry(_ top: TrashedEntry, below names: [String]) async throws -> TrashedEntry? {
        try await trash().entry(top, below: names)
    }

    package func throwAway(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await requireNoMove(to: path)
        try await items.trash(path, kind: kind, if: condition)
    }

    package func readTrashed(_ entry: TrashedEntry, range: Range<Int64>?, into sink: any ContentSink) async throws {
        try await trash().read(entry, range: range, into: sink)
    }

    package func restore(_ entry: TrashedEntry, to path: RemotePath) async throws -> RemoteEntry {
        try await restoration.restore(entry, to: path)
    }

    package func resumeRestoring(
        _ identifier: String, kind: ItemKind, to path: RemotePath
    ) async throws -> RemoteEntry? {
        try await restoration.resume(identifier, kind: kind, to: path)
    }

    package func deleteTrashed(_ entry: TrashedEntry) async throws { try await trash().delete(entry) }

    package func clearTrash(ofNamesBeginningWith prefix: String) async {
        await (try? trash())?.clear(namesBeginningWith: prefix)
    }
}
