/// What a provider can do, declared once instead of found out by failing.
public struct ProviderFeatures: Hashable, Sendable {
    /// Content can be fetched from the middle of a file.
    public var partialContentFetching: Bool
    /// The working set's enumerator has a history of changes.
    public var changeFeed: Bool
    /// Items can be created, changed and deleted.
    public var writing: Bool
    /// Items can be trashed: they allow it, the trash can be listed, and items can be made, moved in and out, and
    /// deleted there.
    public var trash: Bool
    /// A change can be made conditional on the version it was based on.
    public var conditionalWrites: Bool
    /// A file has an enumerator, too: it gives the file as its only item, and its changes where it has a sync anchor. It is
    /// asked every few seconds while a process has the file open.
    public var documentEnumeration: Bool
    /// The provider wants to be told when the sets of materialized and of pending items change. Whoever does not spares
    /// the system the bookkeeping.
    public var followsLocalSets: Bool
    /// A file's content version changes when its modification date is set, and a date is only set on the content that the
    /// base version names. So when a date that was sent comes back with another version, the content is the same.
    public var datesMakeVersions: Bool
    /// A directory's content version changes when anything below it does, at any depth. Who compares leaves out what is
    /// below one that is as it was. Asked whenever it matters: a provider may learn it of its remote.
    public var directoryVersionsCoverTrees: Bool
    /// Names and targets of symbolic links are bytes on the remote, and need not be UTF-8: the provider gives and takes them
    /// as ``FileNameText`` has them. What has such a name stays on this machine where the provider does not say so.
    public var byteNames: Bool
    /// How many calls the provider likes to serve at once.
    public var concurrentCalls: Int

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

/// A provider: the code that talks to one remote, one instance per domain.
///
/// All calls may be concurrent, except that the working set is never enumerated twice at once. A call is cancelled by
/// cancelling its task. Throw ``FileProviderError``; any other error counts as transient, and the call is made again.
public protocol FileProviderReplicatedExtension: Sendable {
    /// What this provider can do. Asked once, after it was made.
    var features: ProviderFeatures { get }

    /// What the user should know of this remote, a sentence each, as far as it is known by now: shown by `yonder why`.
    var remarks: [String] { get }

    /// The last call: stop, drop what is held. Calls under way may still finish.
    func invalidate() async

    /// One item's metadata; ``ItemIdentifier/rootContainer`` must be answered when the remote can be reached.
    func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem

    /// An enumerator for a container: the root, a directory, the working set, the trash, or a file whose changes are
    /// followed while it is open (``ProviderFeatures/documentEnumeration``). Made quickly, without the network.
    ///
    /// - Throws: `noSuchItem`, `notAuthenticated`, `serverUnreachable`; `featureUnsupported` for a trash that is not
    ///   there. Anything else is transient.
    func enumerator(for container: ItemIdentifier, request: FileProviderRequest) throws -> any FileProviderEnumerator

    /// Writes a file's content, or a range of it, into `sink`.
    ///
    /// Give bytes as they arrive, in any order, once each; a reader gets them at once. A provider without
    /// `partialContentFetching` is always asked for everything (`range` is nil).
    ///
    /// - Parameters:
    ///   - version: the content version that is wanted: all bytes of a local copy are of one version. `nil` takes any.
    ///   - range: the bytes that are wanted. What is given beyond it, on either side, is kept.
    /// - Returns: the item whose content was given: its content version is that of the bytes.
    /// - Throws: `versionNoLongerAvailable` when the remote has moved on from `version`.
    func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem

    /// Makes a new item on the remote.
    ///
    /// - Parameters:
    ///   - template: the item as it is here. Its identifier is the system's own, the same when the call is made again
    ///     after a crash.
    ///   - fields: what of the template is set.
    ///   - contents: the file's bytes; `nil` for what has none, and for a dataless item offered again.
    ///   - options: `mayAlreadyExist` for what the remote may have: after a lost answer, in an import, and when all is
    ///     offered again because identifiers are not to be trusted. Then the template's version is that of its bytes; a
    ///     content version that is empty says that they were changed here.
    /// - Returns: the item as the remote has it, under the remote's own identifier. One that is the item of another call
    ///   means that both are one.
    /// - Throws: `filenameCollision` with the item in the way; `noSuchItem` for a parent that is gone; what
    ///   ``ContentSource`` throws. A call that throws leaves nothing behind that could be seen, unless the answer was
    ///   lost: then the same call with `mayAlreadyExist` finds what was made.
    func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange

    /// Brings a local change to the remote.
    ///
    /// With ``ItemIdentifier/trashContainer`` as the new parent the item is trashed: a directory with all below it,
    /// which need not be told of any more. Sharing ends. With another parent a trashed item is restored. In the trash
    /// names may come twice; a provider that needs others there answers with them, and gets the name wanted when the
    /// item is restored.
    ///
    /// - Parameters:
    ///   - item: the item as it is here now.
    ///   - baseVersion: the version the change was made on; the remote having moved on from it is a conflict.
    ///   - changedFields: what changed. Nothing else of the item is looked at, and what the item leaves `nil` stays.
    ///   - contents: the new bytes, when `changedFields` has them; `nil` for none at all.
    /// - Returns: the item as the remote has it now. It may have another identifier: the old one means nothing then.
    /// - Throws: `localVersionConflictingWithServer` with the item as it is, for contents whose base is not the
    ///   remote's; `filenameCollision` with the item in the way; `noSuchItem`; what ``ContentSource`` throws.
    func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange

    /// Deletes an item for good. One that is already gone is a success.
    ///
    /// - Throws: `deletionRejected` with the item as it is, for a file whose content is not that of `baseVersion`;
    ///   `directoryNotEmpty` where `options` do not say `recursive`.
    func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws

    /// How much room the remote has; nil where that is not known. Asked for now and then, for `df`.
    func quota() async throws -> RemoteQuota?

    /// The set of materialized items has changed. Called where ``features`` say `followsLocalSets`.
    func materializedItemsDidChange() async

    /// The set of items with changes under way has changed. Likewise.
    func pendingItemsDidChange() async

    /// An import or reimport has offered every item.
    func importDidFinish() async
}

/// A provider that only reads needs none of the writing half.
extension FileProviderReplicatedExtension {
    public var remarks: [String] { [] }

    public func invalidate() async {}

    public func quota() async throws -> RemoteQuota? { nil }

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
