import FileProvider
import Foundation

/// What lies in the remote's trash: listing it, finding in it, reading it, and deleting from it for good.
extension PathAddressedProvider {
    /// The remote and what is known of its trash, where it has one.
    var trash: (remote: any TrashingRemote, book: TrashRecords, look: TrashLook)? {
        guard let parts = trashParts, parts.remote.traits.hasTrash else { return nil }
        return parts
    }

    static var noTrash: FileProviderError { FileProviderError(.featureUnsupported, "this remote has no trash") }

    // MARK: - Listing

    func trashedItems(in container: ItemIdentifier, mayBeOlder: Bool) async throws -> [FileProviderItem] {
        guard let trash else { throw Self.noTrash }
        guard container != .trashContainer else {
            let all = try await mayBeOlder ? trash.look.entriesNowAndThen() : trash.look.entries()
            return shownInTrash(all).map { trashedItem($0, in: .trashContainer) }
        }
        guard let directory = try await trashed(container)?.entry, directory.entry.kind == .directory else {
            throw FileProviderError.noSuchItem(container)
        }
        do {
            let entries = try await trash.remote.trashedEntries(in: directory)
            return shownInTrash(entries).map { trashedItem($0, in: container) }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            throw FileProviderError.noSuchItem(container)
        }
    }

    /// What can be shown; what cannot is reported. What we have left there under hidden names goes.
    private func shownInTrash(_ entries: [TrashedEntry]) -> [TrashedEntry] {
        var identifiers: Set<ItemIdentifier> = []
        return entries.filter { found in
            guard let identifier = found.identifier, !HiddenName.isOne(found.entry.name) else { return false }
            if let defect = FileProviderItem.defect(ofFilename: found.entry.name) {
                manager.report("the remote's trash has a name that is not shown: \(defect)")
                return false
            }
            guard identifiers.insert(identifier).inserted else {
                manager.report("the remote's trash lists '\(found.entry.name)' twice")
                return false
            }
            return true
        }
    }

    func trashedItem(_ found: TrashedEntry, in parent: ItemIdentifier) -> FileProviderItem {
        items.item(found.entry, as: found.identifier ?? parent, in: parent)
    }

    // MARK: - Finding

    /// An item that is in the remote's trash, or below a directory there, and its parent; nil when it is not.
    func trashed(_ identifier: ItemIdentifier) async throws -> (entry: TrashedEntry, parent: ItemIdentifier)? {
        do {
            return try await findTrashed(identifier)
        } catch let error as FileProviderError where error.code == .featureUnsupported {
            // Turned off just now.
            return nil
        }
    }

    private func findTrashed(
        _ identifier: ItemIdentifier
    ) async throws -> (entry: TrashedEntry, parent: ItemIdentifier)? {
        guard let trash, MintedIdentifier.isRemote(identifier) else { return nil }
        if let known = trash.book.known(identifier), let now = try await trash.remote.trashedEntry(known, below: []),
            now.identifier == identifier
        {
            return (trash.book.complete(now), .trashContainer)
        }
        let all = try await trash.look.entries()
        if let found = all.first(where: { $0.identifier == identifier }) { return (found, .trashContainer) }
        guard let names = manager.remoteTrashPath(of: identifier), names.count > 1 else { return nil }
        // Names may come twice in the trash.
        for top in all where top.entry.kind == .directory && top.entry.name.utf8.elementsEqual(names[0].utf8) {
            guard let topIdentifier = top.identifier,
                let found = try await trash.remote.trashedEntry(top, below: Array(names.dropFirst())),
                found.identifier == identifier
            else { continue }
            var parent = topIdentifier
            for name in names.dropFirst().dropLast() {
                guard let next = manager.identifier(ofChildNamed: name, in: parent) else {
                    throw FileProviderError.noSuchItem(identifier)
                }
                parent = next
            }
            return (found, parent)
        }
        return nil
    }

    /// Does something with an item, or else with what it is in the trash.
    func orInTrash<Value: Sendable>(
        _ identifier: ItemIdentifier, _ body: () async throws -> Value,
        inTrash: (TrashedEntry, ItemIdentifier) async throws -> Value
    ) async throws -> Value {
        do {
            return try await body()
        } catch let error as FileProviderError where error.code == .noSuchItem {
            guard let (entry, parent) = try await trashed(identifier) else { throw error }
            return try await inTrash(entry, parent)
        }
    }

    // MARK: - Reading

    func fetchTrashed(
        _ found: TrashedEntry, in parent: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        guard let trash else { throw Self.noTrash }
        let item = trashedItem(found, in: parent)
        if let version, item.itemVersion.contentVersion != version {
            throw FileProviderError(.versionNoLongerAvailable, item: item)
        }
        do {
            try await trash.remote.readTrashed(found, range: range, into: sink)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            throw FileProviderError.noSuchItem(item.itemIdentifier)
        }
        return item
    }

    // MARK: - Deleting

    /// Deletes from the trash for good.
    ///
    /// - Returns: false for what is not known to be there.
    func deleteFromTrash(
        _ identifier: ItemIdentifier, base: ItemVersion, _ options: DeleteItemOptions
    ) async throws -> Bool {
        guard let trash, manager.remoteTrashPath(of: identifier) != nil else { return false }
        // What somebody has brought back meanwhile is in the trash no more, and stays.
        guard let (found, parent) = try await trashed(identifier) else { return true }
        let item = trashedItem(found, in: parent)
        switch found.entry.kind {
        case .file:
            guard
                parent != .trashContainer || PathItems.hasTag(of: item.itemVersion.contentVersion, base.contentVersion)
            else { throw FileProviderError.deletionRejected(of: item) }
        case .directory:
            if !options.contains(.recursive) {
                do {
                    guard try await trash.remote.trashedEntries(in: found).isEmpty else {
                        throw FileProviderError(.directoryNotEmpty, item: item)
                    }
                } catch let error as FileProviderError where error.code == .noSuchItem {
                    return true
                }
            }
        case .symbolicLink: break
        }
        try await trash.remote.deleteTrashed(found)
        if let key = found.entry.stableIdentifier { trash.book.forget(key) }
        return true
    }

    /// Removes from the trash what lies there under one of our hidden names, and whatever begins so.
    func clearTrash(of hidden: String) {
        guard let trash, HiddenName.isOne(hidden) else { return }
        Task { await trash.remote.clearTrash(ofNamesBeginningWith: hidden) }
    }
}
