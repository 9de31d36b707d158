import FileProvider

/// What a directory holds, as evidence of which directory it is: the names, and the sizes of files.
struct DirectoryContents {
    /// By name; nil for what is no file, or has no known size.
    private(set) var sizes: [[UInt8]: Int64?] = [:]

    /// How much two directories have to have in common: a client that renames a directory may add and remove files in it
    /// before the next listing.
    private static let leastShare = 0.5

    var isEmpty: Bool { sizes.isEmpty }

    mutating func insert(_ name: String, _ kind: ItemKind, size: Int64?) {
        sizes[Array(name.utf8)] = .some(kind == .file ? size : nil)
    }

    /// How like another directory this one is: of all their names, the share that both have.
    ///
    /// - Returns: nil when they are two directories: they have too little in common, or most files that both have differ.
    func likeness(to other: DirectoryContents) -> Double? {
        var (common, files, equalFiles) = (0, 0, 0)
        for (name, size) in sizes {
            guard let otherSize = other.sizes[name] else { continue }
            common += 1
            guard let size, let otherSize else { continue }
            files += 1
            if size == otherSize { equalFiles += 1 }
        }
        guard common > 0, files == 0 || Double(equalFiles) >= Self.leastShare * Double(files) else { return nil }
        let share = Double(common) / Double(sizes.count + other.sizes.count - common)
        return share >= Self.leastShare ? share : nil
    }
}

extension PathIdentities {
    /// Of directories that are gone, those which a new one may be by what it holds.
    ///
    /// - Parameter others: directories that may be gone as well, and that no listing has shown to be.
    func alike(
        _ entry: RemoteEntry, _ path: RemotePath, _ gone: [(missing: Missing, path: RemotePath)], _ others: [Missing],
        _ search: Search
    ) async throws -> [(missing: Missing, path: RemotePath)] {
        let contents = try await contents(of: path)
        func likeness(_ missing: Missing) -> Double? {
            (missing.children ?? children(of: missing.known.itemIdentifier)).likeness(to: contents)
        }
        let found = gone.compactMap { gone in likeness(gone.missing).map { (gone: gone, likeness: $0) } }
        guard let most = found.map(\.likeness).max() else {
            // A directory without a tag and without known children is recognized by its name only.
            return gone.filter {
                ($0.missing.children ?? children(of: $0.missing.known.itemIdentifier)).isEmpty
                    && (!entry.tag.isEmpty || $0.missing.known.filename.utf8.elementsEqual(entry.name.utf8))
            }
        }
        var best = found.filter { $0.likeness == most }.map(\.gone)
        let known = Set(gone.map(\.missing.known.itemIdentifier))
        for other in others where !known.contains(other.known.itemIdentifier) && (likeness(other) ?? 0) >= most {
            guard let old = other.path ?? paths.path(of: other.known.itemIdentifier), old != path,
                try await isGone(old, search)
            else { continue }
            best.append((other, old))
        }
        return best
    }

    func children(of directory: ItemIdentifier) -> DirectoryContents {
        var contents = DirectoryContents()
        for known in manager.knownItems(in: directory) {
            contents.insert(
                known.filename, MintedIdentifier.kind(of: known.itemIdentifier) ?? .file, size: known.documentSize)
        }
        return contents
    }

    private func contents(of path: RemotePath) async throws -> DirectoryContents {
        var contents = DirectoryContents()
        try await remote.visitListing(of: path) { part in
            for entry in part.entries where !HiddenName.isOne(entry.name) {
                contents.insert(entry.name, entry.kind, size: entry.size)
            }
            return true
        }
        return contents
    }
}
