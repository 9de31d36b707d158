import FileProvider
import Foundation
import GRDB

/// News from the remote against what was changed here: nothing that exists only here goes with what the remote removes,
/// and what was removed or made here is not undone by old news.
extension Ingestion {
    /// Whether news of an item that is not known here are dealt with already, or have to wait.
    mutating func isSettled(_ item: FileProviderItem, in parent: InodeNumber) throws -> Bool {
        if try isBeingDeleted(item) { return true }
        // In the trash many may have one name.
        if try isForTrash(item) { return false }
        guard let holder = try db.item(named: item.filename, in: parent), !holder.isExcluded else { return false }
        if holder.isToBeOffered {
            // The provider says what it is, when it is offered.
            try db.run("UPDATE inode SET isIncomplete = \(comparison: .needed) WHERE number = ?", [parent.rawValue])
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
            try db.run("UPDATE inode SET isIncomplete = \(comparison: .needed) WHERE number = ?", [parent.rawValue])
        }
        return true
    }

    /// An item that was removed here and is still on the remote stays removed, unless it has other content by now.
    private func isBeingDeleted(_ item: FileProviderItem) throws -> Bool {
        let version = try db.one(
            "SELECT baseContentVersion, kind, id FROM deletion WHERE identifier = ?", [item.itemIdentifier.rawValue],
            { ([UInt8]($0[0] as Data), $0[1] as Int, $0[2] as Int64) })
        guard let (version, kind, id) = version else { return try isToBeLookedFor(item) }
        // What was sent last, and not answered, is no newer than the removal.
        let isOwn = try db.unanswered("deletion", id).contains { $0.matches(item) }
        if kind == InodeKind.file.rawValue, version != item.itemVersion.contentVersion, !isOwn {
            try db.run("DELETE FROM deletion WHERE identifier = ?", [item.itemIdentifier.rawValue])
            return false
        }
        try db.run(
            "UPDATE deletion SET baseParent = ?, baseName = ?, baseMetadataVersion = ? WHERE identifier = ?",
            [
                item.parentItemIdentifier.rawValue, item.filename, Data(item.itemVersion.metadataVersion),
                item.itemIdentifier.rawValue,
            ])
        return true
    }

    /// Whether it is what was sent and not answered before it was removed here or renamed: whoever looks for it deletes it.
    private func isToBeLookedFor(_ item: FileProviderItem) throws -> Bool {
        let deletions = try db.all(
            "SELECT id, identifier, kind FROM deletion WHERE baseParent = ? AND baseName = ?",
            [item.parentItemIdentifier.rawValue, item.filename],
            { (id: $0[0] as Int64, identifier: $0[1] as String, kind: $0[2] as Int) })
        return try deletions.contains { deletion in
            // A directory may be anybody's, and what is in it is shown until it is deleted.
            try deletion.identifier.utf8.starts(with: ItemRecord.placeholderPrefix.utf8) && item.kind != .directory
                && deletion.kind == InodeKind(item.kind).rawValue
                && db.unanswered("deletion", deletion.id).contains { $0.matches(item) }
        }
    }

    /// A directory that was made here is the remote's directory of the same name: what both hold comes together.
    mutating func adopt(_ item: FileProviderItem, for local: ItemRecord) throws {
        try db.run(
            """
            UPDATE item SET identifier = ?, baseParent = ?, baseName = ?, baseContentVersion = ?,
                baseMetadataVersion = ?, baseModifiedAt = ?, capabilities = ?, wasSent = 0,
                changedFields = changedFields & ~?, attempts = 0, nextTry = NULL WHERE id = ?
            """,
            [
                item.itemIdentifier.rawValue, item.parentItemIdentifier.rawValue, item.filename,
                Data(item.itemVersion.contentVersion), Data(item.itemVersion.metadataVersion),
                item.contentModificationDate?.nanosecondsSince1970, Int64(item.capabilities.rawValue),
                Int64(ItemFields.creationDate.rawValue), local.id,
            ])
        try db.noteWhereItIs(local.id, at: now)
        try db.run(
            """
            UPDATE inode SET isIncomplete = \(comparison: .needed) WHERE number = ?
            """, [local.inode.number.rawValue])
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
        // What stays on this machine keeps nothing alive that the remote has removed.
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
            // What kept it from being sent may have been the directory.
            return try db.run("UPDATE item SET attempts = 0, nextTry = NULL WHERE id = ?", [item.id])
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
            return try db.run("UPDATE item SET attempts = 0, nextTry = NULL WHERE id = ?", [item.id])
        }
        if item.isHidden, let name = item.base.name, let parent = item.parent {
            // It made room for what the remote has in its place, and has to be shown again.
            let free = try freeName(for: name, in: parent)
            try db.run("UPDATE item SET name = ? WHERE id = ?", [free, item.id])
            effects.invalidations += [.entry(parent: parent, name: free), .contents(parent)]
        }
        try db.run(
            """
            UPDATE item SET identifier = NULL, baseParent = NULL, baseName = NULL, baseContentVersion = x'',
                baseMetadataVersion = x'', template = ?, wasSent = 0, changedFields = ?, attempts = 0, nextTry = NULL,
                reimport = -abs(reimport),
                pendingSince = COALESCE(pendingSince, ?) WHERE id = ?
            """,
            [
                ItemRecord.newTemplate(), Int64(ItemFields.ofNewItem(item.inode.kind).rawValue),
                now.nanosecondsSince1970, item.id,
            ])
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
                try db.run(
                    "UPDATE item SET parent = ?, name = ? WHERE id = ?", [origin.inode.number.rawValue, name, item.id])
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
        let number = try copyInode(of: current, size: current.base.size, version: current.base.version.contentVersion)
        try db.run("UPDATE item SET inode = ? WHERE id = ?", [number.rawValue, item.id])
        try db.run(
            "UPDATE inode SET linkCount = linkCount - 1, changedAt = ? WHERE number = ?",
            [now.nanosecondsSince1970, item.inode.number.rawValue])
        effects.invalidations.append(.attributes(item.inode.number))
        if let parent = current.parent {
            effects.invalidations += [.entry(parent: parent, name: current.name), .contents(parent)]
        }
    }

    /// A new, dataless inode with the attributes of an item's own.
    mutating func copyInode(of item: ItemRecord, size: Int64, version: [UInt8]) throws -> InodeNumber {
        try db.run(
            """
            INSERT INTO inode (kind, size, permissions, owner, "group", modifiedAt, changedAt, createdAt, linkTarget,
                contentVersion, content)
            SELECT kind, ?, permissions, owner, "group", ?, ?, createdAt, linkTarget, ?, ? FROM inode WHERE number = ?
            """,
            [
                size, (item.base.modifiedAt ?? item.inode.modifiedAt).nanosecondsSince1970, now.nanosecondsSince1970,
                Data(version), (size == 0 ? ContentState.materialized : .dataless).rawValue,
                item.inode.number.rawValue,
            ])
        let number = InodeNumber(rawValue: db.lastInsertedRowID)
        try db.run(
            """
            INSERT INTO extendedAttribute (inode, name, value)
            SELECT ?, name, value FROM extendedAttribute WHERE inode = ?
            """, [number.rawValue, item.inode.number.rawValue])
        return number
    }
}
