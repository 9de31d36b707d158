import FileProvider
import GRDB

/// The outcome of a conflict: content that was changed here and on the remote.
package enum ConflictOutcome: Hashable, Sendable {
    /// The local content is a new item of this name.
    case copied(name: String)
    /// There is no local content to be kept.
    case nothingToKeep
    /// The item is a conflict copy itself, which the remote does not have or which comes of several others: nothing was changed,
    /// and both contents stay where they are.
    case isConflictCopy
}

/// Both sides changed the same thing: both are kept.
///
/// Conflict copies of conflict copies are few: a remote that shows what was written here as something else, each time it is
/// looked at, would make new files without end.
package struct Conflicts: RemotePart {
    let transaction: RemoteTransaction
    private var placement: Placement { Placement(transaction: transaction) }

    /// How often a conflict copy whose name is taken gets another, and how often one that was changed on both sides has a copy of
    /// its own, which may be changed on both sides.
    private static let mostCollisions = 3

    /// The remote's content has the name from now on; the content that was written here goes beside it, as a new item,
    /// with the inode: a process that has it open goes on writing there.
    ///
    /// - Parameter label: what is added to the name, such as `conflicted copy of HOST, 2026-01-31`.
    @discardableResult
    package func splitConflict(
        of row: Int64, with remote: FileProviderItem, label: String
    ) throws -> ConflictOutcome {
        guard let item = try db.item(id: row), let parent = item.parent else { return .nothingToKeep }
        guard item.inode.kind == .file, item.changedFields.contains(.contents) else { return .nothingToKeep }
        var collisions: Int64 = 0
        if try db.conflictOriginal(of: row) != nil {
            collisions = try db.collisions(of: row) + 1
            if item.identifier == nil || collisions > Self.mostCollisions { return .isConflictCopy }
        }
        let name = try db.freeName(for: item.name, label: label, in: parent)
        // What waits for the change waits for its copy.
        let since = try db.pendingSince(of: row) ?? now
        // The remote's item, with an inode of its own; what was changed of its place stays pending.
        let number = try db.copyInode(
            of: item, size: remote.documentSize ?? 0, version: remote.itemVersion.contentVersion, at: now)
        try db.giveUpContent(of: row, for: remote, in: number)
        try db.forgetAttributes(item.changedFields, of: number)
        try db.insertConflictCopy(
            of: item.inode.number, original: item.name, named: name, in: parent, collisions: collisions,
            pendingSince: since)
        tellKernel([
            .departure(of: item, from: parent), .entry(parent: parent, name: name), .contents(parent),
        ])
        let path = try db.shownPath(item.name, in: parent)
        reportConflict(
            item.inode.number,
            "conflict: '\(path)' was changed here and on the remote: what was written here is '\(name)'")
        if let split = try db.item(id: row) {
            try placement.update(split, with: remote, parent: try db.item(remote.parentItemIdentifier)?.inode.number)
        }
        return .copied(name: name)
    }

    /// A new item's name is another item's on the remote: the remote's has the name from now on. Directories become one. An item that
    /// is being removed here, or moved elsewhere, keeps the name until that is sent.
    ///
    /// - Parameter sent: the change that was refused for the name; nil for an offer.
    /// - Returns: false when the item is a conflict copy that has been given other names already: nothing was changed.
    @discardableResult
    package func resolveCollision(
        of row: Int64, with remote: FileProviderItem?, label: String, sent: SentChange? = nil
    ) throws -> Bool {
        guard let item = try db.item(id: row), let parent = item.parent else { return true }
        if let remote, remote.kind == .directory, item.inode.kind == .directory, item.identifier == nil,
            try db.item(remote.itemIdentifier) == nil
        {
            try placement.adopt(remote, for: item)
            return true
        }
        if let remote, item.identifier == nil, hasMoved(item, since: sent, otherThan: remote),
            let directory = try db.item(remote.parentItemIdentifier)
        {
            try placement.place(remote, in: directory.inode.number)
            return true
        }
        if let remote, try isLeavingItsName(remote) { return true }
        let original = try db.conflictOriginal(of: row)
        if original != nil, try db.collisions(of: row) >= Self.mostCollisions { return false }
        // Another machine that makes copies of the same file gives them the same numbers.
        let number = original == nil ? 1 : Int.random(in: 100..<10_000)
        let name = try db.freeName(for: original ?? item.name, label: label, from: number, in: parent)
        try db.becomeConflictCopy(item, named: name, of: original ?? item.name)
        if item.identifier != nil { try db.noteWhereItIs(row, at: now) }
        tellKernel([
            .departure(of: item, from: parent), .entry(parent: parent, name: name), .contents(parent),
        ])
        let path = try db.shownPath(item.name, in: parent)
        reportConflict(
            item.inode.number,
            "conflict: '\(path)' was made here and on the remote: the local one is '\(name)'")
        if let remote, let directory = try db.item(remote.parentItemIdentifier) {
            try placement.place(remote, in: directory.inode.number)
        } else {
            try db.noteIncomplete(parent)
        }
        return true
    }

    /// Whether a new item has got another name or directory here since it was sent. That the remote's item is called otherwise does not
    /// show it: to the remote two spellings may be one name.
    private func hasMoved(_ item: ItemRecord, since sent: SentChange?, otherThan remote: FileProviderItem) -> Bool {
        if let sent { return item.placeholder != sent.item.itemIdentifier }
        return !remote.filename.utf8.elementsEqual(item.name.utf8)
    }

    /// Whether an item of the remote is being removed here, or gets another name than the one that it has there: a request without an
    /// answer has given it that name. The item that is to have the name waits for the change, as for any other that frees a name.
    private func isLeavingItsName(_ remote: FileProviderItem) throws -> Bool {
        guard let directory = try db.item(remote.parentItemIdentifier)?.inode.number else { return false }
        if let known = try db.item(remote.itemIdentifier) {
            let isLeaving =
                !known.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier])
                && (known.parent != directory || !known.name.utf8.elementsEqual(remote.filename.utf8))
            guard isLeaving else { return false }
        } else if try !db.isBeingDeleted(remote.itemIdentifier) {
            return false
        }
        try placement.place(remote, in: directory)
        return true
    }

    /// The remote does not delete an item, or has changed it: it is shown again.
    package func bringBack(_ deletion: PendingDeletion, as item: FileProviderItem?) throws {
        _ = try db.deleteDeletion(deletion)
        try ShownNames(transaction: transaction).restoreName(deletion.name, inRemote: deletion.parent)
        guard let parent = try db.item(item?.parentItemIdentifier ?? deletion.parent) else { return }
        if let item {
            let number = InodeKind(item.kind) == deletion.kind ? try freedNumber(of: deletion) : nil
            try placement.place(item, in: parent.inode.number, as: number)
        } else {
            try db.noteIncomplete(parent.inode.number)
        }
    }

    /// Nothing on the remote is what was sent of a new item that was removed here or renamed.
    ///
    /// - Parameter mayArrive: whether the name is free there.
    package func endSearch(for deletion: PendingDeletion, mayArrive: Bool) throws {
        if mayArrive { try db.keepLate(deletion, at: now) }
        // What has its name there was not shown until now.
        try bringBack(deletion, as: nil)
    }

    /// What has the name of a removed item on the remote, and may be another client's, was not shown as long as the deletion was
    /// pending: the directory is compared again.
    package func compareLater(_ directory: ItemIdentifier) throws {
        guard let directory = try db.item(directory) else { return }
        try db.noteIncompleteIfListed(directory.inode.number)
    }

    /// The inode number that a removed item had, if nothing is left of the inode: it has no other name, and no process has
    /// it open.
    private func freedNumber(of deletion: PendingDeletion) throws -> InodeNumber? {
        guard let number = deletion.inode, !open.keepsNameless(number) else { return nil }
        if let left = try db.inode(number), left.linkCount == 0 {
            // The kernel has just forgotten it.
            try deleteNameless(left)
        }
        return try db.isFreed(number) ? number : nil
    }
}

extension ReplicaDatabase {
    package func isConflictCopy(row: Int64) throws -> Bool {
        try read { db in try db.conflictOriginal(of: row) != nil }
    }
}

extension Database {
    /// The name of the item that another is the conflict copy of; nil for all others, and for one that was given that name.
    fileprivate func conflictOriginal(of row: Int64) throws -> String? {
        try one("SELECT conflictOf FROM item WHERE id = ? AND conflictOf <> name", [row], { $0[0] as String? }) ?? nil
    }

    fileprivate func collisions(of row: Int64) throws -> Int64 {
        try one("SELECT collisions FROM item WHERE id = ?", [row], { $0[0] as Int64 }) ?? 0
    }
}
