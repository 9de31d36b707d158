import FileProvider
import Replica
import Synchronization

/// Carries out one operation: asks the provider, and records what came of it.
struct Executor: SyncPart {
    let context: SyncContext
    let delays: UploadDelays
    let early: EarlyUploads?
    let root: RootCheck
    /// Says when the last comparison of all directories that ended well began.
    let feed: ChangeFeed
    /// Puts content on the disk that the remote has, too.
    let syncer: ContentSyncer
    /// Has all directories compared with the remote. Returns at once.
    let compareAll: @Sendable () -> Void
    /// The items at the top of the trash that were there not long ago.
    let checks = RecentChecks(trust: .seconds(2))
    let missed = MissedItems()
    /// Downloads everything at and below an item; returns what could not be downloaded.
    let bringHere: @Sendable (InodeNumber) async throws -> [(number: InodeNumber, error: FileProviderError)]
    let conflictLabel: @Sendable () -> String
    let request = FileProviderRequest(reason: .synchronization)

    private static let pauseWhileWritten = Duration.seconds(1)
    private static let pauseWithoutRecord = Duration.seconds(1)
    /// The longest time for which a change waits to be sent though it has not failed.
    static let longestDelay = max(pauseWhileWritten, longestPauseForComparison)

    // MARK: - Items

    /// Sends a new item, or changes of one.
    ///
    /// - Returns: the provider's refusal to have an item any more that the remote has; nothing is recorded of that yet.
    func send(_ prepared: SentChange, transfer: UploadTransfer) async -> FileProviderError? {
        var sent = prepared
        var snapshot: ContentSnapshot?
        do {
            // A server whose disk is not mounted takes it, unlike a change of something that it does not have.
            if sent.identifier == nil, try await root.isEmptied() { return nil }
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
        guard sent.fields.contains(.contents) else {
            sent.contentDigest = await digestOfDated(sent)
            return nil
        }
        let opened: ContentSnapshot
        do {
            opened = try await ContentSnapshot.open(
                sent.inode, in: replica, growing: early?.content(of: sent.inode),
                isBeingWritten: try isNeverLeftAlone(sent),
                progress: transfer.advance, pace: transfer.pace)
        } catch let written as ContentSnapshot.Written {
            // It may be due because it is never left alone: it is looked at again after a while, not at once.
            let (row, time) = (sent.row, FileTimestamp.now.advanced(by: Self.pauseWhileWritten))
            try await commits.commit(changingNames: false) { try $0.answers.wait(row, until: time) }
            throw written
        }
        sent.contentStamp = opened.stamp
        sent.contentDigest = await ContentDigest.of(opened.source)
        sent.item.documentSize = opened.size
        try renewItem(of: &sent, with: opened)
        transfer.begin(opened.size)
        return opened
    }

    /// Gives a change the date and the mode that go with its content. It was prepared before the content was opened, and programs may have
    /// written the file since.
    private func renewItem(of sent: inout SentChange, with content: ContentSnapshot) throws {
        if try replica.database.isOpenForWriting(sent.inode) { try commits.noteWritten(sent.inode) }
        sent.item.contentModificationDate = try shownDate(of: content, sent.inode)
        guard let item = try replica.database.item(row: sent.row), item.inode.number == sent.inode else { return }
        if item.inode.permissions != sent.item.permissions {
            sent.item.permissions = item.inode.permissions
            sent.fields.formUnion(item.changedFields.intersection(.permissions))
        }
        // An offer names the version of the bytes that come with it.
        if sent.offer != nil, item.changedFields.contains(.contents) { sent.item.itemVersion.contentVersion = [] }
    }

    /// The date that the mount shows for content that was just noted; that of its content file may lag behind it
    /// (``InodeRecord/modificationTime(afterWritingAt:)``). With another one the date would be sent once more.
    private func shownDate(of content: ContentSnapshot, _ number: InodeNumber) throws -> FileTimestamp {
        guard let stamp = content.stamp, let inode = try replica.database.inode(number),
            (try? replica.contentStatus(of: number).stamp) == stamp
        else { return content.modifiedAt }
        return inode.modifiedAt
    }

    /// What a file is recognized by that gets another date, where the remote may cut the date and makes a new version of it; nil for large
    /// content, and for content that is not here.
    private func digestOfDated(_ sent: SentChange) async -> [UInt8]? {
        guard calls.provider.features.datesMakeVersions, sent.identifier != nil, sent.item.kind == .file,
            sent.fields.contains(.contentModificationDate), sent.item.documentSize ?? 0 <= ContentDigest.mostBytes,
            let inode = try? replica.database.inode(sent.inode), inode.content == .materialized,
            inode.contentStamp == nil, inode.size > 0,
            let content = try? await ContentSnapshot.open(sent.inode, in: replica, progress: { _ in })
        else { return nil }
        return await ContentDigest.of(content.source)
    }

    /// Whether a file is open for writing and has waited so long that a snapshot of it is sent.
    private func isNeverLeftAlone(_ sent: SentChange) throws -> Bool {
        guard let (item, state) = try replica.database.pendingItem(sent.row), item.inode.contentStamp != nil else {
            return false
        }
        let size = try replica.contentStatus(of: item.inode.number).size
        return state.since.advanced(by: delays.longest(forSize: size)) <= FileTimestamp.now
    }

    /// - Returns: what the provider answered, and whether the same had been asked before.
    private func call(
        _ sent: SentChange, _ source: ContentSource?, _ transfer: UploadTransfer
    ) async throws -> (ItemChange, isReplay: Bool) {
        let (request, sending) = (request, told(sent))
        guard sent.identifier != nil else {
            let attempts = Mutex(0)
            let change = try await make(.createItem, transfer) { provider in
                let isReplay = attempts.withLock { attempts in
                    attempts += 1
                    return attempts > 1 || sent.isReplay
                }
                return try await provider.createItem(
                    basedOn: sending, fields: sent.fields, contents: source,
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
        let base = try toldBase(of: sent)
        let change = try await make(.modifyItem, transfer) { provider in
            try await provider.modifyItem(
                sending, baseVersion: base, changedFields: sent.fields, contents: source,
                options: .failOnConflict, request: request)
        }
        return (change, false)
    }

    /// The version that a modification is based on, as the provider is told. Attributes that were sent before without an answer, or a move
    /// that was undone, may have changed the metadata version: it is left out where the provider would take content with the old one for a
    /// conflict. They wait where the content is sent alone.
    private func toldBase(of sent: SentChange) throws -> ItemVersion {
        guard calls.provider.features.contentVersionsMayRepeat, sent.isReplay, sent.fields.contains(.contents),
            let pending = try replica.database.item(row: sent.row)?.changedFields,
            !pending.union(sent.fields).isSubset(of: [.contents, .contentModificationDate])
        else { return sent.base }
        return ItemVersion(contentVersion: sent.base.contentVersion, metadataVersion: [])
    }

    /// A file that was written while it was sent is no failure of the provider's, and not tried again at once.
    func make<Value: Sendable>(
        _ call: CallName, _ transfer: UploadTransfer? = nil, recognizesOnly: Bool = false,
        _ body: @escaping @Sendable (any FileProviderReplicatedExtension) async throws -> Value
    ) async throws -> Value {
        let wasWritten = Mutex(false)
        do {
            return try await calls.make(
                call, for: request, recognizesOnly: recognizesOnly, progress: transfer?.callProgress ?? CallProgress()
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
        case .applied(let item, let answered, let shouldFetchContent):
            let stillPending = answered.union(withheld(from: sent))
            if let failure = Self.malformed(item) ?? Self.leftPending(stillPending, of: sent) {
                return try await postpone(sent, failure)
            }
            // Created by a call whose response was lost, and since then written by another client: that must not be
            // overwritten.
            let isOther =
                sent.identifier == nil && sent.isReplay && stillPending.contains(.contents)
                && item.documentSize ?? 0 > 0
            let isForeign = try await isOther ? !isOwn(item, sent) : false
            if isForeign, try replica.database.isConflictCopy(row: sent.row) { return try await collision(sent, item) }
            let label = conflictLabel()
            let datesMakeVersions = calls.provider.features.datesMakeVersions
            missed.forget(sent.item.itemIdentifier)
            try await commits.commit(changingNames: isForeign) { ingestion in
                try ingestion.answers.acknowledge(
                    sent, as: item, stillPending: stillPending, shouldFetchContent: shouldFetchContent,
                    datesMakeVersions: datesMakeVersions)
                if isForeign { try ingestion.conflicts.splitConflict(of: sent.row, with: item, label: label) }
            }
            if sent.fields.contains(.contents) { syncer.wake() }
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

    /// A modification that leaves the contents or the place pending has failed: once acknowledged, contents would be sent again
    /// without a pause, and a place would become the remote's. After a creation the rest is sent as a modification.
    private static func leftPending(_ stillPending: ItemFields, of sent: SentChange) -> FileProviderError? {
        let left = stillPending.intersection(sent.fields).intersection([.contents, .filename, .parentItemIdentifier])
        guard sent.identifier != nil, !left.isEmpty else { return nil }
        return FileProviderError(
            .cannotSynchronize, "the remote answers that it has not stored \(left.names.joined(separator: ", "))")
    }

    func failed(_ sent: SentChange, _ error: any Error) async {
        if error is ContentSnapshot.Written || Task.isCancelled { return }
        events.tell(.failed, of: sent.inode, named: sent.item.filename)
        do {
            let failure = ProviderCalls.failure(from: error)
            // The remote has refused it, so that it is there.
            if failure.code != .noSuchItem, [.parkItem, .changeState].contains(failure.code.reaction) {
                missed.forget(sent.item.itemIdentifier)
            }
            switch failure.code {
            case .domainDisabled: break
            case .userCancelled: await pauseUnrecorded()
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
            if Task.isCancelled { return }
            // A request that was to resolve the failure can fail as well: without a pause it would be repeated at once.
            if let failure = error as? FileProviderError {
                if failure.code == .userCancelled { return await pauseUnrecorded() }
                if failure.code == .domainDisabled || failure.isOfDomain { return }
                if (try? await postpone(sent, failure)) != nil { return }
            }
            warnings.report("what became of '\(sent.item.filename)' on the remote cannot be recorded: \(error)")
            await pauseUnrecorded()
        }
    }

    /// The next attempt is not recorded to be later, because it cannot be or because the provider has cancelled a call that was not
    /// cancelled here: it would follow at once.
    func pauseUnrecorded() async { try? await Task.sleep(for: Self.pauseWithoutRecord) }

    func postpone(_ sent: SentChange, _ failure: FileProviderError) async throws {
        // The planner knows by the code what waits for a decision, and the time is for when that is not enough. Offers are not planned.
        let waitsForDecision = failure.code == .removalsAreHeld && sent.offer == nil
        let attempts = try replica.database.attempts(ofItem: sent.row)
        let time =
            waitsForDecision
            ? FileTimestamp.now.advanced(by: Backoff.whileRemovalsAreHeld.pause(after: attempts))
            : try nextTry(of: sent, after: failure, attempts: attempts)
        try await commits.commit { try $0.answers.postpone(sent, failure, until: time) }
    }

    /// When a change that has failed is sent again; nil for at once, where the next call sends only a part of it. The pause comes after
    /// each round of calls.
    private func nextTry(
        of sent: SentChange, after failure: FileProviderError, attempts: Int
    ) throws -> FileTimestamp? {
        guard !sent.isMovedAside, let pending = try replica.pendingItem(sent.row)
        else { return Backoff.nextTry(after: failure, attempts: attempts) }
        let calls = pending.calls(after: failure.code).count
        guard (attempts + 1).isMultiple(of: calls) else { return nil }
        return Backoff.nextTry(after: failure, attempts: attempts / calls)
    }
}
