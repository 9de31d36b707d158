import FileProvider
import Synchronization
import Syscalls

/// The identifiers of files with several hard links.
///
/// An identifier contains inode number and birth time. A file with several links is several items: the first has this
/// identifier, and the others have a number appended (`+1`, `+2`). An item keeps its identifier while its name refers
/// to the file, however many links are added or removed. Only the file part is compared with a file, so nothing
/// depends on the link count.
extension Folder {
    /// The identifier of a name of a file: the known one, else one that no other name of the file has.
    ///
    /// - Parameter known: looks up the identifier that the system knows of the name.
    func identifier(
        of status: FileStatus, named name: String, parent: ItemIdentifier, known: (() -> ItemIdentifier?)? = nil
    ) -> ItemIdentifier {
        let file = items.file(status)
        guard status.kind != .directory else { return ItemIdentifier(file) }
        let here = ChangeLog.Place(name, in: parent)
        if let renamed = renamedItem(with: file, at: here) { return renamed }
        // A link that was made just now may have taken the name's identifier since the look-up.
        let known =
            if status.linkCount == 1, let known { known() } else { manager.identifier(ofChildNamed: name, in: parent) }
        if let known, FolderItems.file(of: known) == file { return known }
        guard status.linkCount > 1 else { return ItemIdentifier(file) }
        return links.withLock { given in
            if given.count > Self.mostGiven {
                let known = manager.knownIdentifiers(among: Array(given.keys))
                given = given.filter { !known.contains($0.key) }
            }
            var number = 0
            while true {
                let identifier = FolderItems.identifier(file, link: number)
                if !isTaken(identifier, given[identifier], by: here) {
                    given[identifier] = here
                    return identifier
                }
                number += 1
            }
        }
    }

    private static let mostGiven = 4096

    /// Whether an identifier belongs to another name that still refers to the file.
    ///
    /// - Parameter given: the location for which it was assigned, if the system does not know it yet.
    private func isTaken(
        _ identifier: ItemIdentifier, _ given: ChangeLog.Place?, by here: ChangeLog.Place
    ) -> Bool {
        if let given {
            if given == here { return false }
            if let name = given.name,
                (try? place(of: identifier, named: name, in: given.directory)) != nil
            {
                return true
            }
        }
        if let known = manager.remotePath(of: identifier), (try? find(identifier, at: known)) != nil { return true }
        // A directory above it may have been moved.
        if let known = knownPlace(of: identifier), let name = known.name,
            (try? place(of: identifier, named: name, in: known.directory)) != nil
        {
            return true
        }
        if (try? findRenamed(identifier)) != nil { return true }
        guard let known = manager.remoteTrashPath(of: identifier) else { return false }
        return (try? findTrashed(identifier, at: known)) != nil
    }

    /// The current state of the other links of a file: a write through one link changes all of them, but inotify
    /// reports only one.
    func siblings(of item: FileProviderItem) -> [FileProviderItem] {
        guard item.kind != .directory, let place = try? findIfThere(item.itemIdentifier), place.status.linkCount > 1
        else { return [] }
        return knownSiblings(of: place).compactMap { other in
            guard let place = try? findIfThere(other) else { return nil }
            return self.item(at: place)
        }
    }

    /// The other links of a file that the system knows.
    private func knownSiblings(of place: borrowing Place) -> Set<ItemIdentifier> {
        let file = items.file(place.status)
        let own = place.identifier
        let most = min(Int(place.status.linkCount) + 8, Self.mostSiblings)
        return manager.knownIdentifiers(
            among: (0..<most).map { FolderItems.identifier(file, link: $0) }.filter { $0 != own })
    }

    private static let mostSiblings = 256

    /// Whether a name that was found by its file alone is the new name of the item, and not another hard link of the file.
    /// If in doubt it is not: the item is gone then, and no change of it reaches the other link.
    func isMoved(_ place: borrowing Place) -> Bool {
        guard place.status.kind != .directory, let name = place.name else { return true }
        let here = ChangeLog.Place(name, in: place.parent)
        if let known = manager.identifier(ofChildNamed: name, in: place.parent), known != place.identifier,
            FolderItems.file(of: known) == FolderItems.file(of: place.identifier)
        {
            return false
        }
        let before = knownPlace(of: place.identifier)
        // A directory above it was moved.
        if before == here { return true }
        // A move leaves the number of links, and all but the moved one must be known: any of the others could be this one.
        let count = place.status.linkCount
        guard count == manager.knownVersion(of: place.identifier).map(FolderItems.linkCount) ?? 1 else { return false }
        if count > 1 {
            let others = knownSiblings(of: place).filter { isTaken($0, nil, by: here) }
            guard others.count == Int(count) - 1 else { return false }
        }
        // The number that is known does not include a link that was made since.
        return before.map { !log.isChanged($0) } ?? true
    }

    /// Where the system knows an item, outside the trash.
    func knownPlace(of identifier: ItemIdentifier) -> ChangeLog.Place? {
        guard let path = manager.remotePath(of: identifier), let name = path.last else { return nil }
        var directory = ItemIdentifier.rootContainer
        for component in path.dropLast() {
            guard let next = manager.identifier(ofChildNamed: component, in: directory) else { return nil }
            directory = next
        }
        return ChangeLog.Place(name, in: directory)
    }
}
