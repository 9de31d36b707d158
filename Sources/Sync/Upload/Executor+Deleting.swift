import FileProvider
import Replica

/// Deletions of what was removed here.
extension Executor {
    /// - Returns: the item's identifier, which for one that was made without an answer is found out here.
    @discardableResult
    func delete(_ queued: PendingDeletion) async -> ItemIdentifier {
        let request = request
        var known = queued
        do {
            if queued.isToBeFound {
                try await find(queued)
                return queued.identifier
            }
            let mayHideOther = try !replica.database.unanswered(ofDeletion: queued.id).isEmpty
            let there = try await unansweredItem(of: queued)
            if let there, InodeKind(there.kind) == queued.kind, try await isOwn(there, queued),
                try await !isMovedBack(there, queued)
            {
                // A provider that knows only paths asks where it is.
                try await commits.commit { try $0.offers.foundDeleted(queued, as: there) }
                known.identifier = there.itemIdentifier
                known.version = there.itemVersion
            } else if queued.isPlaceholder {
                try await commits.commit { try $0.conflicts.endSearch(for: queued, mayArrive: there == nil) }
                return queued.identifier
            }
            let deletion = known
            let trashedTop = try replica.database.trashedTop(of: deletion)
            if let trashedTop { try await checkIsInTrash(deletion, below: trashedTop) }
            if !calls.provider.features.conditionalWrites { try await checkIsUnchanged(deletion) }
            // What lies below a trashed directory is in no working set: it is deleted with the directory.
            let extent: DeleteItemOptions = trashedTop == deletion.identifier ? .recursive : []
            let options = trashedTop == nil ? extent : extent.union(.onlyFromTrash)
            do {
                try await make(.deleteItem) { provider in
                    try await provider.deleteItem(
                        identifier: deletion.identifier, baseVersion: deletion.version, options: options,
                        request: request)
                }
            } catch let error as FileProviderError {
                guard error.code == .noSuchItem else { throw error }
                // Its identifier may be one that the reimport is about to give up.
                if try replica.database.reimports.isMarking { return known.identifier }
                // What was removed here would be back with the disk that is not mounted.
                if try await root.isEmptied() { return known.identifier }
            }
            try await commits.commit { ingestion in
                try ingestion.answers.acknowledgeDeletion(deletion)
                if mayHideOther { try ingestion.conflicts.compareLater(deletion.parent) }
            }
            let directory = (try? replica.database.item(deletion.parent))?.inode.number
            events.tell(.deleted, of: nil, in: directory, named: deletion.name)
        } catch {
            await failed(known, error)
        }
        return known.identifier
    }

    /// - Parameter top: the item directly in the trash that it was deleted in, or is.
    /// - Throws: `deletionRejected` for what another client has restored, or moved out of a directory in the trash.
    private func checkIsInTrash(_ deletion: PendingDeletion, below top: ItemIdentifier) async throws {
        if !checks.hasPassed(top) {
            if let item = try await remoteLookup.lookUp(top, for: request), !item.isTrashed {
                throw FileProviderError.wasRestored(
                    deletion.identifier, item: top == deletion.identifier ? item : nil)
            }
            checks.notePassed(top)
        }
        guard top != deletion.identifier, let item = try await remoteLookup.lookUp(deletion.identifier, for: request),
            item.parentItemIdentifier != deletion.parent, !item.isTrashed
        else { return }
        throw FileProviderError(.deletionRejected, "it was moved out of the trash", item: item)
    }

    /// - Throws: `deletionRejected` for a file that has other content by now.
    private func checkIsUnchanged(_ deletion: PendingDeletion) async throws {
        guard deletion.kind != .directory, let item = try await remoteLookup.lookUp(deletion.identifier, for: request),
            item.itemVersion.contentVersion != deletion.version.contentVersion
        else { return }
        throw FileProviderError(.deletionRejected, "it has other contents on the remote", item: item)
    }

    /// The item on the remote that may have come of a change which was sent before the item was removed here, and never
    /// answered; nil when there was no such change, or nothing is there.
    private func unansweredItem(of deletion: PendingDeletion) async throws -> FileProviderItem? {
        guard try !replica.database.unanswered(ofDeletion: deletion.id).isEmpty else { return nil }
        var found: FileProviderItem?
        // It may have been moved as well: the provider knows where to.
        if !deletion.isPlaceholder { found = try await remoteLookup.lookUp(deletion.identifier, for: request) }
        if found == nil { found = try await item(named: deletion.name, in: deletion.parent) }
        return found
    }

    /// Whether a new item that was renamed after an unanswered request has been moved back by another client: what has its
    /// first name is the item then, and not a second one.
    private func isMovedBack(_ there: FileProviderItem, _ deletion: PendingDeletion) async throws -> Bool {
        guard let row = try replica.database.renamedItem(ofDeletion: deletion.id) else { return false }
        guard let renamed = try replica.database.item(row: row) else { return true }
        guard let identifier = renamed.identifier else { return false }
        guard let item = try await remoteLookup.lookUp(identifier, for: request) else { return true }
        return item.parentItemIdentifier == there.parentItemIdentifier
            && item.filename.utf8.elementsEqual(there.filename.utf8)
    }

    /// Looks for a name in a directory on the remote; nil when nothing has it, or the directory is not there.
    func item(named name: String, in directory: ItemIdentifier) async throws -> FileProviderItem? {
        var found: FileProviderItem?
        do {
            try await calls.enumerate(directory, for: request) { items in
                found = items.first { $0.filename.utf8.elementsEqual(name.utf8) }
                return found == nil
            }
        } catch let error as FileProviderError {
            guard error.code == .noSuchItem else { throw error }
        }
        return found
    }

    private func failed(_ deletion: PendingDeletion, _ error: any Error) async {
        if Task.isCancelled { return }
        do {
            let failure = ProviderCalls.failure(from: error)
            switch failure.code {
            case .domainDisabled: break
            case .userCancelled: await pauseUnrecorded()
            case .deletionRejected, .directoryNotEmpty, .localVersionConflictingWithServer:
                let request = request
                var item = failure.item
                if item == nil {
                    item = try? await make(.item) { try await $0.item(for: deletion.identifier, request: request) }
                    try Task.checkCancellation()
                }
                let found = item
                // The provider's message cannot say what has changed since the deletion was made.
                let isChanged =
                    found?.kind == .file && found?.itemVersion.contentVersion != deletion.version.contentVersion
                let reason =
                    failure.code == .deletionRejected && isChanged ? "it has changed there" : failure.message
                let place = path(of: deletion)
                try await commits.commit { try $0.conflicts.bringBack(deletion, as: found) }
                // Only now: while the item is not back, its warning counts as over.
                warnings.report(
                    Warnings.text(ofDeletionAt: place, reason),
                    of: .deletion(
                        of: found?.itemIdentifier ?? deletion.identifier,
                        in: found?.parentItemIdentifier ?? deletion.parent))
            default:
                if failure.code.reaction == .latchDomain { return }
                let time = Backoff.nextTry(after: failure, attempts: deletion.attempts)
                try await commits.commit { try $0.answers.postpone(deletion, failure, until: time) }
            }
        } catch {
            if Task.isCancelled { return }
            warnings.report("what became of the deletion of '\(deletion.name)' cannot be recorded: \(error)")
            await pauseUnrecorded()
        }
    }
}
