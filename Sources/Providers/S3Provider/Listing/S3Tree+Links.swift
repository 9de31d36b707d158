import FileProvider
import FileProviderPaths

extension S3Tree {
    typealias Placed = (parent: RemotePath, entry: RemoteEntry)

    /// The entries of a part of a listing, with links in place of the objects that are links. The object of a link whose name another
    /// key has is a file.
    ///
    /// - Parameter objects: the keys before this part that a name may be shared with, as ``EntryNamer`` keeps them.
    func resolvingLinks(_ entries: [Placed], of listing: S3Listing, after objects: [String]) async throws -> [Placed] {
        var due: [(object: S3Object, name: String)] = []
        var places: [Int] = []
        for (index, placed) in entries.enumerated() {
            let (parent, entry) = (placed.parent, placed.entry)
            guard entry.kind == .file, LinkNames.isOne(entry.name), let size = entry.size, LinkNames.canBeTarget(size)
            else { continue }
            let name = String(entry.name.dropLast(LinkNames.suffix.count))
            if try await isTaken(key(of: parent.appending(name)), in: listing, after: objects) { continue }
            let linkKey = key(of: parent.appending(entry.name))
            let object = S3Object(
                key: linkKey, tag: records.tag(of: entry.tag, at: linkKey), size: size,
                modified: entry.attributes.contentModificationDate)
            due.append((object, name))
            places.append(index)
        }
        if due.isEmpty { return entries }
        let found = try await links.kinds(of: due)
        let kinds = Dictionary(uniqueKeysWithValues: zip(places, found))
        return entries.enumerated().compactMap { index, placed -> Placed? in
            switch kinds[index] {
            case .link(let link)?: return (parent: placed.parent, entry: link)
            case .removed?: return nil
            case .file?, nil: return placed
            }
        }
    }

    /// Whether there is an object with the key of a link's name, or keys in a directory of that name.
    private func isTaken(_ key: String, in listing: S3Listing, after objects: [String]) async throws -> Bool {
        if objects.contains(where: { $0.utf8.elementsEqual(key.utf8) }) || listing.index(of: key) != nil { return true }
        // These come after the link's object, and any number of keys in between.
        let prefix = key + "/"
        let position = listing.entries.position(of: prefix.utf8, by: \.key.utf8)
        if position < listing.entries.count { return listing.entries[position].key.utf8.starts(with: prefix.utf8) }
        guard listing.next != nil, !moves.hides(prefix) else { return false }
        return try await hasKeys(below: prefix)
    }
}
