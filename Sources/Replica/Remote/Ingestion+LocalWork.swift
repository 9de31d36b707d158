import FileProvider
import Foundation
import GRDB

/// Remote changes against local changes: nothing that exists only here is removed with an item that the remote removes,
/// and an old remote change does not undo what was removed or made here.
extension Ingestion {
    /// Whether a report of an unknown item needs no new row: it has been handled, or has to wait.
    mutating func isSettled(_ item: FileProviderItem, in parent: InodeNumber) throws -> Bool {
        if try isBeingDeleted(item) { return true }
        // In the trash many may have one name.
        if try isForTrash(item) { return false }
        guard let holder = try db.item(named: item.filename, in: parent), !holder.isExcluded else { return false }
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

    /// An item that was removed here and is still on the remote stays removed, unless it has other content by now.
    private func isBeingDeleted(_ item: FileProviderItem) throws -> Bool {
        let version = try db.one(
            "SELECT baseContentVersion, kind, id FROM deletion WHERE identifier = ?", [item.itemIdentifier.rawValue],
            { ([UInt8]($0[0] as Data), $0[1] as Int, $0[2] as Int64) })
        guard let (version, kind, id) = version else { return try isToBeLookedFor(item) }
        // A request that was sent before the removal, and not answered, is not newer than the removal.
        let isOwn = try db.unanswered("deletion", id).contains { $0.matches(item) }
        if kind == InodeKind.file.rawValue, version != item.itemVersion.contentVersion, !isOwn {
            try db.deleteDeletion(item.itemIdentifier)
            return false
        }
        try db.updateDeletion(item)
        return true
    }

    /// Whether it is what was sent and not answered before it was removed here or renamed: the search for it deletes it.
    private func isToBeLookedFor(_ item: FileProviderItem) throws -> Bool {
        let deletions = try db.all(
            "SELECT id, identifier, kind FROM deletion WHERE baseParent = ? AND baseName = ?",
            [item.parentItemIdentifier.rawValue, item.filename],
            { (id: $0[0] as Int64, identifier: $0[1] as String, kind: $0[2] as Int) })
        return try deletions.contains { deletion in
            // A directory of the name may not be ours, and its items are shown until it is deleted.
            try deletion.identifier.utf8.starts(with: ItemRecord.placeholderPrefix.utf8) && item.kind != .directory
                && deletion.kind == InodeKind(item.kind).rawValue
                && db.unanswered("deletion", deletion.id).contains { $0.matches(item) }
        }
    }

    /// A directory that was made here is the remote's directory of the same name: what both hold comes together.
    mutating func adopt(_ item: FileProviderItem, for local: ItemRecord) throws {
        try db.acknowledge(
            local.id, as: item, capabilities: item.capabilities,
            changed: local.changedFields.subtracting(.creationDate), held: local.heldFields)
        try db.noteWhereItIs(local.id, at: now)
        try db.noteIncomplete(local.inode.number)
    }

    // MARK: - Removed on the remote

    /// Keeps what exists only here when the remote has removed an item: it becomes new and is offered again. All that is
    /// not changed here goes.
    ///
    /// - Returns: false when there is nothing to keep, and nothing was done.
    mutating func keepLocalWork(in item: ItemRecord) throws -> Bool {
        guard try hasLocalWork(item, removedParent: nil, depth: 0) else { return false }
        try keepOrRemove(item, removedParent: nil, depth: 0)
        return true
    }

    private func hasLocalWork(_ item: ItemRecord, removedParent: ItemIdentifier?, depth: Int) throws -> Bool {
        if try isLocalWork(item, removedParent: removedParent) { return true }
        guard item.inode.kind == .directory, depth < Self.deepest else { return false }
        return try db.items(in: item.inode.number).contains {
            try hasLocalWork($0, removedParent: item.identifier, depth: depth + 1)
        }
    }

    /// Whether an item itself has something that the remote has not, beside its attributes.
    private func isLocalWork(_ item: ItemRecord, removedParent: ItemIdentifier?) throws -> Bool {
        // An excluded item does not keep a directory that the remote has removed.
        if item.isExcluded || item.inode.kind.itemKind == nil { return false }
        if item.isToBeOffered, item.changedFields.contains(.parentItemIdentifier) { return true }
        if item.identifier == nil, !item.isToBeOffered { return true }
        if item.inode.kind == .file, item.changedFields.contains(.contents) { return true }
        // A file that is being written may hold what no comparison has seen yet.
        if item.inode.contentStamp != nil { return true }
        return isMovedIn(item, removedParent: removedParent)
    }

    /// Whether an item was moved into a directory that the remote has removed. Where the remote has it, it is not removed:
    /// it stays what it is, and only its place is new.
    private func isMovedIn(_ item: ItemRecord, removedParent: ItemIdentifier?) -> Bool {
        guard let removedParent, let identifier = item.identifier else { return false }
        return item.changedFields.contains(.parentItemIdentifier) && item.base.parent != removedParent
            && !upcoming.contains(identifier)
    }

    private mutating func keepOrRemove(_ item: ItemRecord, removedParent: ItemIdentifier?, depth: Int) throws {
        if isMovedIn(item, removedParent: removedParent) {
            // The directory may have been the reason why it could not be sent.
            return try db.retryItem(item.id)
        }
        if item.inode.kind == .directory {
            for child in try db.items(in: item.inode.number) {
                if try hasLocalWork(child, removedParent: item.identifier, depth: depth + 1) {
                    try keepOrRemove(child, removedParent: item.identifier, depth: depth + 1)
                } else {
                    try remove(child)
                }
            }
        }
        try offerAgain(item)
    }

    /// Makes an item a new one, which the provider has never heard of.
    package mutating func offerAgain(_ item: ItemRecord) throws {
        if item.isToBeOffered, item.inode.kind != .file || item.inode.content != .materialized {
            // It is offered as soon as what holds it is.
            return try db.retryItem(item.id)
        }
        try becomeNew(item)
    }

    // MARK: - Moved on the remote

    /// A move on the remote would close a circle with moves that were made here: those are taken back, because the
    /// remote's has happened.
    ///
    /// - Returns: false when no local move is in the way.
    mutating func undoMoves(from directory: InodeNumber, to ancestor: ItemRecord) throws -> Bool {
        var current = directory
        var hasUndone = false
        for _ in 0..<Self.deepest where current != ancestor.inode.number && current != .root {
            guard let item = try db.item(ofInode: current), let parent = item.parent else { break }
            if item.changedFields.contains(.parentItemIdentifier), let base = item.base.parent,
                let origin = try db.item(base), try !db.isBelow(origin.inode.number, ancestor.inode.number),
                let name = item.base.name, try db.item(named: name, in: origin.inode.number) == nil
            {
                try db.move(item.id, to: origin.inode.number, named: name)
                try db.noteWhereItIs(item.id, at: now)
                effects.invalidations += [
                    .entry(parent: parent, name: item.name), .contents(parent),
                    .entry(parent: origin.inode.number, name: name), .contents(origin.inode.number),
                ]
                effects.defects.append(
                    "conflict: '\(item.name)' was moved here while the remote moved '\(ancestor.name)' below it: the move here has "
                        + "been undone")
                hasUndone = true
                break
            }
            current = parent
        }
        return try hasUndone && !db.isBelow(directory, ancestor.inode.number)
    }

    /// No path on Linux is deeper.
    private static let deepest = 4096

    // MARK: - Links

    /// The remote gave one of several names of an inode other content: it is a file of its own from now on.
    mutating func giveOwnInode(to item: ItemRecord) throws {
        guard let current = try db.item(id: item.id) else { return }
        let number = try db.copyInode(
            of: current, size: current.base.size, version: current.base.version.contentVersion, at: now)
        try db.setInode(of: item.id, to: number)
        try db.unlink(item.inode.number, at: now)
        effects.invalidations.append(.attributes(item.inode.number))
        if let parent = current.parent {
            effects.invalidations += [.entry(parent: parent, name: current.name), .contents(parent)]
        }
    }
}
