import FileProvider
import SystemPackage

/// Reports the changes in watched directories.
struct FolderChanges: FileProviderEnumerator {
    let folder: Folder
    let watcher: FolderWatcher?
    private var log: ChangeLog { folder.log }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        ItemPage(items: [])
    }

    func currentSyncAnchor() async throws -> SyncAnchor? { log.anchor }

    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        watcher?.catchUp()
        guard let logged = log.places(since: anchor, limit: max(1, suggestedBatchSize)) else {
            throw FileProviderError(.syncAnchorExpired)
        }
        return try await folder.calls.run { [self] cancellation in
            // No change tells that a file system became writable.
            if folder.isReadOnly { try? folder.openRoot().close() }
            var batch = ChangeBatch(anchor: logged.anchor, moreComing: !logged.isAll)
            var vanished: Set<ItemIdentifier> = []
            var movedAway: [ItemIdentifier: ChangeLog.Place] = [:]
            var hasMoves = false
            var lost: [ChangeLog.Place] = []
            /// The directories that were looked for and not found.
            var missing: Set<ItemIdentifier> = []
            var denied: [ChangeLog.Place] = []
            /// - Returns: false when the directory is not found.
            func take(_ place: ChangeLog.Place) throws -> Bool {
                do {
                    if place.directory == .trashContainer {
                        try compareTrash(place.name, &batch, &vanished)
                        return true
                    }
                    guard place.directory == .rootContainer, let name = place.name, Folder.isTrashName(name.utf8) else {
                        return try compare(place, &batch, &vanished)
                    }
                    // A new trash directory may have received items before it was watched.
                    watcher?.watchTrash(of: folder)
                    try add(folder.trashedItems(checking: cancellation.check), to: &batch)
                } catch  where Folder.isDenied(error) {
                    denied.append(place)
                }
                return true
            }
            /// - Returns: false when the directory is not found.
            func examine(_ place: ChangeLog.Place) throws -> Bool {
                try cancellation.check()
                guard !missing.contains(place.directory) else { return false }
                let before = vanished
                guard try take(place) else {
                    missing.insert(place.directory)
                    return false
                }
                if denied.last != place, try log.takeMovedAway(place, checking: cancellation.check) {
                    hasMoves = true
                    for identifier in vanished.subtracting(before) { movedAway[identifier] = place }
                }
                return true
            }
            /// Whether a place is to be examined again. Of a directory that was removed, its parent reports that.
            func isLost(_ place: ChangeLog.Place) throws -> Bool {
                guard folder.manager.remotePath(of: place.directory) != nil else {
                    _ = try log.takeMovedAway(place, checking: cancellation.check)
                    return false
                }
                return try !examine(place)
            }
            /// What was moved and has not been found so far.
            func sought() -> Set<ItemIdentifier> {
                Set(movedAway.keys).intersection(vanished).subtracting(batch.updated.map(\.itemIdentifier))
            }
            /// Whether the folder is to be walked for the directories of lost places. For those that were lost in an earlier call that was
            /// done then: it is done again if something was moved to a directory that is not watched.
            func isWalkNeeded() -> Bool {
                if !lost.isEmpty, !sought().isEmpty { return true }
                guard lost.contains(where: { !logged.unfound.contains($0) }) else { return false }
                return hasMoves || log.hasMovedAway || folder.index.isCheap
            }
            for place in logged.places {
                if let name = place.name { try folder.waitForAnswers(in: place.directory, named: name, cancellation) }
                if try !examine(place) { lost.append(place) }
            }
            // Changes in a directory that was moved after them, perhaps just now. Where it is now is among the changes, or has to be
            // looked for.
            if !lost.isEmpty { log.catchUpNow() }
            for isWalked in [false, true] where !lost.isEmpty {
                missing = []
                lost = try lost.filter(isLost)
                guard !isWalked, isWalkNeeded() else { break }
                folder.index.expire()
            }
            // Its move may be among later changes, or it is out of the folder for a while.
            batch.anchor = try log.settle(logged, lost: Set(lost), checking: cancellation.check)
            batch.updated += try folder.search(for: sought())
            var gone = vanished.subtracting(batch.updated.map(\.itemIdentifier))
            // A directory that denies access must not hold up the others. When it can be read again, that is a change, and what was
            // changed in it before is compared with that. What was moved may be in it until then.
            if log.postpone(denied, isRoundComplete: logged.isAll) {
                let moved = movedAway.filter { gone.contains($0.key) }
                gone.subtract(moved.keys)
                for place in moved.values { log.noteMovedAway(place) }
                _ = log.postpone(Array(moved.values), isRoundComplete: logged.isAll)
            }
            batch.deleted = Array(gone)
            return batch
        }
    }

    private func add(_ items: [FileProviderItem], to batch: inout ChangeBatch) {
        let identifiers = Set(items.map(\.itemIdentifier))
        batch.updated.removeAll { identifiers.contains($0.itemIdentifier) }
        batch.updated += items
    }

    private func compareTrash(
        _ name: String?, _ batch: inout ChangeBatch, _ vanished: inout Set<ItemIdentifier>
    ) throws {
        guard let name else { return }
        let known = folder.manager.identifier(ofChildNamed: name, in: .trashContainer)
        do {
            let item = try folder.trashedItem(named: name)
            if let item { add([item], to: &batch) }
            if let known, known != item?.itemIdentifier { vanished.insert(known) }
        } catch let error as Errno {
            throw folder.failure(error, of: .trashContainer)
        }
    }

    /// Compares a path with the known item.
    ///
    /// - Returns: false when the directory is not found.
    private func compare(
        _ place: ChangeLog.Place, _ batch: inout ChangeBatch, _ vanished: inout Set<ItemIdentifier>
    ) throws -> Bool {
        do {
            guard let name = place.name else {
                let found = try folder.find(place.directory)
                if let item = folder.item(at: found) { batch.updated.append(item) }
                return true
            }
            let known = folder.manager.identifier(ofChildNamed: name, in: place.directory)
            let directory = try folder.openDirectory(place.directory)
            defer { try? directory.close() }
            let write = log.lastWrite(at: place)
            let item = try folder.item(named: name, in: directory, parent: place.directory)
            if let item {
                if let write, let changed = FolderItems.changeTime(of: item.itemVersion) {
                    log.noteSeen(place, changedAt: changed, after: write)
                }
                batch.updated.removeAll { $0.itemIdentifier == item.itemIdentifier }
                batch.updated.append(item)
                folder.noteMoved(item)
                if known != item.itemIdentifier {
                    folder.index.note(item.itemIdentifier, named: item.filename, in: place.directory)
                }
                add(folder.siblings(of: item), to: &batch)
            }
            if let known, known != item?.itemIdentifier { vanished.insert(known) }
            return true
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // If it was removed, its parent reports that.
            return false
        } catch let error as FileProviderError where error.code == .ubiquitousFileUnavailable {
            return true
        } catch let error as Errno {
            let failure = folder.failure(error, of: place.directory)
            // All is compared when the file system is there again.
            if failure.code == .ubiquitousFileUnavailable { return true }
            throw failure
        }
    }
}

extension Folder {
    /// Finds items that were moved out of a watched directory and did not appear in another one.
    ///
    /// - Returns: the items that are still in the folder.
    func search(for identifiers: Set<ItemIdentifier>) throws -> [FileProviderItem] {
        guard !identifiers.isEmpty else { return [] }
        index.expire()
        return try identifiers.compactMap { identifier in
            guard let place = try findIfThere(identifier), let item = item(at: place) else { return nil }
            noteMoved(item)
            return item
        }
    }
}
