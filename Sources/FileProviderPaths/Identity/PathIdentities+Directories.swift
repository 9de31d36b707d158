import FileProvider

extension PathIdentities {
    /// Of directories that are gone, the one that a new one is by what it holds; none where several may be it: whatever is
    /// changed below it here is sent to the new one. Without a file that is the same beyond doubt it is one of the same parent,
    /// or has the very same contents.
    ///
    /// - Parameter others: directories that may be gone as well, and that no listing has shown to be.
    func alike(
        _ entry: RemoteEntry, _ path: RemotePath, _ gone: [(missing: Missing, path: RemotePath)], _ others: [Missing],
        _ search: Search
    ) async throws -> [(missing: Missing, path: RemotePath)] {
        let contents = try await contents(of: path)
        func likeness(_ missing: Missing) -> DirectoryContents.Likeness? {
            (missing.children ?? children(of: missing.known.itemIdentifier)).likeness(to: contents)
        }
        let found = gone.filter { likeness($0.missing) != nil }
        if found.isEmpty {
            // A directory without a tag and without known children is recognized by its name only.
            return gone.filter {
                ($0.missing.children ?? children(of: $0.missing.known.itemIdentifier)).isEmpty
                    && (!entry.tag.isEmpty || $0.missing.known.filename.utf8.elementsEqual(entry.name.utf8))
            }
        }
        guard found.count == 1, let only = found.first, let likeness = likeness(only.missing),
            likeness.isProven || likeness.isExact || only.missing.known.parentItemIdentifier == search.parent
        else { return [] }
        var rivals = Set(others.map(\.known.itemIdentifier))
        if !likeness.isProven {
            // Directories with the same files, which may be gone although no listing has shown it yet.
            let versions = contents.someVersions
            let files = manager.knownItems(withContentVersions: versions + versions.map(PathItems.unsettledVersion))
            rivals.formUnion(files.map(\.parentItemIdentifier))
        }
        rivals.remove(only.missing.known.itemIdentifier)
        for rival in rivals {
            guard let old = paths.path(of: rival), old != path, children(of: rival).likeness(to: contents) != nil
            else { continue }
            if try await isGone(old, search) { return [] }
        }
        return found
    }

    func children(of directory: ItemIdentifier) -> DirectoryContents {
        var contents = DirectoryContents()
        for known in manager.knownItems(in: directory) {
            let isFile = MintedIdentifier.kind(of: known.itemIdentifier) == .file && known.documentSize != 0
            contents.insert(
                known.filename,
                isFile ? .init(version: PathItems.settledVersion(of: known.contentVersion), isStrong: nil) : nil)
        }
        return contents
    }

    private func contents(of path: RemotePath) async throws -> DirectoryContents {
        var contents = DirectoryContents()
        try await remote.visitListing(of: path) { part in
            for entry in part.entries where !HiddenName.isOne(entry.name) {
                let isFile = entry.kind == .file && entry.size != 0
                contents.insert(
                    entry.name, isFile ? .init(version: entry.version, isStrong: entry.isTagStrong) : nil)
            }
            return true
        }
        return contents
    }
}
