import FileProvider

/// Searches of directories for items that are not under their known names any more.
///
/// A missing path does not prove that its item was removed: another client may have renamed it, or a directory above it, since
/// the last listing. Before the item counts as removed, the directory that held the name is listed, as a comparison does.
actor RenamedItems {
    private var running: [ItemIdentifier: Task<Void, any Error>] = [:]
    private var ended: [ItemIdentifier: ContinuousClock.Instant] = [:]
    /// For how long a directory is not searched again: of a removed directory each item may be asked for.
    private static let pause = Duration.seconds(5)
    private static let mostEntries = 4096

    /// Searches a directory, once for all that ask meanwhile.
    func search(_ directory: ItemIdentifier, _ body: @escaping @Sendable () async throws -> Void) async throws {
        if let current = running[directory] { return try await current.value }
        if let last = ended[directory], .now - last < Self.pause { return }
        let task = Task { try await body() }
        running[directory] = task
        defer {
            running[directory] = nil
            if ended.count >= Self.mostEntries { ended = [:] }
            ended[directory] = .now
        }
        try await task.value
    }
}

extension PathTree {
    /// How many entries a directory may have that is searched.
    private static let mostSearched = 20_000

    /// Searches the directory in which an item, or else the deepest directory above it that is missing, had its name. What is
    /// found has its new path in ``PathMap`` then.
    func searchRenamed(_ identifier: ItemIdentifier, at path: RemotePath) async throws {
        guard remote.traits.listsHiddenNames else { return }
        var (missing, path) = (identifier, path)
        while missing != .rootContainer, let name = path.name {
            // The listing that did not show it was searched.
            if identities.isNoticed(missing) { return }
            let parent = try parent(of: missing, at: path)
            let directory = path.parent
            do {
                try await renamed.search(parent) { [self] in
                    try await search(parent, at: directory, for: name)
                }
                return
            } catch let error as FileProviderError where error.code == .noSuchItem {
                (missing, path) = (parent, directory)
            } catch let error as FileProviderError where PathIdentities.concernsOneDirectory.contains(error.code) {
                return
            }
        }
    }

    private func search(_ parent: ItemIdentifier, at directory: RemotePath, for name: String) async throws {
        let (began, search) = (paths.now, identities.beginSearch(in: parent))
        var entries: [RemoteEntry] = []
        var isThere = false
        try await remote.visitListing(of: directory) { part in
            entries += part.entries.filter { !HiddenName.isOne($0.name) }
            isThere = isThere || part.entries.contains { $0.name.utf8.elementsEqual(name.utf8) }
            return !isThere && entries.count <= Self.mostSearched
        }
        guard !isThere, entries.count <= Self.mostSearched else { return }
        try await settleMoves(near: directory)
        // An item that was changed here meanwhile may be there, whatever the listing shows.
        let changed = Set(try await paths.changed(in: parent, since: began).map { Array($0.name.utf8) })
        let listed = changed.union(entries.map { Array($0.name.utf8) })
        let identified = try await identities.identify(
            entries.filter { !changed.contains(Array($0.name.utf8)) }, in: parent, at: directory, listed: listed,
            search: search)
        for (entry, identifier) in identified where MintedIdentifier.isRemote(identifier) {
            guard let known = manager.remotePath(of: identifier).map(RemotePath.init),
                known != directory.appending(entry.name)
            else { continue }
            paths.noteSeen(identifier, from: known, at: PathMap.Place(directory: parent, name: entry.name))
        }
        var names = NameSet()
        for name in listed { names.insert(String(decoding: name, as: UTF8.self)) }
        identities.noteListed(parent, at: directory, names: names)
    }
}
