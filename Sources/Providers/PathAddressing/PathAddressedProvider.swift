import FileProvider
import Foundation

/// A provider over a remote that knows its items by path alone.
///
/// It keeps no table of the remote: where an item lies the system knows, and what it does not know yet is in a
/// ``PathMap``.
package final class PathAddressedProvider: FileProviderReplicatedExtension {
    package let remote: any PathRemote
    let manager: any FileProviderManager
    let paths: PathMap
    let identities: PathIdentities
    let items: PathItems
    let trashParts: (remote: any TrashingRemote, book: TrashRecords, look: TrashLook)?
    private let trees: TreeListings
    private let root: RootCheck
    private let leftoverAge: Int64
    private static let mostTries = 3

    /// - Parameter leftoverAge: how many seconds old something with a hidden name has to be that a change broken off left
    ///   behind before it is removed.
    package init(remote: any PathRemote, manager: any FileProviderManager, leftoverAge: Int64 = 86_400) {
        self.remote = remote
        self.manager = manager
        self.leftoverAge = leftoverAge
        let paths = PathMap(manager: manager)
        self.paths = paths
        identities = PathIdentities(remote: remote, manager: manager, paths: paths)
        items = PathItems(paths: paths, traits: { [remote] in remote.traits })
        trees = TreeListings(remote: remote, paths: paths)
        root = RootCheck(remote: remote, source: manager.domain.source)
        trashParts = (remote as? any TrashingRemote).map { remote in
            let book = TrashRecords(in: ReportingStore(of: manager))
            return (remote, book, TrashLook(remote: remote, book: book))
        }
    }

    package var features: ProviderFeatures {
        let traits = remote.traits
        return ProviderFeatures(
            partialContentFetching: traits.readsRanges, changeFeed: false, writing: traits.isWritable,
            trash: traits.hasTrash && traits.isWritable, conditionalWrites: true,
            directoryVersionsCoverTrees: traits.directoryTagsCoverTrees, concurrentCalls: traits.concurrentCalls)
    }

    /// What the user should know of the remote, a sentence each.
    package var remarks: [String] { remote.traits.peculiarities }

    package func invalidate() async {
        trees.stop()
        await remote.close()
    }

    package func item(
        for identifier: ItemIdentifier, request: FileProviderRequest
    ) async throws -> FileProviderItem {
        try await orInTrash(identifier) {
            let (path, entry) = try await locate(identifier) { [remote] path in
                (path, try await remote.entry(at: path))
            }
            let found = try item(entry, as: identifier, at: path)
            guard isOwner(identifier, of: found) else { throw FileProviderError.noSuchItem(identifier) }
            return found
        } inTrash: {
            trashedItem($0, in: $1)
        }
    }

    /// Whether no other item is what listings show in the place of this one: of two that came to be known there, one is gone.
    private func isOwner(_ identifier: ItemIdentifier, of item: FileProviderItem) -> Bool {
        if identifier == .rootContainer || MintedIdentifier.isRemote(identifier) { return true }
        let place = PathMap.Place(directory: item.parentItemIdentifier, name: item.filename)
        let owner =
            paths.identifier(at: place) ?? manager.identifier(ofChildNamed: place.name, in: place.directory)
        return owner.map { $0 == identifier || MintedIdentifier.kind(of: $0) != item.kind } ?? true
    }

    package func enumerator(
        for container: ItemIdentifier, request: FileProviderRequest
    ) throws -> any FileProviderEnumerator {
        switch container {
        case .trashContainer:
            guard trash != nil else { throw Self.noTrash }
            return TrashEnumerator(
                container: container, provider: self, mayBeOlder: request.reason == .synchronization)
        case .workingSet: throw FileProviderError(.featureUnsupported, "this remote does not tell of changes")
        default:
            if trash != nil, manager.remoteTrashPath(of: container) != nil {
                return TrashEnumerator(container: container, provider: self, mayBeOlder: false)
            }
            // Only for who walks: who compares or reads wants what is there now.
            let mayBeOlder = [.listing, .lookAhead].contains(request.reason) && remote.traits.listsTrees
            return PathEnumerator(container: container, provider: self, trees: mayBeOlder ? trees : nil)
        }
    }

    package func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        guard MintedIdentifier.kind(of: identifier) == .file else { throw FileProviderError.noSuchItem(identifier) }
        return try await orInTrash(identifier) {
            try await fetchInPlace(identifier, version: version, range: range, into: sink)
        } inTrash: {
            try await fetchTrashed($0, in: $1, version: version, range: range, into: sink)
        }
    }

    private func fetchInPlace(
        _ identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> FileProviderItem {
        let (path, entry) = try await locate(identifier) { [self] path in
            var tag = version.flatMap(PathItems.tag(ofVersion:))
            if let version, tag == nil {
                // Too long to be handed round: it is looked up.
                let present = try await remote.entry(at: path)
                guard PathItems.version(ofTag: present.tag) == version else {
                    throw FileProviderError(.versionNoLongerAvailable, itemIdentifier: identifier)
                }
                tag = present.tag
            }
            return (path, try await remote.read(path, tag: tag, range: range, into: sink))
        }
        // An answer with content does not always say of which item: the version does.
        let item =
            version != nil && entry.stableIdentifier == nil && MintedIdentifier.isRemote(identifier)
            ? items.item(entry, as: identifier, in: try parent(of: identifier, at: path))
            : try item(entry, as: identifier, at: path)
        if let version, item.itemVersion.contentVersion != version {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        return item
    }

    package func quota() async throws -> RemoteQuota? { try await remote.quota() }

    // MARK: - Places

    /// Does something with the path of an item, once more where that turns out to have changed meanwhile.
    ///
    /// - Throws: `noSuchItem` for the item; `serverUnreachable` when the root itself is not there: then nothing is known of
    ///   what should be in it.
    func locate<Value: Sendable>(
        _ identifier: ItemIdentifier, _ body: (RemotePath) async throws -> Value
    ) async throws -> Value {
        guard var path = paths.path(of: identifier) else { throw FileProviderError.noSuchItem(identifier) }
        try await settleMoves(near: path)
        path = paths.path(of: identifier) ?? path
        var tries = 1
        while true {
            do {
                return try await body(path)
            } catch let error as FileProviderError where error.code == .noSuchItem {
                if identifier == .rootContainer {
                    try await root.check()
                    throw error
                }
                try await paths.waitForMoves(over: path)
                // One that has ended meanwhile without an answer may have been made.
                try await settleMoves(near: path)
                guard tries < Self.mostTries, let now = paths.path(of: identifier), now != path else {
                    try await root.check()
                    throw FileProviderError.noSuchItem(identifier)
                }
                path = now
                tries += 1
            }
        }
    }

    /// An entry as the item that is known to be there.
    ///
    /// - Throws: `noSuchItem` when it is another item.
    func item(
        _ entry: RemoteEntry, as identifier: ItemIdentifier, at path: RemotePath
    ) throws -> FileProviderItem {
        if identifier == .rootContainer {
            guard entry.kind == .directory else {
                throw FileProviderError(.serverUnreachable, "'\(manager.domain.source)' is no directory on the remote")
            }
            return items.item(entry, as: identifier, in: .rootContainer)
        }
        guard mayBe(entry, identifier) else { throw FileProviderError.noSuchItem(identifier) }
        return items.item(entry, as: identifier, in: try parent(of: identifier, at: path))
    }

    /// Whether an entry where an item should be can be that item.
    func mayBe(_ entry: RemoteEntry, _ identifier: ItemIdentifier) -> Bool {
        if MintedIdentifier.isRemote(identifier) {
            return entry.stableIdentifier.map { MintedIdentifier.make(entry.kind, remote: $0) } == identifier
        }
        return MintedIdentifier.kind(of: identifier) == entry.kind && entry.stableIdentifier == nil
    }

    /// The identifier of the directory that holds an item, which lies at a path.
    func parent(of identifier: ItemIdentifier, at path: RemotePath) throws -> ItemIdentifier {
        if let place = paths.place(of: identifier) { return place.directory }
        var directory = ItemIdentifier.rootContainer
        let known = manager.remotePath(of: identifier) ?? path.names
        for name in known.dropLast() {
            guard let next = manager.identifier(ofChildNamed: name, in: directory) else {
                throw FileProviderError.noSuchItem(identifier)
            }
            directory = next
        }
        return directory
    }

    // MARK: - Listings

    /// The entries that can be shown; what cannot is reported, and what a change broken off left behind is removed.
    func shown(_ entries: [RemoteEntry], in path: RemotePath) -> [RemoteEntry] {
        var names: Set<[UInt8]> = []
        return entries.filter { entry in
            if HiddenName.isOne(entry.name) {
                removeIfLeftOver(entry, path.appending(entry.name))
                return false
            }
            guard names.insert(Array(entry.name.utf8)).inserted else {
                manager.report("the remote lists '\(entry.name)' twice in one directory")
                return false
            }
            if let defect = FileProviderItem.defect(ofFilename: entry.name) {
                manager.report("the remote has a name that is not shown: \(defect)")
                return false
            }
            return true
        }
    }

    private func removeIfLeftOver(_ entry: RemoteEntry, _ path: RemotePath) {
        let now = Int64(Date().timeIntervalSince1970)
        guard let date = entry.attributes.contentModificationDate, now - date.seconds >= leftoverAge,
            remote.traits.isWritable, !manager.domain.isReadOnly
        else { return }
        Task { [self] in
            try? await remote.delete(path, kind: entry.kind, if: .unchanged(tag: entry.tag))
            clearTrash(of: entry.name)
        }
    }
}
