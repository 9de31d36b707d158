import FileProvider

/// What a directory holds, as evidence of which directory it is: the names, and the versions of files.
struct DirectoryContents {
    /// The version of a file that is not empty: all empty files are alike.
    struct Version {
        var version: [UInt8]
        /// Whether no other content has it; nil where that is not known.
        var isStrong: Bool?
    }

    /// What two directories have in common.
    struct Likeness {
        /// Of all their names, the share that both have.
        var share: Double
        /// Whether a file is the same in both beyond doubt.
        var isProven: Bool
        /// Whether they have the same names, and files of the same versions.
        var isExact: Bool
    }

    /// By name; nil for what is no file, and for an empty one.
    private var versions: [[UInt8]: Version?] = [:]

    /// How much two directories have to have in common: a client that renames a directory may add, remove and change files in
    /// it before the next listing.
    private static let leastShare = 0.5

    var isEmpty: Bool { versions.isEmpty }

    mutating func insert(_ name: String, _ version: Version?) {
        versions[Array(name.utf8)] = .some(version)
    }

    /// How like another directory this one is.
    ///
    /// - Returns: nil when they are two directories: they have too little in common, or most files that both have differ.
    func likeness(to other: DirectoryContents) -> Likeness? {
        var (common, files, equalFiles) = (0, 0, 0)
        var isProven = false
        for (name, version) in versions {
            guard let otherVersion = other.versions[name] else { continue }
            common += 1
            guard let version, let otherVersion else { continue }
            files += 1
            guard version.version == otherVersion.version else { continue }
            equalFiles += 1
            isProven = isProven || (version.isStrong ?? otherVersion.isStrong ?? false)
        }
        guard common > 0, Double(equalFiles) >= Self.leastShare * Double(files) else { return nil }
        let share = Double(common) / Double(versions.count + other.versions.count - common)
        guard share >= Self.leastShare else { return nil }
        return Likeness(share: share, isProven: isProven, isExact: share == 1 && equalFiles == files)
    }

    /// Some of the versions of files.
    var someVersions: [[UInt8]] { versions.values.lazy.compactMap { $0?.version }.prefix(3).map(\.self) }
}

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
