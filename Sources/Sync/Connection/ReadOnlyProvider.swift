import FileProvider
import SystemPackage

/// A provider whose remote is not to be changed. It passes on every call that reads and refuses every call that writes, so
/// that no part of the engine can change the remote of a read-only domain.
///
/// It is no ``EarlyContentReceiver``: nothing is sent ahead of a file that is being written.
struct ReadOnlyProvider: FileProviderReplicatedExtension, ChangeReporter {
    private let provider: any FileProviderReplicatedExtension

    init(_ provider: any FileProviderReplicatedExtension) {
        self.provider = provider
    }

    /// What a change says that is not sent.
    static let refusal = FileProviderError.posix(
        .readOnlyFileSystem,
        "the domain is read-only, so nothing is sent to the remote: mount it with --no-read-only to send it")

    // MARK: - Writing

    func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        // The provider looks whether it has the item and makes nothing.
        guard options.contains(.recognizeOnly) else { throw Self.refusal }
        return try await provider.createItem(
            basedOn: template, fields: fields, contents: contents, options: options, request: request)
    }

    func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange {
        throw Self.refusal
    }

    func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        throw Self.refusal
    }

    // MARK: - Reading

    var features: ProviderFeatures { provider.features }

    var remarks: [String] { provider.remarks }

    func invalidate() async { await provider.invalidate() }

    func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
        try await provider.item(for: identifier, request: request)
    }

    func enumerator(for container: ItemIdentifier, request: FileProviderRequest) throws -> any FileProviderEnumerator {
        try provider.enumerator(for: container, request: request)
    }

    func fetchThumbnails(
        for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ) async throws {
        try await provider.fetchThumbnails(
            for: identifiers, requestedSize: requestedSize, request: request,
            perThumbnailCompletionHandler: perThumbnailCompletionHandler)
    }

    func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        try await provider.fetchContents(for: identifier, version: version, range: range, request: request, into: sink)
    }

    func quota() async throws -> RemoteQuota? { try await provider.quota() }

    func materializedItemsDidChange() async { await provider.materializedItemsDidChange() }

    func pendingItemsDidChange() async { await provider.pendingItemsDidChange() }

    func importDidFinish() async { await provider.importDidFinish() }

    // MARK: - What the remote reports

    func changeReports() async throws -> ChangeReports {
        try await (provider as? any ChangeReporter)?.changeReports() ?? .none
    }

    func changes(since mark: ChangeMark?, among directories: [ItemIdentifier]) async throws -> ChangeReport {
        guard let reporter = provider as? any ChangeReporter else { return ChangeReport(changed: nil, mark: nil) }
        return try await reporter.changes(since: mark, among: directories)
    }

    func changes(since mark: ChangeMark?, in directory: ItemIdentifier) async throws -> ChangeReport {
        guard let reporter = provider as? any ChangeReporter else { return ChangeReport(changed: nil, mark: nil) }
        return try await reporter.changes(since: mark, in: directory)
    }
}
