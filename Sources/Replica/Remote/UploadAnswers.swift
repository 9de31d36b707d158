import FileProvider
import Foundation

/// Local changes that were sent, and what the provider answered.
package struct UploadAnswers: RemotePart {
    let transaction: RemoteTransaction
    private var placement: Placement { Placement(transaction: transaction) }
    private var removal: ItemRemoval { ItemRemoval(transaction: transaction) }

    /// A change is about to be sent: from now on it may be on the remote.
    ///
    /// - Returns: false when the item was removed here, or a new one renamed, and nothing is to be sent.
    package func noteSent(_ sent: SentChange) throws -> Bool {
        if sent.identifier == nil, sent.offer == nil, try !isStillThere(sent) { return false }
        guard try db.noteSent(sent.row) else { return false }
        var size = UnansweredChange.size(of: sent.item)
        if sent.identifier != nil, !sent.fields.contains(.contents) {
            // A date makes another version on some remotes: of the content that the remote has.
            guard sent.item.kind == .file, sent.fields.contains(.contentModificationDate),
                let base = try db.item(id: sent.row)?.base
            else { return true }
            size = base.size
        }
        // Each attempt of what fails for days sends the same.
        try db.run(
            """
            INSERT INTO unanswered (item, size, modifiedAt, digest) SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (
                SELECT 1 FROM unanswered WHERE item = ?1 AND size = ?2 AND modifiedAt = ?3 AND digest IS ?4)
            """,
            [
                sent.row, size, (sent.item.contentModificationDate ?? now).nanosecondsSince1970,
                sent.contentDigest.map { Data($0) },
            ])
        return true
    }

    /// Whether a new item still has the name and the directory that it was prepared with: what went elsewhere without an
    /// answer would be looked for nowhere.
    private func isStillThere(_ sent: SentChange) throws -> Bool {
        guard let item = try db.item(id: sent.row), item.identifier == nil,
            let parent = try item.parent.flatMap({ try db.identifier(ofInode: $0) })
        else { return false }
        return parent == sent.item.parentItemIdentifier && item.placeholder == sent.item.itemIdentifier
            && item.ownName.utf8.elementsEqual(sent.item.filename.utf8)
    }

    /// It was answered, or certainly did not reach the remote.
    package func noteAnswered(_ sent: SentChange) throws {
        try db.noteAnswered(sent.row)
        try db.forgetLeft(sent)
    }

    /// What the remote has under an item's name is what was sent of it before: the item goes on from there, and what was
    /// removed here meanwhile is deleted there.
    package func recognize(_ sent: SentChange, as remote: FileProviderItem) throws {
        guard try db.item(id: sent.row) != nil else { return try acknowledgeRemoved(sent, as: remote) }
        try placement.recognize(sent.row, as: remote)
        try db.forgetLeft(sent)
    }

    // MARK: - Answers

    /// The provider has a change. What was changed again since it was sent stays pending.
    ///
    /// - Parameters:
    ///   - stillPending: what the provider did not store. Attributes among it are kept here from now on.
    ///   - shouldFetchContent: whether the remote has other bytes than those that were sent: they are shown, and what was written
    ///     here meanwhile is in conflict with them.
    ///   - datesMakeVersions: as the provider's features say.
    package func acknowledge(
        _ sent: SentChange, as item: FileProviderItem, stillPending: ItemFields, shouldFetchContent: Bool,
        datesMakeVersions: Bool = false
    ) throws {
        try noteAnswer(of: item.itemIdentifier)
        guard var current = try db.item(id: sent.row) else { return try acknowledgeRemoved(sent, as: item) }
        // Its identifier was given up meanwhile: it is recognized by what was sent when it is offered again.
        if current.isToBeOffered { return }
        if try !isPlain(item, of: current) {
            try willChangeNames()
            // Files that were created in a directory in the meantime have changed it once more.
            current = try db.item(id: sent.row) ?? current
        }
        // Content that is sent later may have arrived with an earlier request.
        let mayContentBeThere =
            sent.isReplay && !sent.fields.contains(.contents) && current.changedFields.contains(.contents)
        if !mayContentBeThere { try db.forgetUnanswered(ofItem: sent.row) }
        try db.forgetLeft(sent)
        if let other = try db.item(item.itemIdentifier), other.id != current.id {
            try removal.forgetTwin(other, of: current)
        }
        if sent.identifier == nil, sent.isReplay, current.inode.kind == .directory {
            // It may be one that was there before, with what it contains.
            try db.noteIncomplete(current.inode.number)
        }
        let isSameContent =
            current.inode.number == sent.inode
            && (!sent.fields.contains(.contents) || isUnwritten(sent))
        var changed = current.changedFields.subtracting(sent.fields)
        if sent.fields.contains(.contents), !isSameContent || stillPending.contains(.contents) {
            changed.insert(.contents)
        }
        if current.inode.modifiedAt != sent.item.contentModificationDate { changed.insert(.contentModificationDate) }
        if current.inode.permissions != sent.item.permissions { changed.insert(.permissions) }
        if current.inode.owner != sent.item.owner || current.inode.group != sent.item.group {
            changed.insert(.ownership)
        }
        if sent.fields.contains(.extendedAttributes),
            try db.extendedAttributes(of: current.inode.number)
                != sent.item.extendedAttributes ?? [:]
        {
            changed.insert(.extendedAttributes)
        }
        let marks: ItemFields = [.lastUsedDate, .tagData, .favoriteRank]
        if !sent.fields.isDisjoint(with: marks), let here = try db.describe(current) {
            if here.lastUsedDate != sent.item.lastUsedDate { changed.insert(.lastUsedDate) }
            if here.tagData != sent.item.tagData { changed.insert(.tagData) }
            if here.favoriteRank != sent.item.favoriteRank { changed.insert(.favoriteRank) }
        }
        // A field that is pending now was pending before, or differs from the value that was sent.
        changed = changed.intersection(current.changedFields)
        var held = stillPending.intersection(sent.fields).intersection(.attributes)
        if sent.fields.contains(.contents), stillPending.contains(.contents) {
            // The remote's content is that of an earlier call: all fields of this one are sent again.
            changed.formUnion(held.intersection(current.changedFields))
            held = []
        }
        // A value that is newer than the one that was sent has not been refused.
        held.subtract(changed)
        // A name that it has got since the plan was not sent with it.
        let isNameAnswered = sent.fields.contains(.filename) || !current.changedFields.contains(.filename)
        let isRenamedThere =
            isNameAnswered && !sent.item.isTrashed && current.ownName.utf8.elementsEqual(sent.item.filename.utf8)
            && !item.filename.utf8.elementsEqual(current.ownName.utf8)
        let isDated = datesMakeVersions && !shouldFetchContent && isOnlyDated(sent, item, current.base)
        // The local content is still based on the version that it replaced, even if the remote has a newer one: what is written
        // here must not replace bytes that no process here has seen. A version that differs only in the date that was sent has the
        // same content.
        let isBaseOld =
            shouldFetchContent || changed.contains(.contents) && !sent.fields.contains(.contents) && !isDated
        try db.acknowledge(
            current.id, as: item, base: isBaseOld ? current.base : nil, changed: changed,
            held: current.heldFields.subtracting(sent.fields).union(held))
        // The item is then removed on the remote as one that may have the content.
        if mayContentBeThere { _ = try db.noteSent(current.id) }
        // A place that was neither sent nor changed here follows the remote's.
        let isPlaceOurs = !sent.fields.union(current.changedFields).isDisjoint(with: [.filename, .parentItemIdentifier])
        if current.inode.number != .root, isPlaceOurs { try db.noteWhereItIs(current.id, at: now) }
        if isRenamedThere {
            try db.forgetChangedName(of: current.id)
        }
        // It is in the remote's trash with a directory, and cannot leave that directory there.
        let isElsewhereInTrash =
            sent.item.isTrashed && !item.isTrashed && current.trash != nil
            && sent.fields.contains(.parentItemIdentifier) && !stillPending.contains(.parentItemIdentifier)
        if isElsewhereInTrash { try db.forgetChangedPlace(of: current.id) }
        if sent.fields.contains(.contents), isSameContent {
            // Bytes that the remote does not have belong to no version, not even to one that it had before.
            try db.setContentVersion(
                of: current.inode.number, to: shouldFetchContent ? [] : item.itemVersion.contentVersion)
        } else if isDated, isHere(sent.base, current.inode) {
            try db.setContentVersion(of: current.inode.number, to: item.itemVersion.contentVersion)
        }
        try db.forgetFailure(of: current.inode.number)
        guard var acknowledged = try db.item(id: current.id) else { return }
        // Of several names each has a version of its own. What this one shows is still what it was based on before the answer.
        if !sent.fields.contains(.contents), !isDated {
            acknowledged.base.version.contentVersion = current.base.version.contentVersion
        }
        if acknowledged.inode.number == .root {
            try placement.placeRoot(item)
        } else {
            // A directory that is not known here comes with the news of the move.
            let parent = try db.item(item.parentItemIdentifier)?.inode.number ?? acknowledged.parent
            try placement.update(acknowledged, with: item, parent: parent)
        }
        var stored = sent.fields.subtracting(stillPending)
        if sent.isMovedAside { stored.subtract([.filename, .parentItemIdentifier]) }
        // Not from now on: `yonder wait` that began before the answer waits for what was changed before it began.
        try db.restartPending(current.id, stored: stored, at: sent.preparedAt)
        if current.inode.kind == .directory, sent.identifier != nil,
            !stored.isDisjoint(with: [.permissions, .ownership, .extendedAttributes])
        {
            try retryFailed(in: acknowledged)
        }
        // Where it was on the remote, its name may have been waited for.
        if current.base.parent != item.parentItemIdentifier
            || current.base.name?.utf8.elementsEqual(item.filename.utf8) != true
        {
            try ShownNames(transaction: transaction).restoreName(current.base.name, inRemote: current.base.parent)
        }
    }

    /// Whether the content of a file is still what was sent.
    ///
    /// The stamp is looked up in this transaction. A write that an earlier transaction has recorded has given the file another
    /// stamp; one that is recorded later marks the file again. A stamp from before the transaction would take back the mark of a
    /// write that was recorded in between.
    func isUnwritten(_ sent: SentChange) -> Bool {
        guard let stamp = sent.contentStamp else { return false }
        return (try? contents.status(of: sent.inode).stamp) == stamp
    }

    /// Whether an answer leaves all names and directories as they are: the most usual one, about a file.
    private func isPlain(_ item: FileProviderItem, of current: ItemRecord) throws -> Bool {
        guard current.inode.kind == .file, item.kind == .file, !item.isTrashed, current.trash == nil,
            item.filename.utf8.elementsEqual(current.name.utf8), let parent = try db.item(item.parentItemIdentifier)
        else { return false }
        if let other = try db.item(item.itemIdentifier), other.id != current.id { return false }
        return parent.inode.number == current.parent
    }

    /// Whether the content of a version has got nothing but another date on the remote, and with it another version.
    private func isOnlyDated(_ sent: SentChange, _ item: FileProviderItem, _ base: ItemBase) -> Bool {
        guard let wanted = sent.item.contentModificationDate, let stored = item.contentModificationDate else {
            return false
        }
        // SFTP keeps whole seconds.
        return item.kind == .file && sent.fields.contains(.contentModificationDate) && !sent.fields.contains(.contents)
            && sent.identifier != nil && sent.base.contentVersion == base.version.contentVersion
            && stored <= wanted && wanted < stored.advanced(by: .seconds(1)) && item.documentSize == base.size
    }

    /// Whether the content that is here is of a version, or was written over it, and the inode may get the new version.
    private func isHere(_ version: ItemVersion, _ inode: InodeRecord) -> Bool {
        inode.contentVersion == version.contentVersion
            // A process that opened it with a part missing reads the version that it had then.
            && (inode.content == .materialized || !open.isOpen(inode.number))
    }

    /// The item was removed here while the change was on its way: now the remote has to delete it as it is.
    func acknowledgeRemoved(_ sent: SentChange, as item: FileProviderItem) throws {
        guard try db.deleteDeletion(sent.item.itemIdentifier) else { return }
        try willChangeNames()
        try db.queueDeletion(
            item.itemIdentifier, InodeKind(item.kind), in: item.parentItemIdentifier, named: item.filename,
            version: item.itemVersion, at: now)
        // News may have brought it back before the answer came.
        if let twin = try db.item(item.itemIdentifier), twin.changedFields.isEmpty { try removal.remove(twin) }
    }

    /// After how long a change is sent again for which the remote had no room, once something has been deleted there.
    private static let pauseAfterDeleting = Duration.seconds(10)

    /// The remote has deleted an item.
    package func acknowledgeDeletion(_ deletion: PendingDeletion) throws {
        try noteAnswer(of: deletion.identifier)
        // There may be room now. Of many deletions each would have an upload tried.
        let soon = now.advanced(by: Self.pauseAfterDeleting)
        if try db.hastenAll(after: FileProviderError.Code.insufficientQuota.rawValue, until: soon) {
            noteSomethingToSend()
        }
        guard try db.deleteDeletion(deletion) else { return }
        // News may have brought it back in the meantime.
        if let twin = try db.item(deletion.identifier), twin.changedFields.isEmpty { try removal.remove(twin) }
        try ShownNames(transaction: transaction).restoreName(deletion.name, inRemote: deletion.parent)
    }

    /// A change could not be sent: why, and when to try again; nil for at once.
    package func postpone(_ sent: SentChange, _ error: FileProviderError, until time: FileTimestamp?) throws {
        try db.postponeItem(sent.row, until: time)
        try db.recordFailure(error, of: sent.inode, at: now)
    }

    /// A change is not to be sent before a moment, though nothing is wrong with it.
    package func wait(_ row: Int64, until time: FileTimestamp) throws {
        try db.delayItem(row, until: time)
    }

    package func postpone(_ deletion: PendingDeletion, _ error: FileProviderError, until time: FileTimestamp?) throws {
        try db.postponeDeletion(deletion.id, error, until: time)
    }

    /// Everything that waits is tried now; one inode's changes, or all.
    package func retryNow(_ number: InodeNumber?) throws {
        if let number { try db.retryItems(of: number) } else { try db.retryEverything() }
    }

    /// Everything that waits because of an error with one of these codes is tried now.
    package func retryNow(after codes: Set<FileProviderError.Code>) throws {
        for code in codes { try db.retryAll(after: code.rawValue) }
    }
}
