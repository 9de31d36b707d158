/// Names entries in the order of their keys, so that an object `a` and keys below `a/` get two names. Between the two, any
/// number of keys that begin with `a` may come, as `a-b` and `a.c`.
struct EntryNamer {
    /// The keys of the objects that a directory or a link to come may share its name with.
    private(set) var objects: [String]

    mutating func file(_ part: String, key: String) -> String {
        objects.removeAll { !key.utf8.starts(with: $0.utf8) }
        objects.append(key)
        return KeyNames.name(of: part)
    }

    /// - Parameter key: with its slash.
    mutating func directory(_ part: String, key: String) -> String {
        objects.removeAll { !key.utf8.starts(with: $0.utf8) }
        return objects.contains { $0.utf8.count == key.utf8.count - 1 } && !part.isEmpty
            ? KeyNames.directoryName(of: part) : KeyNames.name(of: part)
    }
}
