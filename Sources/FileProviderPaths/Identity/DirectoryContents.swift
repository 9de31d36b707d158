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
