import FileProvider
import Replica

/// Resolves conflicts: an item on the remote in the place of a change is recognized as the same, or kept beside the
/// local one.
extension Executor {
    /// An item of the name is on the remote already.
    func collision(_ sent: SentChange, _ remote: FileProviderItem?) async throws {
        if let remote, remote.itemIdentifier == sent.identifier, !isInPlace(remote, of: sent) {
            // Nothing has to leave the name first: the change would be sent again at once, for ever.
            return try await postpone(
                sent,
                FileProviderError(
                    .cannotSynchronize,
                    "to the remote, '\(sent.item.filename)' is the name of '\(remote.filename)' itself",
                    itemIdentifier: sent.item.itemIdentifier))
        }
        if let remote, sent.identifier == nil, try hasOwnDate(remote, sent), try isBeforeWriting(remote, sent) {
            return try await recognize(remote, sent)
        }
        let remote = try await found(remote, whereWasSent: sent)
        // Equal content on both sides is no conflict, nor is our own content under another identifier.
        do {
            if let remote, sent.identifier == nil, try await isSame(remote, as: sent) {
                return try await record(
                    .applied(remote, stillPending: [], shouldFetchContent: false), for: sent)
            }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // The provider cannot read an item that was never listed. The repeated creation lets the provider compare it
            // (`mayAlreadyExist`): after that it differs.
            if !sent.isReplay {
                let row = sent.row
                return try await commits.commit { try $0.answers.wait(row, until: FileTimestamp.now) }
            }
        }
        if let remote, sent.identifier == nil, try await isOwn(remote, sent), try isBeforeWriting(remote, sent) {
            return try await recognize(remote, sent)
        }
        let label = conflictLabel()
        let isResolved = try await commits.commit { ingestion in
            try ingestion.answers.noteAnswered(sent)
            return try ingestion.conflicts.resolveCollision(of: sent.row, with: remote, label: label, sent: sent)
        }
        if !isResolved { try await parkConflictCopy(sent) }
    }

    /// Whether the content of a file has to show whether it is what was sent: it has the size and the date of what is sent
    /// now, and programs that keep dates give one date to different contents. What was changed here since it was sent before
    /// cannot be compared.
    private func isComparable(_ remote: FileProviderItem, to sent: SentChange) throws -> Bool {
        let date = sent.item.contentModificationDate
        guard remote.kind == .file, remote.documentSize == sent.item.documentSize,
            remote.contentModificationDate == date
        else { return false }
        return try !sent.isReplay || replica.database.inode(sent.inode)?.modifiedAt == date
    }

    /// Whether the file was written after what the remote has was sent, perhaps while both were compared.
    private func isBeforeWriting(_ remote: FileProviderItem, _ sent: SentChange) throws -> Bool {
        if remote.kind == .file { try commits.noteWritten(sent.inode) }
        return try !isComparable(remote, to: sent)
    }

    private func recognize(_ remote: FileProviderItem, _ sent: SentChange) async throws {
        try await commits.commit { try $0.answers.recognize(sent, as: remote) }
    }

    /// What has the name that was sent; looked for where the provider does not say.
    private func found(_ remote: FileProviderItem?, whereWasSent sent: SentChange) async throws -> FileProviderItem? {
        if let remote { return remote }
        guard sent.identifier == nil, sent.item.kind == .file else { return nil }
        return try await item(named: sent.item.filename, in: sent.item.parentItemIdentifier)
    }

    /// The remote has other content where a conflict copy is, again: another copy would not end that.
    private func parkConflictCopy(_ sent: SentChange) async throws {
        try await postpone(
            sent,
            FileProviderError(
                .cannotSynchronize,
                "'\(sent.item.filename)' is a conflict copy, and the remote has other content under its name: both stay as "
                    + "they are. Copy it under another name; once it is removed here, the remote's is shown",
                itemIdentifier: sent.item.itemIdentifier))
    }

    /// The remote has moved on from what was changed here.
    func conflict(_ sent: SentChange, _ failure: FileProviderError) async throws {
        let request = request
        let identifier = sent.item.itemIdentifier
        var remote = failure.item
        if remote == nil { remote = try await make(.item) { try await $0.item(for: identifier, request: request) } }
        guard let remote else { return }
        if try hasOwnDate(remote, sent), try isBeforeWriting(remote, sent) { return try await recognize(remote, sent) }
        // Sent before, without an answer, and there it is; or both sides wrote the same.
        if sent.isReplay || isInPlace(remote, of: sent), try await isSame(remote, as: sent) {
            return try await record(
                .applied(remote, stillPending: [], shouldFetchContent: false), for: sent)
        }
        if try await isOwn(remote, sent), try isBeforeWriting(remote, sent) {
            return try await recognize(remote, sent)
        }
        let label = conflictLabel()
        let outcome = try await commits.commit { ingestion in
            try ingestion.answers.noteAnswered(sent)
            let outcome = try ingestion.conflicts.splitConflict(of: sent.row, with: remote, label: label)
            if outcome == .nothingToKeep { try ingestion.changes.move(remote) }
            return outcome
        }
        switch outcome {
        case .copied: break
        case .isConflictCopy: try await parkConflictCopy(sent)
        case .nothingToKeep:
            // Where the remote has just what the change was made on, asking again at once would be the same for ever.
            if remote.itemVersion.contentVersion == sent.base.contentVersion { try await postpone(sent, failure) }
        }
    }

    /// Whether a change is not one of the item's place, too.
    private func isInPlace(_ remote: FileProviderItem, of sent: SentChange) -> Bool {
        remote.parentItemIdentifier == sent.item.parentItemIdentifier
            && remote.filename.utf8.elementsEqual(sent.item.filename.utf8)
    }

    /// Whether the remote has the very content that was sent.
    private func isSame(_ remote: FileProviderItem, as sent: SentChange) async throws -> Bool {
        guard remote.kind == .file, sent.item.kind == .file, sent.fields.contains(.contents),
            remote.documentSize == sent.item.documentSize
        else { return false }
        return try await ContentComparison(context: context).isEqual(remote, to: sent.inode)
    }
}
