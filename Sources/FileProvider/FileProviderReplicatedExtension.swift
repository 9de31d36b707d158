/// What a provider can do, declared once instead of discovered by failing calls.
public struct ProviderFeatures: Hashable, Sendable {
    /// A range can be fetched from the middle of a file. Without it, every fetch is for a whole file.
    public var partialContentFetching: Bool
    /// The enumerator of the working set reports changes. Without it, the system compares directories.
    public var changeFeed: Bool
    /// Items can be created, changed and deleted.
    public var writing: Bool
    /// Items can be trashed: the trash can be enumerated, and items can be created in it, moved in and out, and deleted
    /// from it.
    public var trash: Bool
    /// A change can be made conditional on its base version. Without it, the system looks an item up before each upload and
    /// before each deletion of a file.
    public var conditionalWrites: Bool
    /// A file has an enumerator, too: it returns the file as its only item, and reports changes if it has a sync anchor.
    /// The system asks it every few seconds while a process has the file open.
    public var documentEnumeration: Bool
    /// The system calls ``FileProviderReplicatedExtension/materializedItemsDidChange()`` and
    /// ``FileProviderReplicatedExtension/pendingItemsDidChange()``.
    public var followsLocalSets: Bool
    /// A file's content version changes when its modification date is set, and a date is set only if the content version
    /// equals the base version. A new content version after setting a date then means unchanged content.
    public var datesMakeVersions: Bool
    /// A directory's content version changes with any of its descendants, at any depth. A comparison then skips the
    /// subtree of an unchanged directory. Read before each comparison: a provider may learn it from its remote.
    public var directoryVersionsCoverTrees: Bool
    /// Names, also of extended attributes, and link targets are bytes on the remote and need not be UTF-8. The provider returns
    /// and accepts them encoded by `FileNameText` of the module `FileNames`. Without it, an item or attribute whose name is not
    /// UTF-8 stays on this machine.
    public var byteNames: Bool
    /// The number of concurrent calls that the provider prefers.
    public var concurrentCalls: Int
    /// The item that ``FileProviderReplicatedExtension/fetchContents(for:version:range:request:into:)`` returns has attributes that listings
    /// lack. The system takes them, unless the item has another place.
    public var attributesComeWithContents = false
    /// The modification date of a file is kept as it was sent, to two seconds at least. Without it, what was sent and not answered is
    /// recognized by its content alone.
    public var keepsModificationDates = true
    /// The provider has thumbnails, which ``FileProviderReplicatedExtension/fetchThumbnails(for:requestedSize:request:perThumbnailCompletionHandler:)``
    /// returns. Read before each request. In either case the system uses the thumbnail that a picture itself has near its beginning.
    public var thumbnails = false
    /// Two contents of a file may have one content version, as where that is a size and a date, and the metadata version changes with each
    /// write. Where it has changed, and nothing else of an item that has content here, the system compares the bytes with the remote's.
    /// Until then it gives the old metadata version, after a `?`, as the base of changes; an empty one with content that goes with
    /// attributes or a place which may have been stored already by a call without an answer.
    public var contentVersionsMayRepeat = false
    /// While a call stands still, the system asks for the root from time to time: the provider's own means repeat what gets no answer
    /// for minutes, and answer for the root beside any other call. A remote that does not is shown as unreachable.
    package var isAskedBesideCalls = false

    /// A provider with the given features; by default one that can only be read, completely and without a change feed.
    public init(
        partialContentFetching: Bool = false, changeFeed: Bool = false, writing: Bool = false, trash: Bool = false,
        conditionalWrites: Bool = false, documentEnumeration: Bool = false, followsLocalSets: Bool = false,
        datesMakeVersions: Bool = false, directoryVersionsCoverTrees: Bool = false, byteNames: Bool = false,
        concurrentCalls: Int = 16
    ) {
        self.byteNames = byteNames
        self.partialContentFetching = partialContentFetching
        self.changeFeed = changeFeed
        self.writing = writing
        self.trash = trash
        self.conditionalWrites = conditionalWrites
        self.documentEnumeration = documentEnumeration
        self.followsLocalSets = followsLocalSets
        self.datesMakeVersions = datesMakeVersions
        self.directoryVersionsCoverTrees = directoryVersionsCoverTrees
        self.concurrentCalls = concurrentCalls
    }
}

/// A provider: the code that communicates with one remote. There is one instance per domain.
///
/// Calls may run concurrently, except that the working set is never enumerated twice at once. The system cancels a call by
/// cancelling its task; the call should then end soon and leave nothing visible on the remote. A provider throws
/// ``FileProviderError``, whose code decides what the system does. Any other error counts as transient: the system repeats
/// the call with backoff. A provider that blocks does so on threads of its own.
///
/// A provider that can only be read implements ``features``, ``item(for:request:)``, ``enumerator(for:request:)`` and
/// ``fetchContents(for:version:range:request:into:)``; all other requirements have default implementations.
///
/// ## Topics
///
/// ### Describing
/// - ``features``
/// - ``remarks``
/// - ``quota()``
///
/// ### Reading
/// - ``item(for:request:)``
/// - ``enumerator(for:request:)``
/// - ``fetchContents(for:version:range:request:into:)``
/// - ``fetchThumbnails(for:requestedSize:request:perThumbnailCompletionHandler:)``
///
/// ### Writing
/// - ``createItem(basedOn:fields:contents:options:request:)``
/// - ``modifyItem(_:baseVersion:changedFields:contents:options:request:)``
/// - ``deleteItem(identifier:baseVersion:options:request:)``
///
/// ### Notices
/// - ``materializedItemsDidChange()``
/// - ``pendingItemsDidChange()``
/// - ``importDidFinish()``
/// - ``invalidate()``
public protocol FileProviderReplicatedExtension: Sendable {
    /// What this provider can do. Read after construction.
    ///
    ///     var features: ProviderFeatures { ProviderFeatures(partialContentFetching: true, writing: true) }
    var features: ProviderFeatures { get }

    /// Sentences about this remote for the user, as far as they are known; shown by `yonder why`. Empty by default.
    ///
    ///     var remarks: [String] { ["the server does not store permissions"] }
    var remarks: [String] { get }

    /// Ends the provider: release connections and files. This is the last call; running calls may still finish. After two seconds its
    /// task is cancelled, and soon afterwards it is not waited for any more.
    ///
    ///     func invalidate() async { await connection.close() }
    func invalidate() async

    /// Returns the metadata of one item.
    ///
    ///     func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
    ///         guard let record = try await api.record(identifier.rawValue) else {
    ///             throw FileProviderError.noSuchItem(identifier)
    ///         }
    ///         return record.item
    ///     }
    ///
    /// - Parameters:
    ///   - identifier: an item's identifier. A reachable remote must answer ``ItemIdentifier/rootContainer``.
    ///   - request: why the system asks, and for which process.
    /// - Throws: `noSuchItem` only if the remote has said so: the system then removes the item here. `serverUnreachable`
    ///   and `notAuthenticated` for the root stop all calls of the domain until a probe succeeds.
    func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem

    /// Returns an enumerator of a container, at once and without network access.
    ///
    ///     func enumerator(
    ///         for container: ItemIdentifier, request: FileProviderRequest
    ///     ) throws -> any FileProviderEnumerator {
    ///         MyEnumerator(api: api, container: container)
    ///     }
    ///
    /// - Parameters:
    ///   - container: the root, a directory, ``ItemIdentifier/workingSet``, ``ItemIdentifier/trashContainer``, or a file
    ///     (with ``ProviderFeatures/documentEnumeration``).
    ///   - request: why the system asks, and for which process.
    /// - Throws: `noSuchItem`, `notAuthenticated`, `serverUnreachable`; `featureUnsupported` for a trash that the remote
    ///   does not have.
    func enumerator(for container: ItemIdentifier, request: FileProviderRequest) throws -> any FileProviderEnumerator

    /// Writes a file's content, or a range of it, to a sink.
    ///
    /// Write bytes as they arrive, in any order and each byte once; a waiting reader receives them at once. All bytes must
    /// be of one content version. Call ``ContentSink/confirmVersion()`` before the first byte if its version is certain by then, or
    /// else ``ContentSink/confirmVersion(of:)`` from time to time: an interrupted fetch of a large file goes on from there.
    ///
    ///     let response = try await api.get(identifier.rawValue, range: range, ifMatch: version)
    ///     if response.version == version { sink.confirmVersion() }
    ///     var offset = range?.lowerBound ?? 0
    ///     for try await chunk in response.body {
    ///         try sink.write(chunk, at: offset)
    ///         offset += Int64(chunk.count)
    ///     }
    ///     return response.item
    ///
    /// - Parameters:
    ///   - identifier: the file's identifier.
    ///   - version: the requested content version; nil for the current one.
    ///   - range: the requested bytes; nil for the whole file. Always nil without
    ///     ``ProviderFeatures/partialContentFetching``. Bytes outside the range are kept, too.
    ///   - request: why the system fetches, and for which process.
    ///   - sink: receives the bytes. Rethrow its errors: they mean that the bytes are not needed any more.
    /// - Returns: the item whose content was written; its content version is that of the bytes. Its other attributes
    ///   count only with ``ProviderFeatures/attributesComeWithContents``.
    /// - Throws: `versionNoLongerAvailable` if the remote has a newer version than `version`; `noSuchItem`;
    ///   `fileReadNoPermission`.
    func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem

    /// Fetches thumbnails of files, each of the file's present content. Called with ``ProviderFeatures/thumbnails``, when a program
    /// wants to show files whose content is not local.
    ///
    ///     func fetchThumbnails(
    ///         for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
    ///         perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ///     ) async throws {
    ///         for identifier in identifiers {
    ///             let image = try await api.preview(identifier.rawValue, width: requestedSize.width)
    ///             perThumbnailCompletionHandler(identifier, .success(image))
    ///         }
    ///     }
    ///
    /// - Parameters:
    ///   - identifiers: files, at most 100.
    ///   - requestedSize: a thumbnail should fit in it, and fill it in one dimension.
    ///   - request: why the system asks; no process waits for the answer.
    ///   - perThumbnailCompletionHandler: call it once for each identifier, as soon as its thumbnail is there, with an image file of a
    ///     common format (JPEG, PNG) of at most ``ThumbnailSize/maximumByteCount`` bytes; with nil where the file has no thumbnail.
    ///     After nil or an error the system does not ask again until the content has changed, or the remote was unreachable in between.
    /// - Throws: ``FileProviderError`` where no further thumbnail can be fetched.
    func fetchThumbnails(
        for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ) async throws

    /// Creates an item on the remote.
    ///
    /// The item becomes visible to others completely or not at all: upload to a temporary name, then rename. A call that
    /// throws leaves nothing visible, unless only the response was lost. The system then repeats the call with
    /// ``CreateItemOptions/mayAlreadyExist``, and the provider recognizes the item.
    ///
    ///     func createItem(
    ///         basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?,
    ///         options: CreateItemOptions, request: FileProviderRequest
    ///     ) async throws -> ItemChange {
    ///         if options.contains(.mayAlreadyExist), let item = try await api.find(template) {
    ///             return .applied(item, stillPending: [], shouldFetchContent: false)
    ///         }
    ///         let item = try await api.create(template, contents: contents)
    ///         return .applied(item, stillPending: fields.intersection([.permissions]), shouldFetchContent: false)
    ///     }
    ///
    /// - Parameters:
    ///   - template: the local item. Its identifier is the system's, and is the same when the call is repeated.
    ///   - fields: the fields of the template to set.
    ///   - contents: the file's bytes; nil for a directory or link, and for a dataless file that is offered again.
    ///   - options: `mayAlreadyExist` if the remote may have the item: after a lost response, in an import, or in a
    ///     reimport. The content version of the template is then that of its bytes; an empty one means that the bytes were
    ///     changed locally.
    ///   - request: why the system makes the change; no process waits for it.
    /// - Returns: the item with the remote's own identifier. The identifier of another known item means that both are the
    ///   same.
    /// - Throws: `filenameCollision` with the existing item; `noSuchItem` if the parent does not exist; `excludedFromSync`
    ///   to keep the item on this machine; the errors of ``ContentSource``.
    func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange

    /// Applies a local change to an item on the remote: all changed fields or none.
    ///
    /// ``ItemIdentifier/trashContainer`` as the new parent trashes the item; a directory is trashed with its descendants,
    /// for which no further calls follow, and sharing ends. Another parent restores a trashed item. The trash may contain
    /// equal names. A provider that needs unique names there returns other ones, and receives the original name when the
    /// item is restored.
    ///
    ///     func modifyItem(
    ///         _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
    ///         options: ModifyItemOptions, request: FileProviderRequest
    ///     ) async throws -> ItemChange {
    ///         let answer = try await api.update(
    ///             item.itemIdentifier.rawValue, fields: changedFields, of: item, contents: contents,
    ///             ifMatch: baseVersion.contentVersion)
    ///         return .applied(answer, stillPending: [], shouldFetchContent: false)
    ///     }
    ///
    /// - Parameters:
    ///   - item: the local item. A nil field in it is left unchanged.
    ///   - baseVersion: the version that the change is based on.
    ///   - changedFields: the fields to apply; ignore all others.
    ///   - contents: the new bytes if `changedFields` contains ``ItemFields/contents``; nil for an empty file.
    ///   - options: ``ModifyItemOptions/failOnConflict`` with every upload.
    ///   - request: why the system makes the change; no process waits for it.
    /// - Returns: the item as the remote has it now. A different identifier replaces the old one.
    /// - Throws: `localVersionConflictingWithServer` with the remote's item, for contents that are not based on the
    ///   remote's; `filenameCollision` with the existing item; `noSuchItem`; the errors of ``ContentSource``.
    func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange

    /// Deletes an item permanently. Deleting an item that does not exist succeeds.
    ///
    ///     try await api.delete(
    ///         identifier.rawValue, ifMatch: baseVersion.contentVersion, recursive: options.contains(.recursive))
    ///
    /// The provider compares the versions: only it knows whether two of them stand for two contents.
    ///
    /// - Throws: `deletionRejected` with the remote's item if a file's content version is not that of `baseVersion`, or if
    ///   `options` contains `onlyFromTrash` and the item is not in the trash any more; `directoryNotEmpty` for a directory
    ///   with children, unless `options` contains `recursive`.
    func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws

    /// Returns the quota of the remote, for `df`; nil (the default) if the remote reports none. Called occasionally.
    ///
    ///     func quota() async throws -> RemoteQuota? { RemoteQuota(free: try await api.freeBytes()) }
    ///
    /// - Throws: ``FileProviderError``. The last quota stays in use.
    func quota() async throws -> RemoteQuota?

    /// The set of materialized items has changed. Called at most once a second, with
    /// ``ProviderFeatures/followsLocalSets``. Does nothing by default.
    ///
    ///     func materializedItemsDidChange() async {
    ///         let changes = try? await manager.enumeratorForMaterializedItems()
    ///             .enumerateChanges(from: anchor, suggestedBatchSize: 1000)
    ///         // Subscribe to changes of these items.
    ///     }
    func materializedItemsDidChange() async

    /// The set of items with pending changes has changed. Called like ``materializedItemsDidChange()``.
    ///
    ///     func pendingItemsDidChange() async { pendingSetChanged.signal() }
    func pendingItemsDidChange() async

    /// All items of an import or reimport have been offered. Called again if the system crashed before it recorded the
    /// call. Does nothing by default.
    ///
    ///     func importDidFinish() async { await api.removeOldIdentifiers() }
    func importDidFinish() async
}

/// Default implementations, for a provider that cannot be written.
extension FileProviderReplicatedExtension {
    public var remarks: [String] { [] }

    public func invalidate() async {}

    public func quota() async throws -> RemoteQuota? { nil }

    public func fetchThumbnails(
        for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ) async throws {
        throw FileProviderError(.featureUnsupported, "this remote has no thumbnails")
    }

    public func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        throw FileProviderError(.featureUnsupported, "this remote cannot be written")
    }

    public func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange {
        throw FileProviderError(.featureUnsupported, "this remote cannot be written")
    }

    public func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        throw FileProviderError(.featureUnsupported, "this remote cannot be written")
    }

    public func materializedItemsDidChange() async {}
    public func pendingItemsDidChange() async {}
    public func importDidFinish() async {}
}
