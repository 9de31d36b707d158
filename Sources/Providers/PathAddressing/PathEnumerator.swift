import FileProvider
import Synchronization

/// Lists one directory. What the remote gives at once and the system does not take at once is kept for the next page.
final class PathEnumerator: FileProviderEnumerator {
    private struct State {
        var page = 0
        var waiting: [FileProviderItem] = []
        var next: [UInt8]?
        var names: Set<[UInt8]> = []
        var beganAt = 0
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
            let now = provider.book.now
            state.withLock { $0 = State(beganAt: now) }
            try await take(from: nil, limit: size)
        } else {
            let current = state.withLock { $0 }
            guard page.rawValue == Array(String(current.page).utf8) else { throw FileProviderError(.pageExpired) }
            if current.waiting.isEmpty, let next = current.next { try await take(from: next, limit: size) }
        }
        return state.withLock { state in
            let items = Array(state.waiting.prefix(size))
            state.waiting.removeFirst(items.count)
            state.page += 1
            let isLast = state.waiting.isEmpty && state.next == nil
            return ItemPage(
                items: items, nextPage: isLast ? nil : FileProviderPage(rawValue: Array(String(state.page).utf8)))
        }
    }

    /// Takes the next part of the remote's listing.
    private func take(from token: [UInt8]?, limit: Int) async throws {
        let (path, part) = try await provider.locate(container) { [provider] path in
            if token == nil, let ready = trees?.listing(of: path) {
                return (path, RemoteListing(entries: ready))
            }
            return (path, try await provider.remote.entries(in: path, from: token, limit: limit))
        }
        let (began, before) = state.withLock { ($0.beganAt, $0.names) }
        var entries = provider.shown(part.entries, in: path)
        var identified: [(entry: RemoteEntry, identifier: ItemIdentifier)] = []
        var moment = began
        for _ in 0..<Self.mostLooks {
            let now = provider.book.now
            entries = try await current(entries, in: path, since: moment)
            // A renaming may have lost its answer since the listing was asked for.
            try await provider.settleMoves(near: path)
            if part.next == nil, !provider.remote.traits.listsHiddenNames {
                let listed = entries.reduce(into: before) { $0.insert(Array($1.name.utf8)) }
                entries += try await unlisted(in: path, besides: listed)
            }
            // What was made here meanwhile is there, and the listing need not have it.
            var listed: Set<[UInt8]>?
            if token == nil, part.next == nil {
                let touched = try await provider.book.changed(in: container, since: began).map(\.name)
                listed = Set((entries.map(\.name) + touched).map { Array($0.utf8) })
            }
            identified = try await provider.identities.identify(entries, in: container, at: path, listed: listed)
            // What was changed here while it was found out who they are is looked at again.
            let changed = try await provider.book.changed(in: container, since: now)
            if !entries.contains(where: { changed.contains(.init(directory: container, name: $0.name)) }) { break }
            moment = now
        }
        let items = identified.map { provider.items.item($0.entry, as: $0.identifier, in: container) }
        let (isComplete, found) = state.withLock { state in
            state.waiting += items
            state.next = part.next
            for entry in entries { state.names.insert(Array(entry.name.utf8)) }
            return (part.next == nil, state.names)
        }
        guard isComplete else { return }
        // What was made here meanwhile may be there and not be listed.
        let changed = try await provider.book.changed(in: container, since: began)
        let names = changed.reduce(into: found) { $0.insert(Array($1.name.utf8)) }
        provider.identities.noteListed(container, at: path, names: names)
    }

    /// What is known, and has a name that the remote lists nothing of: made here, as a rule.
    private func unlisted(in path: RemotePath, besides listed: Set<[UInt8]>) async throws -> [RemoteEntry] {
        var entries: [RemoteEntry] = []
        for known in provider.manager.knownItems(in: container) {
            let name = known.filename
            guard name.utf8.first == UInt8(ascii: "."), !listed.contains(Array(name.utf8)),
                !provider.book.hasMoved(known.itemIdentifier, from: .init(directory: container, name: name)),
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
        let changed = try await provider.book.changed(in: container, since: moment)
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
