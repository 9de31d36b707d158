import FileProvider
import Synchronization

/// Lists one directory, part by part as the remote gives them. Entries of a part that do not fit into a page are kept for the
/// next one; of the entries that the system has got only hashes of the names are kept.
final class PathEnumerator: FileProviderEnumerator {
    private struct Part {
        var path: RemotePath
        var listing: RemoteListing
    }

    private struct State {
        var page = 0
        var waiting: [FileProviderItem] = []
        /// How many of them have been given.
        var given = 0
        /// What is not shown of the parts that were taken since the last page.
        var omissions: [String] = []
        var next: [UInt8]?
        /// The part that was fetched and is not in `waiting` yet. A remote gives some parts only once: after a failure the same
        /// page is made of it.
        var fetched: Part?
        var check = CycleCheck<[UInt8]>()
        var names = NameSet()
        var beganAt = 0
        var search: PathIdentities.Search?

        var isEmpty: Bool { given == waiting.count }
    }

    private static let mostLooks = 4
    private static let looksAtOnce = 16
    /// How much of a name that is left out is reported.
    private static let longestName = 40
    private let container: ItemIdentifier
    private let tree: PathTree
    private let trees: TreeListings?
    private let leftovers: Leftovers
    private let state = Mutex(State())

    /// - Parameters:
    ///   - trees: may have the listing already; nil for a listing that is requested now.
    ///   - leftovers: which items with hidden names are removed.
    init(container: ItemIdentifier, tree: PathTree, trees: TreeListings?, leftovers: Leftovers) {
        self.container = container
        self.tree = tree
        self.trees = trees
        self.leftovers = leftovers
    }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        let size = max(1, suggestedPageSize)
        if page == .initial {
            invalidate()
            let (now, search) = (tree.paths.now, tree.identities.beginSearch(in: container))
            state.withLock { $0 = State(beganAt: now, search: search) }
            try await take(from: nil, limit: size)
        } else {
            let (number, isEmpty, next) = state.withLock { ($0.page, $0.isEmpty, $0.next) }
            guard page.rawValue == Array(String(number).utf8) else { throw FileProviderError(.pageExpired) }
            if isEmpty, let next { try await take(from: next, limit: size) }
        }
        return state.withLock { state in
            let end = min(state.given + size, state.waiting.count)
            let items = Array(state.waiting[state.given..<end])
            state.given = end
            if state.isEmpty { (state.waiting, state.given) = ([], 0) }
            state.page += 1
            let isLast = state.isEmpty && state.next == nil
            defer { state.omissions = [] }
            return ItemPage(
                items: items, nextPage: isLast ? nil : FileProviderPage(rawValue: Array(String(state.page).utf8)),
                omissions: state.omissions)
        }
    }

    func invalidate() {
        let next = state.withLock { state -> [UInt8]? in
            defer { (state.next, state.fetched) = (nil, nil) }
            if let fetched = state.fetched { return fetched.listing.next }
            return state.next
        }
        if let next { tree.remote.endListing(next) }
    }

    /// Fetches the next part of the remote's listing.
    private func fetch(from token: [UInt8]?, limit: Int) async throws -> Part {
        let part = try await tree.locate(container) { [tree] path in
            if token == nil, let ready = trees?.listing(of: path) {
                return Part(path: path, listing: RemoteListing(entries: ready))
            }
            return Part(path: path, listing: try await tree.remote.entries(in: path, from: token, limit: limit))
        }
        let what = "'/\(part.path.names.joined(separator: "/"))'"
        do {
            try state.withLock { state in
                try state.check.check(part.listing.next, isEmpty: part.listing.entries.isEmpty, of: what)
                state.fetched = part
            }
        } catch {
            if let next = part.listing.next { tree.remote.endListing(next) }
            throw error
        }
        return part
    }

    /// Takes the next part of the remote's listing. Nothing of it counts as taken before the end: the system makes a call that
    /// fails once more, and a part that it skipped would look removed.
    private func take(from token: [UInt8]?, limit: Int) async throws {
        let kept = state.withLock { $0.fetched }
        let fetched = if let kept { kept } else { try await fetch(from: token, limit: limit) }
        let (path, part) = (fetched.path, fetched.listing)
        let (began, search) = state.withLock { ($0.beganAt, $0.search) }
        let selection = shown(part.entries, in: path)
        var entries = selection.entries
        var identified: [(entry: RemoteEntry, identifier: ItemIdentifier)] = []
        var moment = began
        for _ in 0..<Self.mostLooks {
            let now = tree.paths.now
            entries = try await current(entries, in: path, since: moment)
            // The response to a move may have been lost since the listing was requested.
            try await settleMoves(near: path, after: entries, isLast: part.next == nil)
            if part.next == nil, !tree.remote.traits.listsHiddenNames {
                var listed = state.withLock { $0.names }
                for entry in entries { listed.insert(entry.name) }
                entries += try await unlisted(in: path, besides: listed)
            }
            // An item that was made here meanwhile is there, and the listing need not have it.
            var listed: Set<[UInt8]>?
            if token == nil, part.next == nil {
                let touched = try await tree.paths.changed(in: container, since: began).map(\.name)
                listed = Set((entries.map(\.name) + touched).map { Array($0.utf8) })
            }
            identified = try await tree.identities.identify(
                entries, in: container, at: path, listed: listed, search: search)
            // Entries that were changed here while they were identified are requested again.
            let changed = try await tree.paths.changed(in: container, since: now)
            if !entries.contains(where: { changed.contains(.init(directory: container, name: $0.name)) }) { break }
            moment = now
        }
        let items = identified.map { tree.items.item($0.entry, as: $0.identifier, in: container) }
        // Where nothing was known, nothing is missing. An item that was made here meanwhile may be there and not be listed.
        let isEnd = part.next == nil && search?.isFirst == false
        let made = try await isEnd ? tree.paths.changed(in: container, since: began) : []
        var names = state.withLock { state in
            state.waiting += items
            state.omissions += selection.omissions
            (state.next, state.fetched) = (part.next, nil)
            // Where nothing was known, and all names are listed, the names are not needed.
            if search?.isFirst != true || !tree.remote.traits.listsHiddenNames {
                for entry in entries { state.names.insert(entry.name) }
            }
            return state.names
        }
        guard isEnd else { return }
        for place in made { names.insert(place.name) }
        tree.identities.noteListed(container, at: path, names: names)
    }

    /// - Parameters:
    ///   - entries: the last ones of the listing.
    ///   - isLast: whether nothing follows them.
    private func settleMoves(near path: RemotePath, after entries: [RemoteEntry], isLast: Bool) async throws {
        // Where nothing was known, the names were not kept.
        let isComplete = isLast && state.withLock { $0.search?.isFirst == false }
        // The set is not copied: it may be large, and as a rule nothing is asked of it.
        try await tree.settleMoves(near: path) { place in
            guard isComplete, place.parent == path, let name = place.name else { return false }
            return !entries.contains { $0.name.utf8.elementsEqual(name.utf8) }
                && !state.withLock { $0.names.contains(name) }
        }
    }

    /// The known items with names that the remote does not list. As a rule they were made here.
    private func unlisted(in path: RemotePath, besides listed: NameSet) async throws -> [RemoteEntry] {
        var hidden: [KnownItem] = []
        tree.manager.visitKnownItems(in: container) { known in
            if known.filename.utf8.first == UInt8(ascii: "."), !listed.contains(known.filename) {
                hidden.append(known)
            }
            return true
        }
        var entries: [RemoteEntry] = []
        for known in hidden {
            let name = known.filename
            guard !tree.paths.hasMoved(known.itemIdentifier, from: .init(directory: container, name: name)),
                let entry = try await tree.entry(at: path.appending(name))
            else { continue }
            entries.append(entry)
        }
        return entries
    }

    /// The entries after the changes that were made here since the listing was requested.
    private func current(
        _ entries: [RemoteEntry], in path: RemotePath, since moment: Int
    ) async throws -> [RemoteEntry] {
        let changed = try await tree.paths.changed(in: container, since: moment)
        if changed.isEmpty { return entries }
        let doubtful = entries.indices.filter {
            changed.contains(.init(directory: container, name: entries[$0].name))
        }
        let result = Mutex(entries.map(Optional.some))
        try await inParallel(doubtful, width: Self.looksAtOnce) { [tree] index in
            let entry = try await tree.entry(at: path.appending(entries[index].name))
            result.withLock { $0[index] = entry }
        }
        return result.withLock { $0.compactMap { $0 } }
    }

    /// The entries that can be shown, and a text for each of the others. An item that an interrupted change left behind is removed.
    private func shown(
        _ entries: [RemoteEntry], in path: RemotePath
    ) -> (entries: [RemoteEntry], omissions: [String]) {
        var names: Set<[UInt8]> = []
        var omissions: [String] = []
        let visible = entries.filter { entry in
            if HiddenName.isOne(entry.name) {
                // A remote that says that a name has a slash in it might remove something elsewhere.
                if FileProviderItem.defect(ofUTF8Filename: entry.name) == nil {
                    removeLeftover(entry, path.appending(entry.name))
                }
                return false
            }
            guard names.insert(Array(entry.name.utf8)).inserted else {
                omissions.append(Self.omission(of: entry.name, in: path, "the remote lists a name twice"))
                return false
            }
            if let defect = FileProviderItem.defect(ofUTF8Filename: entry.name) {
                let reason = "the remote has a name that is not shown: \(defect)"
                omissions.append(Self.omission(of: entry.name, in: path, reason))
                return false
            }
            return true
        }
        return (visible, omissions)
    }

    /// Says which entry is left out, with its place; of a long name, the beginning.
    private static func omission(of name: String, in directory: RemotePath, _ reason: String) -> String {
        var beginning = String(String.UnicodeScalarView(name.unicodeScalars.prefix(longestName)))
        if beginning.utf8.count < name.utf8.count { beginning += "…" }
        return "\(reason): '\(beginning)' in '/\(directory.names.joined(separator: "/"))'"
    }

    private func removeLeftover(_ entry: RemoteEntry, _ path: RemotePath) {
        guard tree.remote.traits.isWritable, !tree.manager.domain.isReadOnly else { return }
        if let remote = tree.remote as? any HidingRemote, remote.isRemoval(entry.name) {
            // What is under the name may be another client's: it is not hidden for long, however new it is.
            leftovers.finishRemoval(at: path, of: remote)
            return
        }
        guard leftovers.contain(entry, at: path) else { return }
        Task { [remote = tree.remote] in
            try? await remote.delete(path, kind: entry.kind, if: .unchanged(tag: entry.tag))
            await (remote as? any TrashingRemote)?.clearTrash(ofNamesBeginningWith: entry.name)
        }
    }
}
