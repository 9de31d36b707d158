import FileProvider
import Synchronization
import Syscalls

extension Folder {
    /// Does a renaming. It is recorded before, if the file has or had several links.
    ///
    /// - Parameter isUndoing: whether it undoes another one. It is done then also if it cannot be recorded: the system knows the old place.
    /// - Throws: the errors of the store, before the body, and those of the body. The item has its old name then, as far as is known: a
    ///   change of case, or a rename of another file by mistake, may have failed on the way back too, and left it another one.
    func renaming(
        _ identifier: ItemIdentifier, _ status: FileStatus, to place: ChangeLog.Place, isUndoing: Bool = false,
        _ body: () throws -> Void
    ) throws {
        let before = renamings.withLock { renamings in
            renamings.running.insert(identifier)
            return renamings.places[identifier]
        }
        defer { renamings.withLock { _ = $0.running.remove(identifier) } }
        var isRecorded = true
        do {
            try noteRenaming(of: identifier, status, to: place)
        } catch {
            guard isUndoing else { throw error }
            isRecorded = false
        }
        do {
            try body()
            if !isRecorded { forgetRenaming(of: identifier) }
        } catch {
            // The old record still says where the item is.
            guard isRecorded else { throw error }
            if let before {
                try? noteRenaming(of: identifier, status, to: before)
            } else {
                forgetRenaming(of: identifier)
            }
            throw error
        }
    }

    private func noteRenaming(of identifier: ItemIdentifier, _ status: FileStatus, to place: ChangeLog.Place) throws {
        guard status.kind != .directory, let name = place.name else { return }
        let file = FolderItems.file(of: identifier)
        guard
            status.linkCount > 1 || identifier.rawValue != file
                || manager.knownVersion(of: identifier).map(FolderItems.linkCount) ?? 1 > 1
        else { return }
        let renamed = renamings.withLock { $0.places }
        let known = manager.knownIdentifiers(among: Array(renamed.keys))
        let answered = renamed.filter { other, place in
            guard other != identifier, let name = place.name else { return false }
            return !known.contains(other) || manager.identifier(ofChildNamed: name, in: place.directory) == other
        }
        try manager.store.write(.synced) { transaction in
            for other in answered.keys { try transaction.remove(Self.key(other), in: LinkRenaming.namespace) }
            try transaction.put(
                LinkRenaming(directory: place.directory.rawValue, name: name), at: Self.key(identifier),
                in: LinkRenaming.namespace)
        }
        renamings.withLock { renamings in
            for (other, place) in answered where renamings.places[other] == place { renamings.places[other] = nil }
            renamings.places[identifier] = place
        }
    }

    private func forgetRenaming(of identifier: ItemIdentifier) {
        guard renamings.withLock({ $0.places.removeValue(forKey: identifier) }) != nil else { return }
        // If it stays in the store, the next report of the item's place after a restart removes it.
        try? manager.store.remove(Self.key(identifier), in: LinkRenaming.namespace)
    }

    /// An item is about to be reported at a place. At another one than it was renamed to, it has been moved since, unless it was seen there
    /// just before it is renamed.
    func noteSeen(_ identifier: ItemIdentifier, at place: ChangeLog.Place) {
        let isMovedSince = renamings.withLock { renamings in
            guard let renamed = renamings.places[identifier], renamed != place else { return false }
            return !renamings.running.contains(identifier)
        }
        if isMovedSince { forgetRenaming(of: identifier) }
    }

    /// The item that this provider gave a name, if the file with that name is still the item's.
    func renamedItem(with file: String, at place: ChangeLog.Place) -> ItemIdentifier? {
        renamings.withLock { renamings in
            renamings.places.first { $0.value == place && FolderItems.file(of: $0.key) == file }?.key
        }
    }

    /// Finds an item at the name that this provider gave it.
    func findRenamed(_ identifier: ItemIdentifier) throws -> Place? {
        guard let renamed = renamings.withLock({ $0.places[identifier] }), let name = renamed.name else { return nil }
        if renamed.directory == .trashContainer { return try findTrashed(identifier, at: [name]) }
        return try place(of: identifier, named: name, in: renamed.directory)
    }

    private static func key(_ identifier: ItemIdentifier) -> ProviderStoreKey { ProviderStoreKey(identifier.rawValue) }
}
