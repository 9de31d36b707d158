import FileNames
import FileProvider
import Foundation

/// Applies what the remote has of single items: at their place, with their attributes.
///
/// The base side of an item takes everything; the local side takes what was not changed here. A process that has a file open
/// keeps the version that it opened, in an inode without a name, so that no reader ever sees two versions mixed; the item gets
/// another inode (Docs/decisions/0006-open-versions.md).
package struct Placement: RemotePart {
    let transaction: RemoteTransaction
    private var names: ShownNames { ShownNames(transaction: transaction) }
    private var trash: RemoteTrash { RemoteTrash(transaction: transaction) }
    private var versions: ContentVersions { ContentVersions(transaction: transaction) }
    private var removal: ItemRemoval { ItemRemoval(transaction: transaction) }

    /// Brings in an item in its parent directory, or in none when the parent is not known here.
    ///
    /// - Parameter number: the inode number of an item that is not known here; nil for the next.
    package func place(_ item: FileProviderItem, in parent: InodeNumber?, as number: InodeNumber? = nil) throws {
        if let defect = item.reasonNotToShow(withByteNames: transaction.hasByteNames) {
            report(Self.notShown(item, "\(defect)"))
            return
        }
        if let known = try db.item(item.itemIdentifier) {
            if known.inode.kind == InodeKind(item.kind) {
                try update(known, with: item, parent: parent)
            } else {
                try removal.remove(known)
                try insert(item, parent: parent)
            }
        } else {
            try insert(item, parent: parent, as: number)
        }
    }

    /// Takes in what the provider says about the root itself: it has neither parent nor name.
    package func placeRoot(_ item: FileProviderItem) throws {
        guard item.kind == .directory, let known = try db.item(.rootContainer) else { return }
        try updateAttributes(of: known, with: item)
    }

    /// The message about an item of the provider that cannot be shown.
    static func notShown(_ item: FileProviderItem, _ reason: String) -> String {
        "the remote has an item that cannot be shown: '\(item.filename)' (\(item.itemIdentifier)): \(reason)"
    }

    private func insert(_ item: FileProviderItem, parent: InodeNumber?, as number: InodeNumber? = nil) throws {
        let isTrashed = try trash.isForTrash(item)
        let parent = isTrashed ? try trash.directory(for: nil) : parent
        guard let parent else { return }
        // In the trash many may have one name.
        let holder = isTrashed ? nil : try db.item(named: item.filename, in: parent)
        guard try !isSettled(item, in: parent, holder, isTrashed: isTrashed) else { return }
        let number = try db.insertInode(of: item, as: number, at: now)
        let name =
            isTrashed
            ? try trash.freeName(for: item.filename, in: parent)
            : try names.claim(item.filename, in: parent, from: holder, for: nil, identifier: item.itemIdentifier)
        let row = try db.insert(item, of: number, in: parent, named: name)
        if let listing = transaction.listing { try db.noteSeen(row, in: listing) }
        if isTrashed { try trash.noteTrashed(newItem: row, as: item, named: name, in: parent) }
        for (name, value) in item.extendedAttributes ?? [:] { try db.setExtendedAttribute(name, of: number, to: value) }
        // While a directory is listed for the first time, the kernel gets no negative dentries of it.
        if !transaction.isFirstListing { tellKernel([.entry(parent: parent, name: name)]) }
        // A listing that is under way is not cached yet; one that is here is.
        if transaction.listing == nil { tellKernel([.contents(parent)]) }
    }

    func update(_ known: ItemRecord, with item: FileProviderItem, parent: InodeNumber?) throws {
        guard known.inode.number != .root else { return try updateAttributes(of: known, with: item) }
        let keepsPlace = known.localFields.contains(.parentItemIdentifier)
        let isTrashed = try !keepsPlace && trash.isForTrash(item)
        // Into a directory that was removed here: what was changed stays where it is seen, and is moved back on the remote.
        let isMovedBack = try !keepsPlace && !isTrashed && parent == nil && removal.isWorkedOn(known)
        let newParent =
            keepsPlace || isMovedBack ? known.parent : isTrashed ? try trash.directory(for: known) : parent
        let isMoved = newParent != known.parent
        // Before a name is claimed in the new parent.
        if let newParent, try isBelowItself(known, in: newParent), try !undoMoves(from: newParent, to: known) {
            report(Self.notShown(item, Self.belowItself))
            return try leaveInPlace(known, insteadOf: newParent)
        }
        var name = known.name
        let keepsName = isMovedBack || known.localFields.contains(.filename)
        let wanted = keepsName && !known.isHidden ? known.name : item.filename
        // In the trash the local name is not the remote's.
        if let newParent, isMoved || known.trash == nil {
            // The name shown is asked for again each time: a decorated one goes back as soon as it can.
            if isMoved || !known.name.utf8.elementsEqual(wanted.utf8) {
                name =
                    isTrashed
                    ? try trash.freeName(for: wanted, in: newParent)
                    : try names.claim(
                        wanted, in: newParent, from: db.item(named: wanted, in: newParent), for: known,
                        identifier: item.itemIdentifier)
            }
        } else if newParent == nil {
            name = Displacement.name(forItem: known.id)
        }
        if isMoved || !name.utf8.elementsEqual(known.name.utf8) {
            if isMoved, known.inode.kind == .directory { reportEnd(of: Self.notShown(item, Self.belowItself)) }
            if let newParent, isTrashed, known.trash == nil {
                try trash.noteTrashed(known, as: item, named: name, in: newParent)
            } else if known.trash != nil, isMoved, !isTrashed {
                try trash.noteRestored(known)
            }
            try db.move(known.id, to: newParent, named: name)
            if isMoved { try db.endConflict(of: known.id) }
            if let oldParent = known.parent {
                tellKernel([.departure(of: known, from: oldParent), .contents(oldParent)])
            }
            if let newParent {
                tellKernel([.entry(parent: newParent, name: name), .contents(newParent)])
            }
        }
        try db.setBasePlace(of: known.id, to: item)
        if let listing = transaction.listing { try db.noteSeen(known.id, in: listing) }
        if isMovedBack || !known.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier]) {
            // What a listing repeats is no news: an upload that fails would be tried again after each listing, without back-off.
            let isNews =
                isMovedBack || known.base.parent != item.parentItemIdentifier
                || known.base.name?.utf8.elementsEqual(item.filename.utf8) != true
            if isNews { try noteWhereItIs(known.id) } else { try db.noteUnmoved(known.id, at: now) }
        }
        try updateAttributes(of: known, with: item)
        if let oldParent = known.parent, isMoved || !name.utf8.elementsEqual(known.name.utf8) {
            try names.restoreName(known.name, in: oldParent)
        }
    }

    /// Everything but parent and name. What is written here is still based on what it was written over: that content's
    /// version, size and date stay together.
    private func updateAttributes(of known: ItemRecord, with item: FileProviderItem) throws {
        let doubt = try doubt(of: known, seeing: item)
        try db.setBase(of: known.id, to: item)
        if doubt == .remains {
            try db.setBaseMetadataVersion(of: known.id, to: known.base.version.doubtedMetadataVersion)
            if !known.changedFields.contains(.contents) {
                transaction.effects.doubtfulContents.append(DoubtfulContent(row: known.id, inode: known.inode.number))
            }
        }
        var inode = known.inode
        // Of several items that share an inode, each has a version of its own.
        let present = inode.linkCount > 1 ? known.base.version.contentVersion : inode.contentVersion
        let isNewContent =
            inode.kind == .file && item.itemVersion.contentVersion != present
            && !known.changedFields.contains(.contents)
        var known = known
        // New content comes with its own date.
        if known.heldFields.contains(.contentModificationDate), isNewContent || known.isDateNoLongerHeld(for: item) {
            try db.endHold(of: known.id, .contentModificationDate)
            known.heldFields.remove(.contentModificationDate)
        }
        let changed = known.localFields
        if let permissions = item.permissions, !changed.contains(.permissions) {
            inode.permissions = permissions & 0o7777
        }
        if !changed.contains(.ownership) {
            if let owner = item.owner { inode.owner = owner }
            if let group = item.group { inode.group = group }
        }
        if let created = item.creationDate, !changed.contains(.creationDate) { inode.createdAt = created }
        if let modified = item.contentModificationDate, !changed.contains(.contentModificationDate), !isNewContent {
            inode.modifiedAt = modified
        }
        if inode.kind == .directory, let size = item.documentSize,
            (0...FileProviderItem.maximumDocumentSize).contains(size)
        {
            inode.size = size
        }
        if inode.kind == .symbolicLink, let target = item.symlinkTargetPath {
            let known = try db.linkTarget(of: inode.number)
            if known?.utf8.elementsEqual(target.utf8) != true {
                try db.setLinkTarget(of: inode.number, to: target)
                inode.size = Int64(FileNameText.byteCount(of: target))
                tellKernel([.contents(inode.number)])
            }
        }
        if inode != known.inode {
            // Its creation time and the size of a directory on the remote are not changes of the item.
            var shown = inode
            shown.createdAt = known.inode.createdAt
            if shown.kind == .directory { shown.size = known.inode.size }
            if shown != known.inode { inode.changedAt = now }
            try db.writeAttributes(of: inode)
            tellKernel([.attributes(inode.number)])
        }
        var isOtherAccess =
            inode.permissions != known.inode.permissions || inode.owner != known.inode.owner
            || inode.group != known.inode.group || item.capabilities != known.capabilities
        if !changed.contains(.extendedAttributes),
            try setExtendedAttributes(item.extendedAttributes, of: inode.number)
        {
            isOtherAccess = true
        }
        // The remote says nothing of ACLs.
        if item.extendedAttributes == nil, let permissions = inode.permissions,
            permissions != known.inode.permissions
        {
            try db.setAccessList(of: inode.number, toMode: permissions)
        }
        if isOtherAccess, inode.kind == .directory { try retryFailed(in: known) }
        if isNewContent || doubt == .isPartial { try versions.takeNewContent(of: known) }
    }

    /// - Returns: whether the access ACL is another one.
    private func setExtendedAttributes(_ attributes: [String: [UInt8]]?, of number: InodeNumber) throws -> Bool {
        guard let attributes else { return false }
        let old = try db.extendedAttributes(of: number)
        guard attributes != old else { return false }
        try db.run("DELETE FROM extendedAttribute WHERE inode = ?", [number.rawValue])
        let isOtherList = attributes[AccessControlList.accessKey] != old[AccessControlList.accessKey]
        // The kernel keeps ACLs with the attributes of an inode.
        if isOtherList { tellKernel([.attributes(number)]) }
        for (name, value) in attributes { try db.setExtendedAttribute(name, of: number, to: value) }
        return isOtherList
    }

    // MARK: - Items that are known by another name or identifier

    /// Whether a report of an unknown item needs no new row: it has been handled, or has to wait.
    ///
    /// - Parameter holder: the item that has its name in its directory.
    private func isSettled(
        _ item: FileProviderItem, in parent: InodeNumber, _ holder: ItemRecord?, isTrashed: Bool
    ) throws -> Bool {
        if transaction.mayBeDeletedOrSent, try isBeingDeleted(item) { return true }
        if isTrashed { return false }
        guard let holder, !holder.isExcluded else { return try isLate(item) }
        if holder.isToBeOffered {
            // The provider says what it is, when it is offered.
            try db.noteIncomplete(parent)
            return true
        }
        if InodeKind(item.kind) == holder.inode.kind, item.kind != .directory,
            try db.unanswered("item", holder.id).contains(where: { $0.matches(item) })
        {
            try recognize(holder.id, as: item)
            return true
        }
        if try isLate(item) { return true }
        guard holder.identifier == nil else { return false }
        if holder.inode.kind == .directory, item.kind == .directory {
            try adopt(item, for: holder)
        } else {
            // The local item is offered to the provider, which says how the two get along; then this one is looked at
            // again.
            try db.noteIncomplete(parent)
        }
        return true
    }

    /// Whether it is what was sent without an answer, and was removed or renamed here since: then it is deleted.
    private func isLate(_ item: FileProviderItem) throws -> Bool {
        guard transaction.mayBeDeletedOrSent, try db.queueDeletion(ofLate: item, at: now) else { return false }
        noteSomethingToSend()
        return true
    }

    /// For how long a deletion waits that failed, once the remote has another version.
    private static let pauseBeforeDeleting = Duration.seconds(60)

    /// An item that was removed here and is still on the remote stays removed until the provider, which is asked to delete the
    /// known version, says that it has other content by now.
    private func isBeingDeleted(_ item: FileProviderItem) throws -> Bool {
        let deletion = try db.one(
            "SELECT baseContentVersion, kind, id, trashedTop FROM deletion WHERE identifier = ?",
            [item.itemIdentifier.rawValue],
            { ([UInt8]($0[0] as Data), $0[1] as Int, $0[2] as Int64, $0[3] as String?) })
        guard let (version, kind, id, trashedTop) = deletion else { return try isToBeLookedFor(item) }
        if item.isTrashed ? trashedTop == nil : trashedTop == item.itemIdentifier.rawValue {
            // Another client has restored what was to be deleted from the trash, or has trashed what was removed here, which may
            // hold items of that client.
            try db.deleteDeletions(below: item.itemIdentifier, areAll: true)
            try db.deleteDeletion(item.itemIdentifier)
            // Others may have waited for the name.
            noteSomethingToSend()
            return false
        }
        // A request that was sent before the removal, and not answered, is not newer than the removal.
        let isOwn = try db.unanswered("deletion", id).contains { $0.matches(item) }
        // It may have been written in place, also before or after it got a new name: the provider has to find that it is not what was
        // removed here.
        let mayBeWritten = transaction.versionsMayRepeat && kind == InodeKind.file.rawValue && !isOwn
        try db.updateDeletion(item, keepsVersion: mayBeWritten)
        // Only the provider knows whether two versions stand for two contents.
        if kind != InodeKind.directory.rawValue, version != item.itemVersion.contentVersion, !isOwn {
            let isEarlier = try db.hastenDeletion(id, until: now.advanced(by: Self.pauseBeforeDeleting))
            if isEarlier { noteSomethingToSend() }
        }
        return true
    }

    /// Whether it is what was sent and not answered before it was removed here or renamed: it is searched for and deleted.
    private func isToBeLookedFor(_ item: FileProviderItem) throws -> Bool {
        let deletions = try db.all(
            "SELECT id, identifier, kind FROM deletion WHERE baseParent = ? AND baseName = ?",
            [item.parentItemIdentifier.rawValue, item.filename],
            { (id: $0[0] as Int64, identifier: $0[1] as String, kind: $0[2] as Int) })
        return try deletions.contains { deletion in
            // A file that was replaced may have got another identifier. A directory of the name may not be ours: one that
            // stands for a placeholder is shown when the search finds that it is not empty.
            let isPlaceholder = ItemIdentifier(rawValue: deletion.identifier).isPlaceholder
            return try deletion.kind == InodeKind(item.kind).rawValue && (isPlaceholder || item.kind != .directory)
                && db.unanswered("deletion", deletion.id).contains { $0.mayBe(item) }
        }
    }

    /// A directory that was made here is the remote's directory of the same name: what both hold comes together.
    func adopt(_ item: FileProviderItem, for local: ItemRecord) throws {
        try db.acknowledge(
            local.id, as: item, capabilities: item.capabilities,
            changed: local.changedFields.subtracting(.creationDate), held: local.heldFields)
        try noteWhereItIs(local.id)
        try db.noteIncomplete(local.inode.number)
    }

    func recognize(_ row: Int64, as remote: FileProviderItem) throws {
        guard let item = try db.item(id: row) else { return }
        if let twin = try db.item(remote.itemIdentifier), twin.id != row { try removal.forgetTwin(twin, of: item) }
        try db.acknowledge(
            row, as: remote, capabilities: remote.capabilities, changed: item.changedFields, held: item.heldFields)
        try db.forgetUnanswered(ofItem: row)
        if item.inode.number != .root { try noteWhereItIs(row) }
        // It may be another client's directory of the same name, with what it contains.
        if item.inode.kind == .directory { try db.noteIncomplete(item.inode.number) }
    }
}
