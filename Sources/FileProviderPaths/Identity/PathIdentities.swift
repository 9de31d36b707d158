import FileProvider
import Synchronization

/// Identifies the item that has a name: the known one, one that another client has renamed, or a new one.
final class PathIdentities: Sendable {
    private typealias Place = PathMap.Place

    /// A known item that is not at its path.
    struct Missing {
        var known: KnownItem
        /// Nil until it is needed: looking it up takes several queries.
        var path: RemotePath?
        /// What a directory held; nil for what the system knows now.
        var children: DirectoryContents?
        /// When a listing showed that it was removed; nil for an item that may still be there.
        var noticedAt: ContinuousClock.Instant?
    }

    let remote: any PathRemote
    let manager: any FileProviderManager
    let paths: PathMap
    private let missing = Mutex<[ItemIdentifier: Missing]>([:])
    private static let mostMissing = 2048
    private static let mostAttempts = 1000
    /// For how long an item that a listing did not show counts as removed without another request.
    private static let trust = Duration.seconds(60)
    /// In how many other directories one listing searches for old names.
    private static let mostPlaces = 4
    /// Why one directory cannot be listed, and others can.
    static let concernsOneDirectory: Set<FileProviderError.Code> = [
        .fileReadNoPermission, .malformedResponse, .cannotSynchronize,
    ]

    init(remote: any PathRemote, manager: any FileProviderManager, paths: PathMap) {
        self.remote = remote
        self.manager = manager
        self.paths = paths
    }

    /// The identifiers of entries in a directory, each once.
    ///
    /// - Parameters:
    ///   - isNew: whether the entries may be new to the system, and may have had other names before. Otherwise no request
    ///     is sent.
    ///   - listed: all names in the directory, by a complete listing; nil where the entries are only a part of the listing.
    ///   - search: of the listing that the entries are a part of.
    func identify(
        _ entries: [RemoteEntry], in parent: ItemIdentifier, at path: RemotePath, isNew: Bool = true,
        listed: Set<[UInt8]>? = nil, search: Search? = nil
    ) async throws -> [(entry: RemoteEntry, identifier: ItemIdentifier)] {
        if search != nil { paths.forgetHeard(isListing: true) }
        // By name, and not all known children: a directory has many pages.
        let known = manager.identifiers(ofChildrenNamed: entries.map(\.name), in: parent)
        var identifiers = zip(entries, known).map { given($0, in: parent, known: $1) }
        missing.withLock { missing in
            if missing.isEmpty { return }
            for case let identifier? in identifiers { missing[identifier] = nil }
        }
        let unknown = identifiers.indices.filter { identifiers[$0] == nil }
        if isNew, !unknown.isEmpty {
            let present = Set(entries.map { Array($0.name.utf8) })
            // A directory without a tag is compared with those that are missing alone: the one that it was is known to be.
            if let listed, search?.isFirst != true,
                unknown.contains(where: { entries[$0].kind == .directory && entries[$0].tag.isEmpty })
            {
                noteListed(parent, at: path, names: NameSet(present.union(listed)))
            }
            let recognized = try await recognize(
                unknown.map { entries[$0] }, in: parent, at: path, present.union(listed ?? []), isAll: listed != nil,
                search ?? beginSearch(in: parent))
            for (index, identifier) in zip(unknown, recognized) { identifiers[index] = identifier }
        }
        var used = Set(identifiers.compactMap { $0 })
        let first = unknown.map {
            MintedIdentifier.make(entries[$0].kind, named: entries[$0].name, in: parent, attempt: 0)
        }
        let taken = first.isEmpty ? [] : manager.knownIdentifiers(among: first)
        for (index, candidate) in zip(unknown, first) where identifiers[index] == nil {
            let isFree = !taken.contains(candidate) && !used.contains(candidate) && !paths.isMoving(candidate)
            let minted = isFree ? candidate : mint(entries[index], in: parent, at: path, used)
            used.insert(minted)
            identifiers[index] = minted
        }
        return zip(entries, identifiers).map { entry, identifier in
            (entry, identifier ?? mint(entry, in: parent, at: path, used))
        }
    }

    func identify(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at path: RemotePath, isNew: Bool = true
    ) async throws -> ItemIdentifier {
        try await identify([entry], in: parent, at: path, isNew: isNew)[0].identifier
    }

    /// A directory was listed completely: known children that are not in it were removed or moved.
    ///
    /// - Parameter names: all names in the directory.
    func noteListed(_ parent: ItemIdentifier, at path: RemotePath, names: NameSet) {
        var gone: [KnownItem] = []
        manager.visitKnownItems(in: parent) { known in
            if !names.contains(known.filename) { gone.append(known) }
            return gone.count <= Self.mostMissing
        }
        for known in gone {
            let place = Place(directory: parent, name: known.filename)
            if paths.hasMoved(known.itemIdentifier, from: place) || paths.mayMove(known.itemIdentifier) { continue }
            let children =
                MintedIdentifier.kind(of: known.itemIdentifier) == .directory
                ? children(of: known.itemIdentifier) : DirectoryContents()
            missing.withLock { missing in
                if missing.count > Self.mostMissing { missing = [:] }
                missing[known.itemIdentifier] = Missing(
                    known: known, path: path.appending(known.filename), children: children, noticedAt: .now)
            }
        }
    }

    /// Whether a listing has shown, not long ago, that an item is not in its place.
    func isNoticed(_ identifier: ItemIdentifier) -> Bool {
        let noticedAt = missing.withLock { $0[identifier]?.noticedAt }
        return noticedAt.map { ContinuousClock.now - $0 < Self.trust } ?? false
    }

    // MARK: - Known items

    private func given(
        _ entry: RemoteEntry, in parent: ItemIdentifier, known: ItemIdentifier?
    ) -> ItemIdentifier? {
        if let identifier = entry.remoteIdentifier { return identifier }
        let place = Place(directory: parent, name: entry.name)
        if let moved = paths.identifier(at: place), MintedIdentifier.kind(of: moved) == entry.kind { return moved }
        guard
            let identifier = known,
            MintedIdentifier.kind(of: identifier) == entry.kind, !MintedIdentifier.isRemote(identifier),
            !paths.hasMoved(identifier, from: place)
        else { return nil }
        return identifier
    }

    // MARK: - New items

    private func mint(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at path: RemotePath, _ used: Set<ItemIdentifier>
    ) -> ItemIdentifier {
        let place = Place(directory: parent, name: entry.name)
        let own = path.appending(entry.name)
        for attempt in 0..<Self.mostAttempts {
            let candidate = MintedIdentifier.make(entry.kind, named: entry.name, in: parent, attempt: attempt)
            if used.contains(candidate) || manager.remoteTrashPath(of: candidate) != nil { continue }
            if let known = paths.path(of: candidate), known != own { continue }
            if attempt > 0 { paths.noteMinted(candidate, at: place) }
            return candidate
        }
        return MintedIdentifier.make(entry.kind, named: entry.name, in: parent, attempt: Self.mostAttempts)
    }

    // MARK: - Renamed items

    /// For each entry the known item that had another name and is not there any more, where there is one.
    ///
    /// - Parameter isAll: whether the directory holds no other names than `present`.
    private func recognize(
        _ entries: [RemoteEntry], in parent: ItemIdentifier, at path: RemotePath, _ present: Set<[UInt8]>,
        isAll: Bool, _ search: Search
    ) async throws -> [ItemIdentifier?] {
        let versions = entries.map { $0.version }
        let gone = missing.withLock { $0 }.filter { isStillMissing($0.value) }
        let remembered = manager.knownItems(withContentVersions: versions)
        if gone.isEmpty, remembered.isEmpty { return entries.map { _ in nil } }
        let ambiguous = ambiguousVersions(of: entries, among: remembered + gone.values.map(\.known))
        var candidates: [[UInt8]: [ItemIdentifier: Missing]] = [:]
        for candidate in gone.values {
            candidates[candidate.known.contentVersion, default: [:]][candidate.known.itemIdentifier] = candidate
        }
        let alike = Dictionary(grouping: remembered, by: \.contentVersion).mapValues(\.count)
        for known in remembered where gone[known.itemIdentifier] == nil && !paths.isMoving(known.itemIdentifier) {
            // What very many items have in common identifies none of them.
            guard alike[known.contentVersion, default: 0] < KnownItem.mostOfOneVersion else { continue }
            candidates[known.contentVersion, default: [:]][known.itemIdentifier] = Missing(
                known: known, path: nil, children: nil,
                // This listing shows it.
                noticedAt: isAll && known.parentItemIdentifier == parent ? .now : nil)
        }
        var result: [ItemIdentifier?] = []
        for (entry, version) in zip(entries, versions) {
            guard let all = candidates[version], !ambiguous.contains(version) else {
                result.append(nil)
                continue
            }
            let found = try await match(
                entry, path.appending(entry.name), among: Array(all.values), present, search)
            if let (identifier, old) = found {
                search.take(identifier)
                missing.withLock { $0[identifier] = nil }
                paths.noteSeen(identifier, from: old, at: Place(directory: parent, name: entry.name))
            }
            result.append(found?.identifier)
        }
        return result
    }

    /// The versions of entries with weak tags that several files have or had, wherever these are: which of them an entry is
    /// cannot be told, and the wrong one would show, and later overwrite, another file's content.
    private func ambiguousVersions(of entries: [RemoteEntry], among known: [KnownItem]) -> Set<[UInt8]> {
        let weak = entries.filter { $0.kind == .file && !$0.isTagStrong && $0.size != 0 }.map { $0.version }
        if weak.isEmpty { return [] }
        let unsettled = manager.knownItems(withContentVersions: weak.map(PathItems.unsettledVersion))
        var owners: [[UInt8]: Set<ItemIdentifier>] = [:]
        for item in known { owners[item.contentVersion, default: []].insert(item.itemIdentifier) }
        for item in unsettled {
            owners[PathItems.settledVersion(of: item.contentVersion), default: []].insert(item.itemIdentifier)
        }
        let owned = weak.filter { owners[$0] != nil }
        if owned.isEmpty { return [] }
        // One that was removed here, while another client renamed it.
        let removed = manager.contentVersionsToBeDeleted(among: owned + owned.map(PathItems.unsettledVersion))
        let removedVersions = Set(removed.map(PathItems.settledVersion))
        return Set(
            owned.filter {
                owners[$0, default: []].count > 1 || removedVersions.contains($0) || paths.hasVanished(version: $0)
            })
    }

    /// Whether neither this provider nor the system has found an item since a listing did not show it.
    private func isStillMissing(_ missing: Missing) -> Bool {
        let known = missing.known
        guard !paths.isMoving(known.itemIdentifier) else { return false }
        return manager.identifier(ofChildNamed: known.filename, in: known.parentItemIdentifier) == known.itemIdentifier
            || manager.remotePath(of: known.itemIdentifier) == nil
    }

    /// One listing's search for old names, through all its pages.
    final class Search: Sendable {
        private struct State {
            /// The names in the directories that were listed; nil for a directory that was removed.
            var places: [RemotePath: NameSet?] = [:]
            var taken: Set<ItemIdentifier> = []
        }

        /// The directory that is listed.
        let parent: ItemIdentifier
        /// Whether nothing was known in it: all entries may be old.
        let isFirst: Bool
        private let state = Mutex(State())

        fileprivate init(parent: ItemIdentifier, isFirst: Bool) {
            self.parent = parent
            self.isFirst = isFirst
        }

        fileprivate var taken: Set<ItemIdentifier> { state.withLock { $0.taken } }

        fileprivate func take(_ identifier: ItemIdentifier) { state.withLock { _ = $0.taken.insert(identifier) } }

        /// The names in a directory; nil when it was not listed yet.
        fileprivate func names(in path: RemotePath) -> NameSet?? { state.withLock { $0.places[path] } }

        fileprivate func note(_ names: NameSet?, in path: RemotePath) {
            state.withLock { $0.places[path] = .some(names) }
        }

        fileprivate var count: Int { state.withLock { $0.places.count } }
    }

    /// Begins a search, before anything of a listing is known.
    func beginSearch(in parent: ItemIdentifier) -> Search {
        var isFirst = true
        manager.visitKnownItems(in: parent) { _ in
            isFirst = false
            return false
        }
        return Search(parent: parent, isFirst: isFirst)
    }

    /// - Returns: the item that an entry is, and its old path.
    private func match(
        _ entry: RemoteEntry, _ path: RemotePath, among candidates: [Missing], _ present: Set<[UInt8]>,
        _ search: Search
    ) async throws -> (identifier: ItemIdentifier, path: RemotePath)? {
        let (taken, parent, isFirst) = (search.taken, search.parent, search.isFirst)
        let fitting = candidates.filter { candidate in
            let known = candidate.known
            return MintedIdentifier.kind(of: known.itemIdentifier) == entry.kind
                && !MintedIdentifier.isRemote(known.itemIdentifier) && !taken.contains(known.itemIdentifier)
                && (entry.kind != .file || known.documentSize == entry.size && !entry.isTagUnsettled)
                // All empty files have the same tag.
                && (entry.size != 0 || !remote.traits.tagsAreOfContent
                    || known.filename.utf8.elementsEqual(entry.name.utf8))
                && !(known.parentItemIdentifier == parent && present.contains(Array(known.filename.utf8)))
                && (entry.kind != .file || entry.isTagStrong || !isFirst
                    || known.filename.utf8.elementsEqual(entry.name.utf8))
        }
        // A weak tag that several items share does not identify one that was not noticed to be missing.
        let mayBeAnywhere = entry.isTagStrong || fitting.count == 1
        var gone: [(missing: Missing, path: RemotePath)] = []
        for candidate in fitting {
            let isNoticed = candidate.noticedAt.map { ContinuousClock.now - $0 < Self.trust } ?? false
            guard
                isNoticed
                    || mayBeAnywhere
                        && (entry.isTagStrong || candidate.known.filename.utf8.elementsEqual(entry.name.utf8)
                            || entry.kind == .file && !isFirst),
                let old = candidate.path ?? paths.path(of: candidate.known.itemIdentifier),
                old != path, !path.isBelow(old)
            else { continue }
            if !isNoticed {
                guard try await isGone(old, search), try await isNotMoved(candidate.known.itemIdentifier, from: old)
                else {
                    continue
                }
            }
            gone.append((candidate, old))
        }
        if entry.kind == .directory, !gone.isEmpty {
            gone = try await alike(entry, path, gone, fitting, search)
        }
        if gone.count > 1 {
            // Of several equal items, the one with the same name has been moved.
            gone = gone.filter { $0.missing.known.filename.utf8.elementsEqual(entry.name.utf8) }
            if gone.count > 1, !entry.isTagStrong { return nil }
        }
        return gone.first.map { ($0.missing.known.itemIdentifier, $0.path) }
    }

    /// Whether an old name is not in use any more. Lists at most a few directories: a copy of a tree has many.
    func isGone(_ path: RemotePath, _ search: Search) async throws -> Bool {
        guard let name = path.name else { return false }
        if search.names(in: path.parent) == nil {
            guard search.count < Self.mostPlaces else { return false }
            do {
                var names = NameSet()
                try await remote.visitListing(of: path.parent) { part in
                    for entry in part.entries where !HiddenName.isOne(entry.name) { names.insert(entry.name) }
                    return true
                }
                search.note(names, in: path.parent)
            } catch let error as FileProviderError where error.code == .noSuchItem {
                search.note(nil, in: path.parent)
            } catch let error as FileProviderError where Self.concernsOneDirectory.contains(error.code) {
                // It does not keep another directory from being listed.
                return false
            }
        }
        guard let names = search.names(in: path.parent) ?? nil else { return true }
        return !names.contains(name)
    }

    /// Whether an old path is not merely free because this provider has just moved the item, or a directory above it.
    private func isNotMoved(_ identifier: ItemIdentifier, from old: RemotePath) async throws -> Bool {
        guard try await paths.waitForMoves(over: old) else { return false }
        let path = paths.path(of: identifier) ?? old
        return path == old && paths.unknownMoves(near: path).isEmpty
    }
}
