import FileProvider
import Synchronization

/// Lists one directory, part by part as the remote gives them. What the remote gives at once and the system does not take
/// at once is kept for the next page; of what the system has taken only hashes of the names are.
final class PathEnumerator: FileProviderEnumerator {
    private struct State {
        var page = 0
        var waiting: [FileProviderItem] = []
        /// How many of them have been given.
        var given = 0
        var next: [UInt8]?
        var check = CycleCheck<[UInt8]>()
        var names = NameSet()
        var beganAt = 0
        var search: PathIdentities.Search?

        var isEmpty: Bool { given == waiting.count }
    }

    private static let mostLooks = 4
    private static let looksAtOnce = 16
    private let container: ItemIdentifier
    private let provider: PathAddressedProvider
    private let trees: TreeListings?
    private let state = Mutex(State())

    /// - Parameter trees: may have the listing already; nil for one that is asked for now.
    init(container: ItemIdentifier, provider: PathAddressedProvider, trees: TreeListings?) {
        self.container = container
        self.provider = provider
        self.trees = trees
    }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        let size = max(1, suggestedPageSize)
        if page == .initial {
            invalidate()
            let (now, search) = (provider.paths.now, provider.identities.beginSearch(in: container))
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
            return ItemPage(
                items: items, nextPage: isLast ? nil : FileProviderPage(rawValue: Array(String(state.page).utf8)))
        }
    }

    func invalidate() {
        let next = state.withLock { state in
            defer { state.next = nil }
            return state.next
        }
        if let next { provider.remote.endListing(next) }
    }

    /// Takes the next part of the remote's listing.
    private func take(from token: [UInt8]?, limit: Int) async throws {
        let (path, part) = try await provider.locate(container) { [provider] path in
            if token == nil, let ready = trees?.listing(of: path) {
                return (path, RemoteListing(entries: ready))
            }
            return (path, try await provider.remote.entries(in: path, from: token, limit: limit))
        }
        try state.withLock { state in
            state.next = part.next
            try state.check.check(part.next, of: "'/\(path.names.joined(separator: "/"))'")
        }
        let (began, search) = state.withLock { ($0.beganAt, $0.search) }
        var entries = provider.shown(part.entries, in: path)
        var identified: [(entry: RemoteEntry, identifier: ItemIdentifier)] = []
        var moment = began
        for _ in 0..<Self.mostLooks {
            let now = provider.paths.now
            entries = try await current(entries, in: path, since: moment)
            // A renaming may have lost its answer since the listing was asked for.
            try await provider.settleMoves(near: path)
            if part.next == nil, !provider.remote.traits.listsHiddenNames {
                var listed = state.withLock { $0.names }
                for entry in entries { listed.insert(entry.name) }
                entries += try await unlisted(in: path, besides: listed)
            }
            // What was made here meanwhile is there, and the listing need not have it.
            var listed: Set<[UInt8]>?
            if token == nil, part.next == nil {
                let touched = try await provider.paths.changed(in: container, since: began).map(\.name)
                listed = Set((entries.map(\.name) + touched).map { Array($0.utf8) })
            }
            identified = try await provider.identities.identify(
                entries, in: container, at: path, listed: listed, search: search)
            // What was changed here while it was found out who they are is looked at again.
            let changed = try await provider.paths.changed(in: container, since: now)
            if !entries.contains(where: { changed.contains(.init(directory: container, name: $0.name)) }) { break }
            moment = now
        }
        let items = identified.map { provider.items.item($0.entry, as: $0.identifier, in: container) }
        state.withLock { state in
            state.waiting += items
            // Where nothing was known, and all names are listed, nobody asks which there were.
            guard search?.isFirst != true || !provider.remote.traits.listsHiddenNames else { return }
            for entry in entries { state.names.insert(entry.name) }
        }
        // Where nothing was known, nothing is missing.
        guard part.next == nil, search?.isFirst == false else { return }
        // What was made here meanwhile may be there and not be listed.
        let changed = try await provider.paths.changed(in: container, since: began)
        var names = state.withLock { $0.names }
        for place in changed { names.insert(place.name) }
        provider.identities.noteListed(container, at: path, names: names)
    }

    /// What is known, and has a name that the remote lists nothing of: made here, as a rule.
    private func unlisted(in path: RemotePath, besides listed: NameSet) async throws -> [RemoteEntry] {
        var hidden: [KnownItem] = []
        provider.manager.visitKnownItems(in: container) { known in
            if known.filename.utf8.first == UInt8(ascii: "."), !listed.contains(known.filename) {
                hidden.append(known)
            }
            return true
        }
        var entries: [RemoteEntry] = []
        for known in hidden {
            let name = known.filename
            guard !provider.paths.hasMoved(known.itemIdentifier, from: .init(directory: container, name: name)),
                let entry = try await provider.entry(at: path.appending(name))
            else { continue }
            entries.append(entry)
        }
        return entries
    }

    /// The entries as they are after our own changes that were made while they were on their way.
    private func current(
        _ entries: [RemoteEntry], in path: RemotePath, since moment: Int
    ) async throws -> [RemoteEntry] {
        let changed = try await provider.paths.changed(in: container, since: moment)
        if changed.isEmpty { return entries }
        let doubtful = entries.indices.filter {
            changed.contains(.init(directory: container, name: entries[$0].name))
        }
        var result = entries.map(Optional.some)
        try await withThrowingTaskGroup(of: (Int, RemoteEntry?).self) { [provider] group in
            for (count, index) in doubtful.enumerated() {
                if count >= Self.looksAtOnce, let (index, entry) = try await group.next() { result[index] = entry }
                let place = path.appending(entries[index].name)
                group.addTask { (index, try await provider.entry(at: place)) }
            }
            for try await (index, entry) in group { result[index] = entry }
        }
        return result.compactMap { $0 }
    }
}
