import FileProvider
import Foundation
import Replica
import Synchronization
import SystemPackage

/// Carries out one operation: asks the provider, and records what came of it.
struct Executor: SyncPart {
    let context: SyncContext
    let delays: UploadDelays
    /// Early uploads of files that are being written.
    let early: EarlyUploads?
    let guardian: DeletionGuard
    /// Downloads everything at and below an item; returns what could not be downloaded.
    let bringHere: @Sendable (InodeNumber) async throws -> [(number: InodeNumber, error: FileProviderError)]
    /// The label of conflict copies.
    let conflictLabel: @Sendable () -> String
    let request = FileProviderRequest(reason: .synchronization)

    private static let pauseWhileWritten = Duration.seconds(1)
    private static let pauseWithoutRecord = Duration.seconds(1)

    // MARK: - Items

    /// Sends a new item, or changes of one.
    ///
    /// - Returns: the provider's refusal to have an item any more that the remote has; nothing is recorded of that yet.
    func send(_ prepared: SentChange, transfer: UploadTransfer) async -> FileProviderError? {
        var sent = prepared
        var snapshot: ContentSnapshot?
        do {
            snapshot = try await openContent(of: &sent, transfer)
            events.tell(.uploading, of: sent.inode, named: sent.item.filename, bytes: snapshot?.size ?? 0)
            let (sending, isReplay) = (sent, sent.isReplay)
            guard try await commits.commit(changingNames: false, { try $0.answers.noteSent(sending) }) else {
                return nil
            }
            let (change, wasRepeated) = try await call(sent, snapshot?.source, transfer)
            sent.isReplay = isReplay || wasRepeated
            try await record(change, for: sent)
        } catch let error as FileProviderError where error.code == .excludedFromSync && sent.identifier != nil {
            return error
        } catch {
            await failed(sent, error)
        }
        return nil
    }

    /// Opens the bytes that go with a change, and notes in the change which they are.
    ///
    /// - Returns: nil where its content is not sent.
    func openContent(of sent: inout SentChange, _ transfer: UploadTransfer) async throws -> ContentSnapshot? {
        guard sent.fields.contains(.contents) else { return nil }
        let opened: ContentSnapshot
        do {
            opened = try await ContentSnapshot.open(
                sent.inode, in: replica, growing: early?.content(of: sent.inode),
                isBeingWritten: try isNeverLeftAlone(sent),
                progress: transfer.advance, pace: transfer.pace)
        } catch let written as ContentSnapshot.Written {
            // It may be due because it is never left alone: it is looked at again after a while, not at once.
            let (row, time) = (sent.row, Replica.now.advanced(by: Self.pauseWhileWritten))
            try await commits.commit(changingNames: false) { try $0.answers.wait(row, until: time) }
            throw written
        }
        sent.contentStamp = opened.stamp
        sent.item.documentSize = opened.size
        if try replica.database.isOpenForWriting(sent.inode) {
            // It was prepared with the date of an earlier write.
            try commits.noteWritten(sent.inode)
            sent.item.contentModificationDate = opened.modifiedAt
        }
        transfer.begin(opened.size)
        return opened
    }

    /// Whether a file is open for writing and has waited so long that a snapshot of it is sent.
    private func isNeverLeftAlone(_ sent: SentChange) throws -> Bool {
        guard let (item, state) = try replica.database.pendingItem(sent.row), item.inode.contentStamp != nil else {
            return false
        }
        let size = try replica.contentStatus(of: item.inode.number).size
        return state.since.advanced(by: delays.longest(forSize: size)) <= Replica.now
    }

    /// - Returns: what the provider answered, and whether the same had been asked before.
    private func call(
        _ sent: SentChange, _ source: ContentSource?, _ transfer: UploadTransfer
    ) async throws -> (ItemChange, isReplay: Bool) {
        let request = request
        guard sent.identifier != nil else {
            let attempts = Mutex(0)
            let change = try await make(.createItem, transfer) { provider in
                let isReplay = attempts.withLock { attempts in
                    attempts += 1
                    return attempts > 1 || sent.isReplay
                }
                return try await provider.createItem(
                    basedOn: sent.item, fields: sent.fields, contents: source,
                    options: isReplay ? .mayAlreadyExist : [], request: request)
            }
            return (change, attempts.withLock { $0 > 1 })
        }
        if sent.fields.contains(.contents), !calls.provider.features.conditionalWrites {
            let current = try await make(.item) { try await $0.item(for: sent.item.itemIdentifier, request: request) }
            guard current.itemVersion.contentVersion == sent.base.contentVersion else {
                throw FileProviderError(.localVersionConflictingWithServer, item: current)
            }
        }
        let change = try await make(.modifyItem, transfer) { provider in
            try await provider.modifyItem(
                sent.item, baseVersion: sent.base, changedFields: sent.fields, contents: source,
                options: .failOnConflict, request: request)
        }
        return (change, false)
    }

    /// A file that was written while it was sent is no failure of the provider's, and not tried again at once.
    func make<Value: Sendable>(
        _ call: CallName, _ transfer: UploadTransfer? = nil,
        _ body: @escaping @Sendable (any FileProviderReplicatedExtension) async throws -> Value
    ) async throws -> Value {
        let wasWritten = Mutex(false)
        do {
            return try await calls.make(
                call, for: request, progress: transfer?.callProgress ?? CallProgress()
            ) { provider in
                do {
                    transfer?.restart()
                    return try await body(provider)
                } catch is ContentSnapshot.Written {
                    wasWritten.withLock { $0 = true }
                    throw FileProviderError(.userCancelled)
                }
            }
        } catch {
            if wasWritten.withLock({ $0 }) { throw ContentSnapshot.Written() }
            throw error
        }
    }

    func record(_ change: ItemChange, for sent: SentChange) async throws {
        switch change {
        case .refused(let reason):
            try await postpone(sent, FileProviderError(.cannotSynchronize, reason))
        case .applied(let item, let stillPending, let shouldFetchContent):
            if let failure = Self.malformed(item) { return try await postpone(sent, failure) }
            // Created by a call whose response was lost, and since then written by another client: that must not be
            // overwritten.
            let isForeign =
                try sent.identifier == nil && sent.isReplay && stillPending.contains(.contents)
                && item.documentSize ?? 0 > 0 && !isOwn(item, sent)
            if isForeign, try replica.database.isConflictCopy(row: sent.row) { return try await collision(sent, item) }
            let label = conflictLabel()
            let datesMakeVersions = calls.provider.features.datesMakeVersions
            try await commits.commit(changingNames: isForeign) { ingestion in
                try ingestion.answers.acknowledge(
                    sent, as: item, stillPending: stillPending, shouldFetchContent: shouldFetchContent,
                    datesMakeVersions: datesMakeVersions)
                if isForeign { try ingestion.conflicts.splitConflict(of: sent.row, with: item, label: label) }
            }
            events.tell(
                sent.identifier == nil ? .created : .uploaded, of: sent.inode, named: item.filename,
                bytes: sent.fields.contains(.contents) ? item.documentSize ?? 0 : 0)
        }
    }

    static func malformed(_ item: FileProviderItem) -> FileProviderError? {
        item.defect.map {
            FileProviderError(.malformedResponse, "the provider answered with an item that is none: \($0)")
        }
    }

    func failed(_ sent: SentChange, _ error: any Error) async {
        if error is ContentSnapshot.Written || error is CancellationError { return }
        events.tell(.failed, of: sent.inode, named: sent.item.filename)
        do {
            let failure = ProviderCalls.failure(from: error)
            switch failure.code {
            case .userCancelled, .domainDisabled: break
            case .filenameCollision:
                try await collision(sent, failure.item)
            case .localVersionConflictingWithServer, .versionNoLongerAvailable:
                try await conflict(sent, failure)
            case .noSuchItem:
                try await lost(sent, failure)
            case .excludedFromSync:
                try await commits.commit { ingestion in
                    try ingestion.answers.noteAnswered(sent)
                    try ingestion.refusals.exclude(sent, failure)
                }
            default:
                // A failure of the whole domain has latched it.
                if failure.code.reaction == .latchDomain { return }
                try await postpone(sent, failure)
            }
        } catch {
            if error is CancellationError { return }
            // A request that was to resolve the failure can fail as well: without a pause it would be repeated at once.
            if let failure = error as? FileProviderError, ![.userCancelled, .domainDisabled].contains(failure.code),
                failure.code.reaction != .latchDomain, (try? await postpone(sent, failure)) != nil
            {
                return
            }
            warnings.report("what became of '\(sent.item.filename)' on the remote cannot be recorded: \(error)")
            // The next attempt cannot be recorded to be later either.
            try? await Task.sleep(for: Self.pauseWithoutRecord)
        }
    }

    /// The item, or the directory that it was to be put in, is not on the remote any more: both are looked up before that
    /// is believed.
    func lost(_ sent: SentChange, _ failure: FileProviderError) async throws {
        if try await isRemoteEmptied() { return try await postpone(sent, failure) }
        if let identifier = sent.identifier {
            guard let item = try await remoteLookup.lookUp(identifier, for: request) else {
                let row = sent.row
                return try await commits.commit { try $0.removal.lostOnRemote(row) }
            }
            let ancestors = try await remoteLookup.unknown(above: item, for: request)
            try await commits.commit { try $0.changes.move(item, below: ancestors) }
        }
        let parent = sent.item.parentItemIdentifier
        guard parent != .rootContainer, parent != .trashContainer,
            try await remoteLookup.lookUp(parent, for: request) == nil
        else {
            return try await postpone(sent, failure)
        }
        try await commits.commit { try $0.changes.removeIfKnown(parent) }
    }

    /// Whether nearly nothing is in the root any more of what is known: then it is not this item that was removed, and all
    /// changes are held.
    private func isRemoteEmptied() async throws -> Bool {
        let top = Set(try replica.database.items(in: .root).compactMap(\.identifier))
        var missing = top
        try await calls.enumerate(.rootContainer, for: request) { items in
            missing.subtract(items.map(\.itemIdentifier))
            return missing.count * 2 > top.count
        }
        // Counting what is below takes time in a large domain.
        guard missing.count * 2 > top.count else { return false }
        let (gone, known) = try replica.database.countVanishing(missing)
        return guardian.isNearlyAll(gone: gone, of: known) && !guardian.admits(gone: gone, of: known)
    }

    func postpone(_ sent: SentChange, _ failure: FileProviderError) async throws {
        let time = Backoff.nextTry(after: failure, attempts: try replica.database.attempts(ofItem: sent.row))
        try await commits.commit { try $0.answers.postpone(sent, failure, until: time) }
    }

    // MARK: - Deletions

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
            if let found = try await unansweredItem(of: queued) {
                // A provider that knows only paths asks where it is.
                try await commits.commit { try $0.offers.foundDeleted(queued, as: found) }
                known.identifier = found.itemIdentifier
                known.version = found.itemVersion
            } else if queued.isPlaceholder {
                try await commits.commit { try $0.answers.acknowledgeDeletion(queued) }
                return queued.identifier
            }
            let deletion = known
            try await checkIsInTrash(deletion)
            if !calls.provider.features.conditionalWrites { try await checkIsUnchanged(deletion) }
            // What lies below a trashed directory is in no working set: it is deleted with the directory.
            let options: DeleteItemOptions = deletion.parent == .trashContainer ? .recursive : []
            do {
                try await make(.deleteItem) { provider in
                    try await provider.deleteItem(
                        identifier: deletion.identifier, baseVersion: deletion.version, options: options,
                        request: request)
                }
            } catch let error as FileProviderError {
                guard error.code == .noSuchItem else { throw error }
            }
            try await commits.commit { try $0.answers.acknowledgeDeletion(deletion) }
            events.tell(.deleted, of: nil, named: deletion.name)
        } catch {
            await failed(known, error)
        }
        return known.identifier
    }

    /// - Throws: `deletionRejected` for what another client has restored: it was deleted here as something in the trash.
    private func checkIsInTrash(_ deletion: PendingDeletion) async throws {
        guard let top = try replica.database.trashedTop(of: deletion),
            let item = try await remoteLookup.lookUp(top, for: request), !item.isTrashed
        else { return }
        throw FileProviderError(
            .deletionRejected, "it was restored from the trash", item: top == deletion.identifier ? item : nil)
    }

    /// - Throws: `deletionRejected` for a file that has other content by now.
    private func checkIsUnchanged(_ deletion: PendingDeletion) async throws {
        guard deletion.kind == .file, let item = try await remoteLookup.lookUp(deletion.identifier, for: request),
            item.itemVersion.contentVersion != deletion.version.contentVersion
        else { return }
        throw FileProviderError(.deletionRejected, "it has other contents on the remote", item: item)
    }

    /// The item on the remote that came of a change which was sent before the item was removed here, and never answered;
    /// nil when there was no such change, or it did not arrive.
    private func unansweredItem(of deletion: PendingDeletion) async throws -> FileProviderItem? {
        let changes = try replica.database.unanswered(ofDeletion: deletion.id)
        guard !changes.isEmpty else { return nil }
        // It may have been moved as well: the provider knows where to.
        if !deletion.isPlaceholder, let item = try await remoteLookup.lookUp(deletion.identifier, for: request) {
            return changes.contains { $0.matches(item) } ? item : nil
        }
        return try await item(named: deletion.name, in: deletion.parent).flatMap { item in
            changes.contains { $0.matches(item) } ? item : nil
        }
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
        if error is CancellationError { return }
        do {
            let failure = ProviderCalls.failure(from: error)
            switch failure.code {
            case .userCancelled, .domainDisabled: break
            case .deletionRejected, .directoryNotEmpty, .localVersionConflictingWithServer:
                let request = request
                var item = failure.item
                if item == nil {
                    item = try? await make(.item) { try await $0.item(for: deletion.identifier, request: request) }
                }
                let found = item
                warnings.report("'\(deletion.name)' was removed here and stays on the remote: \(failure.message)")
                try await commits.commit { try $0.conflicts.bringBack(deletion, as: found) }
            default:
                if failure.code.reaction == .latchDomain { return }
                let time = Backoff.nextTry(after: failure, attempts: deletion.attempts)
                try await commits.commit { try $0.answers.postpone(deletion, failure, until: time) }
            }
        } catch {
            warnings.report("what became of the deletion of '\(deletion.name)' cannot be recorded: \(error)")
        }
    }
}
