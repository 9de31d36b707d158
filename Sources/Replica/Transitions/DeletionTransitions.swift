import FileProvider
import Foundation
import GRDB

/// Deletions that the remote has not acknowledged.
extension Database {
    /// Queues the deletion of something that the remote has, or may have. One of the same identifier is replaced.
    ///
    /// - Parameter isToBeFound: whether the identifier only stands in for the provider's, so that the item has to be
    ///   found by its place first.
    func queueDeletion(
        _ identifier: ItemIdentifier, _ kind: InodeKind, in parent: ItemIdentifier, named name: String,
        version: ItemVersion, inode: InodeNumber? = nil, isToBeFound: Bool = false, at now: FileTimestamp
    ) throws {
        try run(
            """
            INSERT OR REPLACE INTO deletion (identifier, kind, baseParent, baseName, baseContentVersion,
                baseMetadataVersion, pendingSince, isToBeFound, inode, trashedTop) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                identifier.rawValue, kind.rawValue, parent.rawValue, name, Data(version.contentVersion),
                Data(version.metadataVersion), now.nanosecondsSince1970, isToBeFound, inode?.rawValue,
                try trashedTop(above: identifier, in: parent)?.rawValue,
            ])
    }

    /// No path on Linux has more components.
    private static let mostAncestors = 4096

    /// The item directly in the remote's trash that an item is, or is in; nil for all others.
    private func trashedTop(above identifier: ItemIdentifier, in parent: ItemIdentifier) throws -> ItemIdentifier? {
        if parent == .trashContainer { return identifier }
        // As a rule nothing is in the trash.
        let isTrashInUse = try one(
            "SELECT 1 FROM item WHERE baseParent = ? LIMIT 1", [ItemIdentifier.trashContainer.rawValue], { _ in true })
        guard isTrashInUse == true else { return nil }
        var (top, directory) = (identifier, parent)
        for _ in 0..<Self.mostAncestors where directory != .trashContainer {
            guard directory != .rootContainer, let above = try item(directory)?.base.parent else { return nil }
            (top, directory) = (directory, above)
        }
        return directory == .trashContainer ? top : nil
    }

    /// Queues the deletion of an item that is removed here, if the remote has it.
    func queueDeletion(of item: ItemRecord, at now: FileTimestamp) throws {
        guard let name = item.base.name else { return }
        if item.isToBeOffered {
            guard let parent = try item.base.parent ?? item.parent.flatMap({ try providerName(of: $0) }) else { return }
            try queueDeletion(
                item.placeholder, item.inode.kind, in: parent, named: name, version: item.base.version,
                isToBeFound: true, at: now)
        } else if let identifier = item.identifier, let parent = item.base.parent {
            try queueDeletion(
                identifier, item.inode.kind, in: parent, named: name, version: item.base.version,
                inode: item.inode.number, at: now)
        }
    }

    /// Keeps what was sent of an item and not answered, when the item is removed here or moved: it is deleted on the
    /// remote where it was sent to. Precondition: the item has the place at which it was sent.
    func keepUnanswered(of item: ItemRecord, at now: FileTimestamp) throws {
        guard item.wasSent else { return }
        if item.identifier == nil, !item.isToBeOffered {
            guard let parent = try item.parent.flatMap({ try self.identifier(ofInode: $0) }) else { return }
            try queueDeletion(
                item.placeholder, item.inode.kind, in: parent, named: item.name,
                version: ItemVersion(contentVersion: [], metadataVersion: []), at: now)
        }
        let identifier = item.identifier ?? item.placeholder
        try run(
            """
            UPDATE unanswered SET deletion = (SELECT id FROM deletion WHERE identifier = ?), item = NULL WHERE item = ?
            """, [identifier.rawValue, item.id])
    }

    /// A new item gets another name or place after it was sent without an answer: what was sent is deleted there, and the
    /// item is offered under another template. An answer that still arrives undoes this.
    func leaveUnanswered(_ item: ItemRecord, at now: FileTimestamp) throws {
        guard item.identifier == nil, item.wasSent, !item.isToBeOffered else { return }
        try keepUnanswered(of: item, at: now)
        try run(
            "UPDATE unanswered SET renamed = ? WHERE deletion = (SELECT id FROM deletion WHERE identifier = ?)",
            [item.id, item.placeholder.rawValue])
        try run("UPDATE item SET wasSent = 0, template = ? WHERE id = ?", [ItemRecord.newTemplate(), item.id])
    }

    /// A renamed item is removed here as well: what was sent of it under its first name is deleted wherever the item was.
    func forgetRenaming(of row: Int64) throws {
        try run("UPDATE unanswered SET renamed = NULL WHERE renamed = ?", [row])
    }

    /// Nothing was found of a new item that is to be deleted. What was sent of it may still arrive for a while: it is deleted
    /// then. A directory is not, because another machine may have made it.
    func keepLate(_ deletion: PendingDeletion, at now: FileTimestamp) throws {
        try run("DELETE FROM unanswered WHERE until < ? AND deletion IS NULL", [now.nanosecondsSince1970])
        if deletion.kind != .directory {
            try run(
                """
                UPDATE unanswered SET deletion = NULL, placeholder = ?, kind = ?, parent = ?, name = ?,
                    until = COALESCE(until, ?) WHERE deletion = ?
                """,
                [
                    deletion.identifier.rawValue, deletion.kind.rawValue, deletion.parent.rawValue, deletion.name,
                    now.advanced(by: UnansweredChange.lateness).nanosecondsSince1970, deletion.id,
                ])
        }
    }

    /// Queues the deletion of a new item again when the remote has what was sent of it late.
    ///
    /// - Returns: whether it is that.
    func queueDeletion(ofLate item: FileProviderItem, at now: FileTimestamp) throws -> Bool {
        let late = try all(
            """
            SELECT placeholder, size, modifiedAt, digest FROM unanswered
            WHERE parent = ? AND name = ? AND deletion IS NULL AND kind = ? AND until >= ?
                AND (renamed IS NULL OR renamed IN (SELECT id FROM item))
            """,
            [
                item.parentItemIdentifier.rawValue, item.filename, InodeKind(item.kind).rawValue,
                now.nanosecondsSince1970,
            ],
            { (placeholder: ItemIdentifier(rawValue: $0[0]), change: UnansweredChange($0, from: 1)) })
        guard let placeholder = late.first(where: { $0.change.mayBe(item) })?.placeholder else { return false }
        try queueDeletion(
            placeholder, InodeKind(item.kind), in: item.parentItemIdentifier, named: item.filename,
            version: ItemVersion(contentVersion: [], metadataVersion: []), at: now)
        try run(
            """
            UPDATE unanswered SET deletion = (SELECT id FROM deletion WHERE identifier = ?1) WHERE placeholder = ?1
            """, [placeholder.rawValue])
        return true
    }

    /// Whether anything is to be deleted on the remote, or was sent without an answer.
    func hasDeletionsOrUnanswered() throws -> Bool {
        try one(
            "SELECT EXISTS (SELECT 1 FROM deletion) OR EXISTS (SELECT 1 FROM unanswered)", [], { $0[0] as Bool })
            ?? true
    }

    /// Forgets a deletion, and what was sent of its item.
    ///
    /// - Returns: whether it was there.
    @discardableResult
    func deleteDeletion(_ identifier: ItemIdentifier) throws -> Bool {
        try run(
            "DELETE FROM unanswered WHERE deletion = (SELECT id FROM deletion WHERE identifier = ?)",
            [identifier.rawValue])
        try run("DELETE FROM deletion WHERE identifier = ?", [identifier.rawValue])
        return changesCount > 0
    }

    /// Forgets a deletion as it was read: not one that was queued for the same item since.
    ///
    /// - Returns: whether it was there.
    func deleteDeletion(_ deletion: PendingDeletion) throws -> Bool {
        try run("DELETE FROM unanswered WHERE deletion = ?", [deletion.id])
        try run("DELETE FROM deletion WHERE id = ? AND identifier = ?", [deletion.id, deletion.identifier.rawValue])
        return changesCount > 0
    }

    /// Forgets what was to be deleted in a directory, and in those below it.
    ///
    /// - Parameter areAll: false for those that have to be found first: the remote does not have the directory.
    func deleteDeletions(below directory: ItemIdentifier, areAll: Bool = false) throws {
        var directories = [directory]
        while let next = directories.popLast() {
            let deletions = try all(
                "SELECT identifier FROM deletion WHERE baseParent = ? AND isToBeFound >= ?",
                [next.rawValue, areAll ? 0 : 1],
                { ItemIdentifier(rawValue: $0[0]) })
            for deletion in deletions { try deleteDeletion(deletion) }
            directories += deletions
        }
    }

    func forgetUnanswered(ofItem row: Int64) throws {
        try run("DELETE FROM unanswered WHERE item = ?", [row])
    }

    func isBeingDeleted(_ identifier: ItemIdentifier) throws -> Bool {
        try one("SELECT 1 FROM deletion WHERE identifier = ?", [identifier.rawValue], { _ in true }) == true
    }

    /// The remote has something that is to be deleted at this place, with this metadata.
    ///
    /// - Parameter keepsVersion: whether the deletion stays one of the metadata version that was removed here.
    func updateDeletion(_ item: FileProviderItem, keepsVersion: Bool) throws {
        try run(
            """
            UPDATE deletion SET baseParent = ?, baseName = ?, baseMetadataVersion = COALESCE(?, baseMetadataVersion)
            WHERE identifier = ?
            """,
            [
                item.parentItemIdentifier.rawValue, item.filename,
                keepsVersion ? nil : Data(item.itemVersion.metadataVersion), item.itemIdentifier.rawValue,
            ])
    }

    /// A request for a deletion failed: it is not sent before a moment; nil for at once.
    func postponeDeletion(_ id: Int64, _ error: FileProviderError, until time: FileTimestamp?) throws {
        try run(
            "UPDATE deletion SET attempts = attempts + 1, nextTry = ?, code = ?, message = ? WHERE id = ?",
            [time?.nanosecondsSince1970, error.code.rawValue, error.message, id])
    }

    /// A deletion that had to wait does not wait longer than until a moment.
    ///
    /// - Returns: whether it had to wait longer.
    func hastenDeletion(_ id: Int64, until time: FileTimestamp) throws -> Bool {
        try run("UPDATE deletion SET nextTry = ?1 WHERE id = ?2 AND nextTry > ?1", [time.nanosecondsSince1970, id])
        return changesCount > 0
    }

    /// Gives up the identifier of a deletion: a token stands in for it until the item is found by its place.
    func giveUpIdentifier(ofDeletion id: Int64, token: ItemIdentifier, in parent: ItemIdentifier) throws {
        try run(
            "UPDATE deletion SET identifier = ?, baseParent = ?, isToBeFound = 1 WHERE id = ?",
            [token.rawValue, parent.rawValue, id])
    }

    /// An item that is to be deleted was found on the remote: it can be deleted now.
    ///
    /// - Parameter placeholder: what stood in for its identifier.
    func foundDeleted(_ placeholder: ItemIdentifier, as item: FileProviderItem) throws {
        try run(
            """
            UPDATE OR REPLACE deletion SET identifier = ?, baseParent = ?, baseName = ?, baseContentVersion = ?,
                baseMetadataVersion = ?, isToBeFound = 0, attempts = 0, nextTry = NULL WHERE identifier = ?
            """,
            [
                item.itemIdentifier.rawValue, item.parentItemIdentifier.rawValue, item.filename,
                Data(item.itemVersion.contentVersion), Data(item.itemVersion.metadataVersion), placeholder.rawValue,
            ])
        try noteIdentifier(item.itemIdentifier, replacing: placeholder)
    }

    /// A directory has an identifier: deletions and moved items name it by that, and not by what stood in for it.
    func noteIdentifier(_ identifier: ItemIdentifier, replacing placeholder: ItemIdentifier) throws {
        try run(
            "UPDATE deletion SET baseParent = ? WHERE baseParent = ?", [identifier.rawValue, placeholder.rawValue])
        try run(
            """
            UPDATE item SET baseParent = ?
            WHERE baseParent = ? AND changedFields & \(field: .parentItemIdentifier) <> 0 AND baseParent IS NOT NULL
            """, [identifier.rawValue, placeholder.rawValue])
    }
}
