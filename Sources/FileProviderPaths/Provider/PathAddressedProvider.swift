import FileProvider

/// A provider of a remote that knows its items only by path.
///
///     struct MyRemote: PathRemote { ... }
///
///     let provider = PathAddressedProvider(remote: MyRemote(manager.domain.source), manager: manager)
///
/// It assigns identifiers to the remote's items, recognizes items that were renamed on the remote by what they have in common
/// with missing ones, makes changes on the condition of their base version, and finds out whether a call whose response was
/// lost was carried out. Its state is kept by the system, so it has no files of its own.
public final class PathAddressedProvider: FileProviderReplicatedExtension {
    package let remote: any PathRemote
    let tree: PathTree
    private let writer: PathWriter
    private let trees: TreeListings
    private let leftovers: Leftovers
    private let trashOfRemote: (contents: RemoteTrash, writer: TrashWriter)?

    /// The provider of a remote.
    ///
    /// - Parameters:
    ///   - remote: is closed by ``invalidate()``.
    ///   - manager: what the system gave for the domain.
    ///   - leftoverAge: the age, in seconds, at which an item with a `HiddenName` that an interrupted change left behind is
    ///     removed, once it was seen unchanged for ten minutes.
    public convenience init(remote: any PathRemote, manager: any FileProviderManager, leftoverAge: Int64 = 86_400) {
        self.init(remote: remote, manager: manager, ledger: nil, leftoverAge: leftoverAge)
    }

    /// - Parameter ledger: of the operations on the remote, where it has one itself.
    package init(
        remote: any PathRemote, manager: any FileProviderManager, ledger: OperationLedger?, leftoverAge: Int64 = 86_400,
        leftoverPatience: Duration = .seconds(600)
    ) {
        self.remote = remote
        leftovers = Leftovers(age: leftoverAge, patience: leftoverPatience)
        tree = PathTree(
            remote: remote, manager: manager, ledger: ledger ?? OperationLedger(in: ReportingStore(of: manager)))
        trees = TreeListings(remote: remote, paths: tree.paths)
        let contents = (remote as? any TrashingRemote).map { [tree] in RemoteTrash($0, tree: tree) }
        writer = PathWriter(tree: tree, trash: contents)
        trashOfRemote = contents.map { [writer] in ($0, TrashWriter(trash: $0, writer: writer)) }
    }

    private var trash: (contents: RemoteTrash, writer: TrashWriter)? {
        trashOfRemote.flatMap { $0.contents.isOn ? $0 : nil }
    }

    public var features: ProviderFeatures {
        let traits = remote.traits
        var features = ProviderFeatures(
            partialContentFetching: traits.readsRanges, changeFeed: false, writing: traits.isWritable,
            trash: traits.hasTrash && traits.isWritable, conditionalWrites: true,
            directoryVersionsCoverTrees: traits.directoryTagsCoverTrees, concurrentCalls: traits.concurrentCalls)
        features.attributesComeWithContents = traits.attributesComeWithContents
        features.datesMakeVersions = traits.datesMakeTags
        features.keepsModificationDates = traits.storesModificationDates
        features.isAskedBesideCalls = traits.isAskedBesideCalls
        features.thumbnails = (remote as? any ThumbnailRemote)?.hasThumbnails == true
        return features
    }

    public var remarks: [String] { remote.traits.peculiarities }

    public func invalidate() async {
        trees.stop()
        await remote.close()
    }

    public func quota() async throws -> RemoteQuota? { try await remote.quota() }

    // MARK: - Reading

    public func item(
        for identifier: ItemIdentifier, request: FileProviderRequest
    ) async throws -> FileProviderItem {
        try await orInTrash(identifier) { [self] in
            let (path, entry) = try await tree.locate(identifier) { [remote] path in
                (path, try await remote.entry(at: path))
            }
            let found = try tree.item(entry, as: identifier, at: path)
            guard tree.isOwner(identifier, of: found) else { throw FileProviderError.noSuchItem(identifier) }
            return found
        } inTrash: { trash, found, parent in
            trash.item(found, in: parent)
        }
    }

    public func enumerator(
        for container: ItemIdentifier, request: FileProviderRequest
    ) throws -> any FileProviderEnumerator {
        switch container {
        case .trashContainer:
            guard let trash else { throw RemoteTrash.none }
            // Where nothing seems to have changed, a comparison may get an earlier listing.
            let mayBeOlder = request.reason == .synchronization
            return ReadOnceEnumerator { try await trash.contents.items(in: container, mayBeOlder: mayBeOlder) }
        case .workingSet: throw FileProviderError(.featureUnsupported, "this remote does not tell of changes")
        default:
            if let trash, tree.manager.remoteTrashPath(of: container) != nil {
                return ReadOnceEnumerator { try await trash.contents.items(in: container, mayBeOlder: false) }
            }
            // Only for a walk: a comparison, or a reader, wants the present listing.
            let mayBeOlder = [.listing, .lookAhead].contains(request.reason) && remote.traits.listsTrees
            return PathEnumerator(
                container: container, tree: tree, trees: mayBeOlder ? trees : nil, leftovers: leftovers)
        }
    }

    public func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        guard MintedIdentifier.kind(of: identifier) == .file else { throw FileProviderError.noSuchItem(identifier) }
        return try await orInTrash(identifier) { [self] in
            try await fetchInPlace(identifier, version: version, range: range, into: sink)
        } inTrash: { trash, found, parent in
            try await trash.fetch(found, in: parent, version: version, range: range, into: sink)
        }
    }

    private func fetchInPlace(
        _ identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let (path, entry) = try await tree.locate(identifier) { [remote] path in
            if let version, range != nil, PathItems.isUnsettled(version),
                try await hasSettled(version, at: path)
            {
                throw FileProviderError(.versionNoLongerAvailable, itemIdentifier: identifier)
            }
            var tag = version.flatMap(PathItems.tag(ofVersion:))
            if let version, tag == nil {
                // The version is only a digest of the tag: the tag is looked up.
                let present = try await remote.entry(at: path)
                guard PathItems.version(ofTag: present.tag) == version else {
                    throw FileProviderError(.versionNoLongerAvailable, itemIdentifier: identifier)
                }
                tag = present.tag
            }
            return (path, try await remote.read(path, tag: tag, range: range, into: sink))
        }
        // A response with content does not always name the item: the version does.
        var item =
            version != nil && entry.stableIdentifier == nil && MintedIdentifier.isRemote(identifier)
            ? tree.items.item(entry, as: identifier, in: try tree.parent(of: identifier, at: path))
            : try tree.item(entry, as: identifier, at: path)
        if let version, item.itemVersion.contentVersion != version {
            if range == nil, PathItems.isUnsettled(version),
                PathItems.hasTag(of: item.itemVersion.contentVersion, version)
            {
                // It has settled meanwhile. What was read is of the version that it had then, as if it had been read sooner.
                item.itemVersion.contentVersion = version
                return item
            }
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        return item
    }

    /// Waits until a version that several contents may have is replaced by another. A file that is fetched in parts is
    /// fetched of a settled version only: its parts could be of several contents, and who has read a part would have to
    /// fail when the version changes.
    ///
    /// - Returns: false when that takes too long.
    private func hasSettled(_ version: [UInt8], at path: RemotePath) async throws -> Bool {
        let end = ContinuousClock.now + Self.settlingTime
        while ContinuousClock.now < end {
            let entry = try await remote.entry(at: path)
            guard entry.kind == .file, entry.isTagUnsettled, PathItems.hasTag(of: entry.version, version) else {
                return true
            }
            try await Task.sleep(for: .milliseconds(250))
        }
        return false
    }

    /// The date of a file may be in the future.
    private static let settlingTime = Duration.seconds(4)

    /// Does something with an item where it is, or else with its entry in the trash.
    private func orInTrash<Value: Sendable>(
        _ identifier: ItemIdentifier, _ body: () async throws -> Value,
        inTrash: (RemoteTrash, TrashedEntry, _ parent: ItemIdentifier) async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as FileProviderError where error.code == .noSuchItem {
            guard let trash, let (entry, parent) = try await trash.contents.find(identifier) else { throw error }
            return try await inTrash(trash.contents, entry, parent)
        }
    }

    // MARK: - Writing

    public func createItem(
        basedOn template: FileProviderItem, fields: ItemFields, contents: ContentSource?, options: CreateItemOptions,
        request: FileProviderRequest
    ) async throws -> ItemChange {
        try writer.check(template.filename)
        guard template.parentItemIdentifier == .trashContainer else {
            return try await writer.create(template, fields, contents, options)
        }
        guard let trash else { throw RemoteTrash.none }
        return try await trash.writer.create(template, fields, contents, options)
    }

    public func modifyItem(
        _ item: FileProviderItem, baseVersion: ItemVersion, changedFields: ItemFields, contents: ContentSource?,
        options: ModifyItemOptions, request: FileProviderRequest
    ) async throws -> ItemChange {
        if item.itemIdentifier == .rootContainer {
            let root = try await self.item(for: .rootContainer, request: request)
            return .applied(root, stillPending: changedFields, shouldFetchContent: false)
        }
        if changedFields.contains(.contents) { try PathWriter.requireContents(of: item, contents) }
        if changedFields.contains(.filename) { try writer.check(item.filename) }
        let change = PathChange(
            item: item, base: baseVersion.contentVersion, fields: changedFields, contents: contents)
        if change.goesToTrash {
            guard let trash else { throw RemoteTrash.none }
            return try await trash.writer.throwAway(change)
        }
        do {
            return try await writer.modify(change)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            guard let answer = try await trash?.writer.modify(change) else { throw error }
            return answer
        }
    }

    public func deleteItem(
        identifier: ItemIdentifier, baseVersion: ItemVersion, options: DeleteItemOptions, request: FileProviderRequest
    ) async throws {
        guard identifier != .rootContainer else {
            throw FileProviderError(.deletionRejected, "the root stays", itemIdentifier: identifier)
        }
        if let trash, tree.manager.remoteTrashPath(of: identifier) != nil {
            return try await trash.contents.delete(identifier, base: baseVersion, options)
        }
        if options.contains(.onlyFromTrash) {
            let found = try await ifExists { try await item(for: identifier, request: request) }
            guard let restored = found else { return }
            guard restored.isTrashed, let trash else {
                throw FileProviderError.wasRestored(identifier, item: restored)
            }
            return try await trash.contents.delete(identifier, base: baseVersion, options)
        }
        try await writer.delete(identifier, base: baseVersion, options)
    }
}

extension PathAddressedProvider: RetryingProvider {
    package func retryNow() async { await (remote as? any RetryingProvider)?.retryNow() }
}

extension PathAddressedProvider: EarlyContentReceiver {
    package func receive(_ content: GrowingContent, in parent: ItemIdentifier) async {
        guard let remote = remote as? any EarlyRemote, let directory = tree.paths.path(of: parent) else { return }
        await remote.receive(content, in: directory)
    }
}
