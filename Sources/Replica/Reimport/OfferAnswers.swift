import FileProvider

/// The provider's answers to items that were offered again after a reimport.
package struct OfferAnswers: RemotePart {
    let transaction: RemoteTransaction
    private var placement: Placement { Placement(transaction: transaction) }
    private var removal: ItemRemoval { ItemRemoval(transaction: transaction) }

    /// The provider has the item: it had it, or has made it. What was changed here and is other there stays pending.
    ///
    /// - Parameters:
    ///   - isSameContent: whether the remote's content is known to be what was sent.
    package func acknowledgeOffer(
        _ sent: SentChange, _ offer: Offer, as item: FileProviderItem, stillPending: ItemFields, isSameContent: Bool
    ) throws {
        try noteAnswer(of: item.itemIdentifier)
        guard let current = try db.item(id: sent.row) else {
            // It was removed here while it was offered: now it is known what the remote has to delete.
            return try db.foundDeleted(sent.item.itemIdentifier, as: item)
        }
        guard current.reimport == offer.round else { return }
        if let other = try db.item(item.itemIdentifier), other.id != current.id {
            if isKnownAgain(other, insteadOf: current, in: offer.round) {
                return try settleDuplicate(current, of: other)
            }
            try removal.forgetTwin(other, of: current)
        }
        try db.forgetUnanswered(ofItem: sent.row)
        let wasUnwritten =
            current.inode.number == sent.inode && UploadAnswers(transaction: transaction).isUnwritten(sent)
            && !stillPending.contains(.contents)
        let isContentThere = isSameContent && sent.fields.contains(.contents) && wasUnwritten
        let held = stillPending.intersection(sent.fields).intersection(.attributes).subtracting(current.heldFields)
        var changed = current.changedFields
        if isContentThere {
            changed.remove(.contents)
        } else if isSameContent, sent.fields.contains(.contents) {
            changed.insert(.contents)
        }
        changed = try differing(changed, of: current, from: item).subtracting(held)
        if try losesItsDate(current, sent, item) { changed.insert(.contentModificationDate) }
        try db.acknowledge(
            current.id, as: item, changed: changed, held: current.heldFields.union(held))
        try db.setChangedFields(of: current.id, to: changed, at: now)
        if isContentThere {
            try db.setContentVersion(of: current.inode.number, to: item.itemVersion.contentVersion)
        }
        try db.forgetFailure(of: current.inode.number)
        if current.inode.kind == .directory {
            try db.noteIdentifier(item.itemIdentifier, replacing: current.placeholder)
        }
        guard var acknowledged = try db.item(id: current.id) else { return }
        // As for the answer to a change: what one of several names shows is what it was based on before.
        if !isSameContent { acknowledged.base.version.contentVersion = current.base.version.contentVersion }
        try placement.update(
            acknowledged, with: item, parent: try db.item(item.parentItemIdentifier)?.inode.number ?? current.parent)
        guard current.inode.kind == .directory, current.inode.content == .materialized else { return }
        // Changes there since the last comparison are not known.
        try db.noteIncomplete(current.inode.number)
    }

    /// The remote does not have an item of which nothing is here: it is gone, but for what was made or written in it.
    ///
    /// - Returns: whether it is gone.
    package func loseOffered(_ sent: SentChange, _ offer: Offer) throws -> Bool {
        guard let item = try db.item(id: sent.row), item.reimport == offer.round else { return false }
        guard try item.inode.kind == .directory || item.inode.content != .materialized || !db.isRepresented(item)
        else { return false }
        let isNeeded = try item.inode.kind == .directory && (holdsContent(item) || removal.keepLocalWork(in: item))
        guard isNeeded else {
            report(
                "lost in the reimport: '\(item.ownName)' is not on the remote any more, and its content was not on this "
                    + "machine")
            // Its new name or place, which was given here, keeps nothing: it would be offered for ever.
            try removal.removeUnchanged(item)
            return try db.item(id: sent.row) == nil
        }
        try removal.becomeNew(item)
        return false
    }

    /// Whether something in a directory without a listing is here: it is made again, and so is the directory. An item whose content is
    /// not here is removed when it is offered itself.
    private func holdsContent(_ directory: ItemRecord) throws -> Bool {
        var waiting = [directory.inode.number]
        var seen: Set<InodeNumber> = []
        while let next = waiting.popLast() {
            guard seen.insert(next).inserted else { continue }
            for child in try db.items(in: next) where !child.isExcluded {
                if try child.inode.content == .materialized && db.isRepresented(child) { return true }
                if child.inode.kind == .directory { waiting.append(child.inode.number) }
            }
        }
        return false
    }

    /// The remote has something else under the name of an item that was offered.
    ///
    /// - Parameter isOwn: whether it is what was sent of the item before.
    package func resolveOffer(
        _ sent: SentChange, _ offer: Offer, against remote: FileProviderItem, isOwn: Bool, label: String
    ) throws {
        guard let item = try db.item(id: sent.row), item.reimport == offer.round else { return }
        let isTaken =
            try db.item(remote.itemIdentifier).map { isKnownAgain($0, insteadOf: item, in: offer.round) } ?? false
        if isTaken {
            return try keepBoth(item, and: nil, of: sent, label: label)
        }
        guard InodeKind(remote.kind) == item.inode.kind else {
            return try keepBoth(item, and: remote, of: sent, label: label)
        }
        switch try verdict(on: item, against: remote, isOwn: isOwn) {
        case .theirs, .ours:
            try acknowledgeOffer(sent, offer, as: remote, stillPending: [], isSameContent: false)
        case .both: try keepBoth(item, and: remote, of: sent, label: label)
        }
    }

    /// An item that was removed here was found on the remote: it can be deleted there now.
    package func foundDeleted(_ deletion: PendingDeletion, as item: FileProviderItem) throws {
        try db.foundDeleted(deletion.identifier, as: item)
    }

    /// Whether a deletion is where it was when the remote was searched for its item. If not, a reimport has given up the directory
    /// that was searched, or is about to: it is found anew.
    package func isStillSought(_ deletion: PendingDeletion) throws -> Bool {
        guard try !db.isMarkingReimport() else { return false }
        let isThere = try db.one(
            "SELECT 1 FROM deletion WHERE id = ? AND identifier = ? AND baseParent = ?",
            [deletion.id, deletion.identifier.rawValue, deletion.parent.rawValue], { _ in true })
        return isThere == true
    }

    /// An item that was removed here is not on the remote, nor are the items that it contained.
    package func notFoundDeleted(_ deletion: PendingDeletion) throws {
        try db.deleteDeletions(below: deletion.identifier)
        try db.deleteDeletion(deletion.identifier)
        try ShownNames(transaction: transaction).restoreName(deletion.name, inRemote: deletion.parent)
    }

    private enum Verdict {
        /// It is the item, and newer there, or nothing of it is here.
        case theirs
        /// It is the item on which was written here.
        case ours
        case both
    }

    private func verdict(
        on item: ItemRecord, against remote: FileProviderItem, isOwn: Bool
    ) throws -> Verdict {
        guard try db.isRepresented(item) else { return .theirs }
        let wasKnown = item.base.name != nil
        switch item.inode.kind {
        case .file: break
        case .symbolicLink: return wasKnown ? .theirs : .both
        default: return .theirs
        }
        guard item.inode.content == .materialized else { return .theirs }
        if item.changedFields.contains(.contents) || item.inode.contentStamp != nil {
            if isOwn { return .ours }
            let isBase =
                remote.itemVersion.contentVersion == item.base.version.contentVersion
                || remote.documentSize == item.base.size && remote.contentModificationDate == item.base.modifiedAt
            // What the remote may have written since then is no base.
            return wasKnown && isBase && !item.base.version.isContentDoubted ? .ours : .both
        }
        // What was here unchanged is an older version of what is there now, unless the remote has gone back in time.
        guard wasKnown, let there = remote.contentModificationDate, let base = item.base.modifiedAt else {
            return .both
        }
        return there > base ? .theirs : .both
    }

    /// Whether a directory has the date on the remote that was sent, and gets another one there when what it contains is sent: then its
    /// date is sent once more, after that. SFTP keeps whole seconds.
    private func losesItsDate(_ current: ItemRecord, _ sent: SentChange, _ item: FileProviderItem) throws -> Bool {
        guard current.inode.kind == .directory, current.changedFields.contains(.contentModificationDate),
            item.contentModificationDate?.seconds == sent.item.contentModificationDate?.seconds
        else { return false }
        return try db.hasPendingChildren(current)
    }

    /// Those of the fields that were changed here and are other on the remote. An item of an import that the remote has as well gets the
    /// remote's attributes; extended attributes that would be lost by that are sent.
    private func differing(
        _ fields: ItemFields, of item: ItemRecord, from remote: FileProviderItem
    ) throws -> ItemFields {
        guard item.base.name != nil else {
            let hasOthers = remote.extendedAttributes?.isEmpty == false
            let isLost = try !hasOthers && !db.extendedAttributes(of: item.inode.number).isEmpty
            return fields.intersection(.contents).union(isLost ? .extendedAttributes : [])
        }
        var differing = fields
        if item.inode.modifiedAt == remote.contentModificationDate { differing.remove(.contentModificationDate) }
        if item.inode.createdAt == remote.creationDate { differing.remove(.creationDate) }
        if item.inode.permissions == remote.permissions { differing.subtract([.permissions, .fileSystemFlags]) }
        if item.inode.owner == nil || item.inode.owner == remote.owner,
            item.inode.group == nil || item.inode.group == remote.group
        {
            differing.remove(.ownership)
        }
        if fields.contains(.extendedAttributes),
            try db.extendedAttributes(of: item.inode.number) == remote.extendedAttributes ?? [:]
        {
            differing.remove(.extendedAttributes)
        }
        if item.ownName.utf8.elementsEqual(remote.filename.utf8) { differing.remove(.filename) }
        if try item.parent.flatMap({ try db.providerName(of: $0) }) == remote.parentItemIdentifier {
            differing.remove(.parentItemIdentifier)
        }
        return differing
    }

    /// The remote's item has the name, and what is here goes beside it, as a new one. What is not here goes. A name that is never sent
    /// stays that of the item here.
    private func keepBoth(
        _ item: ItemRecord, and remote: FileProviderItem?, of sent: SentChange, label: String
    ) throws {
        if sent.offer?.isIgnored == true {
            try Refusals(transaction: transaction).keepIgnored(sent)
            if let remote, let directory = try db.item(remote.parentItemIdentifier) {
                try placement.place(remote, in: directory.inode.number)
            }
            return
        }
        let isHere =
            try (item.inode.kind == .symbolicLink || item.inode.content == .materialized) && db.isRepresented(item)
        let hasWork = try item.inode.kind == .directory && removal.keepLocalWork(in: item)
        guard let left = try db.item(id: item.id), isHere || hasWork else {
            if let left = try db.item(id: item.id) { try removal.remove(left) }
            if let remote, let directory = try db.item(remote.parentItemIdentifier) {
                try placement.place(remote, in: directory.inode.number)
            }
            return
        }
        try removal.becomeNew(left)
        try Conflicts(transaction: transaction).resolveCollision(of: left.id, with: remote, label: label)
    }

    /// Whether another item was recognized in this round already as what an item would be. One that was not written here
    /// gives way to one that was.
    private func isKnownAgain(_ other: ItemRecord, insteadOf item: ItemRecord, in round: Int64) -> Bool {
        guard other.id != item.id, other.reimport == -round else { return false }
        return other.inode.kind != .file || isWritten(other) || !isWritten(item)
    }

    private func isWritten(_ item: ItemRecord) -> Bool {
        item.inode.kind == .file && (item.changedFields.contains(.contents) || item.inode.contentStamp != nil)
    }

    /// Another item was recognized as this one already: they were two names for one thing.
    private func settleDuplicate(_ item: ItemRecord, of winner: ItemRecord) throws {
        if isWritten(item) {
            try removal.becomeNew(item)
            return
        }
        if item.inode.kind == .directory {
            try removal.forgetTwin(item, of: winner)
        } else {
            try db.forgetChanges(of: item.id)
            if let clean = try db.item(id: item.id) { try removal.remove(clean) }
        }
        // It may have had the name of the one that was there first.
        guard winner.isHidden, let parent = winner.parent, try db.item(id: item.id) == nil,
            try db.item(named: item.name, in: parent) == nil, !item.isHidden
        else { return }
        try db.setName(of: winner.id, to: item.name)
        tellKernel([.entry(parent: parent, name: item.name), .contents(parent)])
    }
}
