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

    var someVersions: [[UInt8]] { versions.values.lazy.compactMap { $0?.version }.prefix(3).map(\.self) }
}
