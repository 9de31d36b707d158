import FileProvider

extension PathTree {
    /// How many entries a directory may have that is searched.
    private static let mostSearched = 20_000

    /// Searches the directory in which an item, or else the deepest directory above it that is missing, had its name. What is
    /// found has its new path in ``PathMap`` then.
    func searchRenamed(_ identifier: ItemIdentifier, at path: RemotePath) async throws {
        guard remote.traits.listsHiddenNames else { return }
        var (missing, path) = (identifier, path)
        while missing != .rootContainer, path.name != nil {
            // The listing that did not show it was searched.
            if identities.isNoticed(missing) { return }
            let parent = try parent(of: missing, at: path)
            let directory = path.parent
            do {
                let outcome = try await renamed.search(parent) { [self] in try await search(parent, at: directory) }
                if case .isListed = outcome { return }
                (missing, path) = (parent, directory)
            } catch let error as FileProviderError where PathIdentities.concernsOneDirectory.contains(error.code) {
                return
            }
        }
    }

    private func search(_ parent: ItemIdentifier, at directory: RemotePath) async throws -> RenamedItems.Outcome {
        let (began, search) = (paths.now, identities.beginSearch(in: parent))
        var entries: [RemoteEntry] = []
        do {
            try await remote.visitListing(of: directory) { part in
                entries += part.entries.filter { !HiddenName.isOne($0.name) }
                return entries.count <= Self.mostSearched
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            return .isMissing
        }
        guard entries.count <= Self.mostSearched else { return .isListed }
        try await settleMoves(near: directory)
        // An item that was changed here meanwhile may be there, whatever the listing shows.
        let changed = try await names(changedIn: parent, since: began)
        let listed = Set(entries.map { Array($0.name.utf8) })
        let identified = try await identities.identify(
            entries.filter { !changed.contains(Array($0.name.utf8)) }, in: parent, at: directory,
            listed: listed.union(changed), search: search)
        for (entry, identifier) in identified where MintedIdentifier.isRemote(identifier) {
            guard let known = manager.remotePath(of: identifier).map(RemotePath.init),
                known != directory.appending(entry.name)
            else { continue }
            paths.noteSeen(identifier, from: known, at: PathMap.Place(directory: parent, name: entry.name))
        }
        let present = listed.union(try await names(changedIn: parent, since: began))
        identities.noteListed(parent, at: directory, names: NameSet(present))
        return .isListed
    }

    private func names(changedIn directory: ItemIdentifier, since moment: LedgerState.Tick) async throws -> Set<[UInt8]>
    {
        Set(try await paths.changed(in: directory, since: moment).map { Array($0.name.utf8) })
    }
}
