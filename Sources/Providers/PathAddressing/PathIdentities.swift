import FileProvider
import Synchronization

/// Says which item it is that has a name: the one that is known there, one that somebody has renamed, or a new one.
final class PathIdentities: Sendable {
    private typealias Place = PlaceBook.Place

    /// An item that is not where it was.
    private struct Missing {
        var known: KnownItem
        var path: RemotePath
        /// What a directory was known to hold; nil for what the system knows of it.
        var children: Set<[UInt8]>?
        /// When a listing showed that it is gone; nil for one that may still be there.
        var noticedAt: ContinuousClock.Instant?
    }

    private let remote: any PathRemote
    private let manager: any FileProviderManager
    private let book: PlaceBook
    private let missing = Mutex<[ItemIdentifier: Missing]>([:])
    private static let mostMissing = 2048
    private static let mostAttempts = 1000
    /// How long what a listing did not show is taken for gone without another look.
    private static let trust = Duration.seconds(60)
    /// In how many other directories one listing looks for old names.
    private static let mostPlaces = 4

    init(remote: any PathRemote, manager: any FileProviderManager, book: PlaceBook) {
        self.remote = remote
        self.manager = manager
        self.book = book
    }

    /// The identifiers of what was found in a directory, each once.
    ///
    /// - Parameters:
    ///   - isNew: whether the entries may be new to the system, and may have had other names before. Without it, nothing
    ///     is asked of the remote.
    ///   - listed: all names that the directory has, by a listing that tells of all; nil where the entries are no more than
    ///     a part, and say nothing of what else is there.
    func identify(
        _ entries: [RemoteEntry], in parent: ItemIdentifier, at path: RemotePath, isNew: Bool = true,
        listed: Set<[UInt8]>? = nil
    ) async throws -> [(entry: RemoteEntry, identifier: ItemIdentifier)] {
        let known: (String) -> ItemIdentifier?
        if entries.count == 1 {
            // Whoever makes one file after the other does not look at all that are there each time.
            known = { [manager] in manager.identifier(ofChildNamed: $0, in: parent) }
        } else {
            let children = knownChildren(of: parent)
            known = { children[Array($0.utf8)] }
        }
        var identifiers = entries.map { given($0, in: parent, known) }
        // Whatever a listing may have said before.
        missing.withLock { missing in
            if missing.isEmpty { return }
            for case let identifier? in identifiers { missing[identifier] = nil }
        }
        let unknown = identifiers.indices.filter { identifiers[$0] == nil }
        if isNew, !unknown.isEmpty {
            let present = Set(entries.map { Array($0.name.utf8) })
            let recognized = try await recognize(
                unknown.map { entries[$0] }, in: parent, at: path, present.union(listed ?? []), isAll: listed != nil)
            for (index, identifier) in zip(unknown, recognized) { identifiers[index] = identifier }
        }
        var used = Set(identifiers.compactMap { $0 })
        let first = unknown.map {
            MintedIdentifier.make(entries[$0].kind, named: entries[$0].name, in: parent, attempt: 0)
        }
        let taken = first.isEmpty ? [] : manager.knownIdentifiers(among: first)
        for (index, candidate) in zip(unknown, first) where identifiers[index] == nil {
            let isFree = !taken.contains(candidate) && !used.contains(candidate) && !book.isMoving(candidate)
            let minted = isFree ? candidate : mint(entries[index], in: parent, at: path, used)
            used.insert(minted)
            identifiers[index] = minted
        }
        return zip(entries, identifiers).map { entry, identifier in
            (entry, identifier ?? mint(entry, in: parent, at: path, used))
        }
    }

    /// The identifier of one entry.
    func identify(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at path: RemotePath, isNew: Bool = true
    ) async throws -> ItemIdentifier {
        try await identify([entry], in: parent, at: path, isNew: isNew)[0].identifier
    }

    /// A directory was listed to its end: what was known to be in it and is not has gone, or moved.
    func noteListed(_ parent: ItemIdentifier, at path: RemotePath, names: Set<[UInt8]>) {
        for known in manager.knownItems(in: parent) where !names.contains(Array(known.filename.utf8)) {
            let place = Place(directory: parent, name: known.filename)
            if book.hasMoved(known.itemIdentifier, from: place) || book.isUncertain(known.itemIdentifier) { continue }
            let children =
                MintedIdentifier.kind(of: known.itemIdentifier) == .directory
                ? children(of: known.itemIdentifier) : []
            missing.withLock { missing in
                if missing.count > Self.mostMissing { missing = [:] }
                missing[known.itemIdentifier] = Missing(
                    known: known, path: path.appending(known.filename), children: children, noticedAt: .now)
            }
        }
    }

    // MARK: - Known ones

    private func knownChildren(of parent: ItemIdentifier) -> [[UInt8]: ItemIdentifier] {
        Dictionary(
            manager.knownItems(in: parent).map { (Array($0.filename.utf8), $0.itemIdentifier) },
            uniquingKeysWith: { first, _ in first })
    }

    private func given(
        _ entry: RemoteEntry, in parent: ItemIdentifier, _ known: (String) -> ItemIdentifier?
    ) -> ItemIdentifier? {
        if let identifier = entry.stableIdentifier { return MintedIdentifier.make(entry.kind, remote: identifier) }
        let place = Place(directory: parent, name: entry.name)
        if let moved = book.identifier(at: place), MintedIdentifier.kind(of: moved) == entry.kind { return moved }
        guard
            let identifier = known(entry.name),
            MintedIdentifier.kind(of: identifier) == entry.kind, !MintedIdentifier.isRemote(identifier),
            !book.hasMoved(identifier, from: place)
        else { return nil }
        return identifier
    }

    // MARK: - New ones

    private func mint(
        _ entry: RemoteEntry, in parent: ItemIdentifier, at path: RemotePath, _ used: Set<ItemIdentifier>
    ) -> ItemIdentifier {
        let place = Place(directory: parent, name: entry.name)
        let own = path.appending(entry.name)
        for attempt in 0..<Self.mostAttempts {
            let candidate = MintedIdentifier.make(entry.kind, named: entry.name, in: parent, attempt: attempt)
            if used.contains(candidate) || manager.remoteTrashPath(of: candidate) != nil { continue }
            if let known = book.path(of: candidate), known != own { continue }
            if attempt > 0 { book.noteMinted(candidate, at: place) }
            return candidate
        }
        return MintedIdentifier.make(entry.kind, named: entry.name, in: parent, attempt: Self.mostAttempts)
    }

    // MARK: - Renamed ones

    /// For each entry the known item that had another name and is gone from there, where there is one.
    ///
    /// - Parameter isAll: whether nothing else is in the directory than what is present.
    private func recognize(
        _ entries: [RemoteEntry], in parent: ItemIdentifier, at path: RemotePath, _ present: Set<[UInt8]>, isAll: Bool
    ) async throws -> [ItemIdentifier?] {
        let versions = entries.map { PathItems.version(ofTag: $0.tag) }
        let gone = missing.withLock { $0 }.filter { isStillMissing($0.value) }
        let remembered = manager.knownItems(withContentVersions: versions)
        if gone.isEmpty, remembered.isEmpty { return entries.map { _ in nil } }
        var candidates: [[UInt8]: [ItemIdentifier: Missing]] = [:]
        for candidate in gone.values {
            candidates[candidate.known.contentVersion, default: [:]][candidate.known.itemIdentifier] = candidate
        }
        for known in remembered where gone[known.itemIdentifier] == nil {
            if book.isMoving(known.itemIdentifier) || book.isUncertain(known.itemIdentifier) { continue }
            guard let old = book.path(of: known.itemIdentifier) else { continue }
            candidates[known.contentVersion, default: [:]][known.itemIdentifier] = Missing(
                known: known, path: old, children: nil,
                // This listing is what shows it.
                noticedAt: isAll && known.parentItemIdentifier == parent ? .now : nil)
        }
        var search = Search(
            places: [:], taken: [], parent: parent, present: present, isFirst: manager.knownItems(in: parent).isEmpty)
        var result: [ItemIdentifier?] = []
        for (entry, version) in zip(entries, versions) {
            guard let all = candidates[version] else {
                result.append(nil)
                continue
            }
            let found = try await match(entry, path.appending(entry.name), among: Array(all.values), &search)
            if let found {
                search.taken.insert(found.known.itemIdentifier)
                missing.withLock { $0[found.known.itemIdentifier] = nil }
                book.noteSeen(
                    found.known.itemIdentifier, from: found.path, at: Place(directory: parent, name: entry.name))
            }
            result.append(found?.known.itemIdentifier)
        }
        return result
    }

    /// Whether nothing has been heard of an item since a listing did not show it: neither here, nor by the system.
    private func isStillMissing(_ missing: Missing) -> Bool {
        let known = missing.known
        guard !book.isMoving(known.itemIdentifier), !book.isUncertain(known.itemIdentifier) else { return false }
        return manager.identifier(ofChildNamed: known.filename, in: known.parentItemIdentifier) == known.itemIdentifier
            || manager.remotePath(of: known.itemIdentifier) == nil
    }

    /// One listing's search for old names.
    private struct Search {
        /// What is in the directories that were looked at, by name; nil for one that is gone.
        var places: [RemotePath: Set<[UInt8]>?]
        var taken: Set<ItemIdentifier>
        /// The directory that was listed.
        var parent: ItemIdentifier
        var present: Set<[UInt8]>
        /// Whether nothing was known in it: what is there may have been there all the time.
        var isFirst: Bool
    }

    private func match(
        _ entry: RemoteEntry, _ path: RemotePath, among candidates: [Missing], _ search: inout Search
    ) async throws -> Missing? {
        let (taken, parent, present, isFirst) = (search.taken, search.parent, search.present, search.isFirst)
        let fitting = candidates.filter { candidate in
            let known = candidate.known
            return MintedIdentifier.kind(of: known.itemIdentifier) == entry.kind
                && !MintedIdentifier.isRemote(known.itemIdentifier) && !taken.contains(known.itemIdentifier)
                && (entry.kind != .file || known.documentSize == entry.size && !entry.isTagUnsettled)
                // Without content one is like the other.
                && (entry.size != 0 || !remote.traits.tagsAreOfContent
                    || known.filename.utf8.elementsEqual(entry.name.utf8))
                && !(known.parentItemIdentifier == parent && present.contains(Array(known.filename.utf8)))
                && candidate.path != path && !path.isBelow(candidate.path)
                && (entry.kind != .file || entry.isTagStrong || !isFirst
                    || known.filename.utf8.elementsEqual(entry.name.utf8))
        }
        // What many share tells nothing of one that was not noticed to be missing.
        let mayBeAnywhere = entry.isTagStrong || fitting.count == 1
        var gone: [Missing] = []
        for candidate in fitting {
            if let noticed = candidate.noticedAt, ContinuousClock.now - noticed < Self.trust {
                gone.append(candidate)
            } else if mayBeAnywhere,
                entry.isTagStrong || candidate.known.filename.utf8.elementsEqual(entry.name.utf8)
                    || entry.kind == .file && !isFirst,
                try await isGone(candidate.path, &search), try await isNotMoved(candidate)
            {
                gone.append(candidate)
            }
        }
        if entry.kind == .directory, !gone.isEmpty {
            let names = try await names(in: path)
            let held = gone.map { ($0, $0.children ?? children(of: $0.known.itemIdentifier)) }
            let same = held.filter { !$0.1.isEmpty && $0.1 == names }
            // Of one without a tag that holds nothing that is known, only the name tells anything.
            let empty = held.filter {
                $0.1.isEmpty && (!entry.tag.isEmpty || $0.0.known.filename.utf8.elementsEqual(entry.name.utf8))
            }
            gone = (same.isEmpty ? empty : same).map { $0.0 }
        }
        if gone.count > 1 {
            // Of several that look the same, the one with the same name has been moved.
            gone = gone.filter { $0.known.filename.utf8.elementsEqual(entry.name.utf8) }
            if gone.count > 1, !entry.isTagStrong { return nil }
        }
        return gone.first
    }

    /// Whether nothing has an old name any more. Looks into a few old places at the most: a copy of a tree has many.
    private func isGone(_ path: RemotePath, _ search: inout Search) async throws -> Bool {
        guard let name = path.name else { return false }
        if search.places[path.parent] == nil {
            guard search.places.count < Self.mostPlaces else { return false }
            do {
                search.places[path.parent] = .some(try await names(in: path.parent))
            } catch let error as FileProviderError where error.code == .noSuchItem {
                search.places[path.parent] = .some(nil)
            }
        }
        guard let names = search.places[path.parent] ?? nil else { return true }
        return !names.contains(Array(name.utf8))
    }

    /// Whether an old place is not merely empty because this provider has just moved what was there, or what held it.
    private func isNotMoved(_ candidate: Missing) async throws -> Bool {
        try await book.waitForMoves(over: candidate.path)
        let path = book.path(of: candidate.known.itemIdentifier) ?? candidate.path
        return path == candidate.path && book.uncertainMoves(near: path).isEmpty
    }

    private func children(of directory: ItemIdentifier) -> Set<[UInt8]> {
        Set(manager.knownItems(in: directory).map { Array($0.filename.utf8) })
    }

    private func names(in path: RemotePath) async throws -> Set<[UInt8]> {
        var names: Set<[UInt8]> = []
        var token: [UInt8]?
        var check = CycleCheck<[UInt8]>()
        repeat {
            let part = try await remote.entries(in: path, from: token, limit: 1000)
            try check.check(part.next, of: "'/\(path.names.joined(separator: "/"))'")
            for entry in part.entries where !HiddenName.isOne(entry.name) { names.insert(Array(entry.name.utf8)) }
            token = part.next
        } while token != nil
        return names
    }
}
