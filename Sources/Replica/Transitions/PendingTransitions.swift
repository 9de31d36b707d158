import FileProvider
import Foundation
import GRDB

/// The pending fields of items, and when they are sent.
extension Database {
    /// Makes fields of an inode pending, in all of its items, and lets them be sent at once.
    func mark(_ fields: ItemFields, of number: InodeNumber, at time: FileTimestamp) throws {
        if fields.contains(.contents) { try run(PendingStatement.noteOrigin, [number.rawValue]) }
        try run(
            PendingStatement.mark, [Int64(fields.rawValue), time.nanosecondsSince1970, number.rawValue])
    }

    /// Sets which fields of an item are pending. None means that it was never pending; else it is sent at once.
    func setChangedFields(of row: Int64, to fields: ItemFields, at now: FileTimestamp) throws {
        try run(
            """
            UPDATE item SET changedFields = ?1, attempts = 0, nextTry = NULL,
                pendingSince = CASE WHEN ?1 = 0 THEN NULL ELSE COALESCE(pendingSince, ?2) END WHERE id = ?3
            """, [Int64(fields.rawValue), now.nanosecondsSince1970, row])
    }

    /// An item has nothing that would outlive its removal: the remote's news of it is taken as it is.
    func forgetChanges(of row: Int64) throws {
        try run("UPDATE item SET changedFields = 0 WHERE id = ?", [row])
    }

    /// The local content of an inode is lost: what the remote has of its items is theirs again. A new item stays pending.
    func forgetChangedContent(of number: InodeNumber) throws {
        try run(
            """
            UPDATE item SET changedFields = changedFields & ~\(field: .contents) & ~\(field: .contentModificationDate)
            WHERE inode = ? AND identifier IS NOT NULL
            """, [number.rawValue])
        guard let item = try item(ofInode: number), item.isKnownToRemote else { return }
        var inode = item.inode
        inode.size = item.base.size
        inode.modifiedAt = item.base.modifiedAt ?? inode.modifiedAt
        try writeAttributes(of: inode)
        try showContentVersion(item.base.version.contentVersion, of: number, isFetchedAgain: false)
    }

    /// The remote has given an item another name than the one it was sent with: that is not undone.
    func forgetChangedName(of row: Int64) throws {
        try run("UPDATE item SET changedFields = changedFields & ~\(field: .filename) WHERE id = ?", [row])
    }

    /// The remote has an item in another place than the one it was sent with: that is not undone.
    func forgetChangedPlace(of row: Int64) throws {
        try run(
            """
            UPDATE item SET changedFields = changedFields & ~\(field: .filename) & ~\(field: .parentItemIdentifier)
                WHERE id = ?
            """, [row])
    }

    /// After an answer: what is still pending of the fields that the remote stored was changed since.
    func restartPending(_ row: Int64, stored fields: ItemFields, at time: FileTimestamp) throws {
        try run(
            """
            UPDATE item SET pendingSince = CASE WHEN changedFields = 0 THEN NULL WHEN changedFields & ? THEN ?
                ELSE pendingSince END WHERE id = ?
            """, [Int64(fields.rawValue), time.nanosecondsSince1970, row])
    }

    /// What waits and has a later time than this one, because the clock was set back since, counts as changed at this time.
    func correctPendingTimes(after time: FileTimestamp) throws {
        let nanoseconds = time.nanosecondsSince1970
        try run(
            """
            UPDATE item SET pendingSince = ?1
            WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none) AND pendingSince > ?1
            """, [nanoseconds])
        try run("UPDATE deletion SET pendingSince = ?1 WHERE pendingSince > ?1", [nanoseconds])
        try run("UPDATE reimport SET requestedAt = ?1 WHERE requestedAt > ?1", [nanoseconds])
    }

    /// Since when something of an item is pending; nil if nothing is.
    func pendingSince(of row: Int64) throws -> FileTimestamp? {
        try one("SELECT pendingSince FROM item WHERE id = ?", [row], { $0[0] as Int64? })?
            .map(FileTimestamp.init(nanosecondsSince1970:))
    }

    func setFavoriteRank(_ rank: Int64?, of row: Int64) throws {
        try run("UPDATE item SET favoriteRank = ? WHERE id = ?", [rank, row])
    }

    func setTagData(_ data: [UInt8]?, of row: Int64) throws {
        try run("UPDATE item SET tagData = ? WHERE id = ?", [data.map { Data($0) }, row])
    }

    /// Sets the user's policy for all names of an inode; nil lets the provider's count.
    ///
    /// - Returns: whether it has any.
    func setUserPolicy(_ policy: ContentPolicy?, of number: InodeNumber) throws -> Bool {
        try run("UPDATE item SET userPolicy = ? WHERE inode = ?", [policy?.rawValue, number.rawValue])
        return changesCount > 0
    }

    /// Gives an item the policy, rank and tags that another was given here, as far as it has none.
    func transferMarks(of row: Int64, to successor: Int64) throws {
        try run(
            """
            UPDATE item SET userPolicy = COALESCE(item.userPolicy, old.userPolicy),
                favoriteRank = COALESCE(item.favoriteRank, old.favoriteRank),
                tagData = COALESCE(item.tagData, old.tagData),
                heldFields = item.heldFields | (old.heldFields & \(field: [.favoriteRank, .tagData]))
            FROM item AS old WHERE old.id = ? AND item.id = ?
                AND (old.userPolicy IS NOT NULL OR old.favoriteRank IS NOT NULL OR old.tagData IS NOT NULL)
            """, [row, successor])
    }

    /// Pins a new file if a pinned one had its name and was renamed, and the remote does not know of that yet: an editor saves,
    /// and keeps the old file as a backup.
    func keepPinned(_ row: Int64, named name: String, in parent: InodeNumber) throws {
        let isAnyPinned = try one(PendingStatement.anyPinned, [], { _ in true })
        guard isAnyPinned == true else { return }
        try run(
            """
            UPDATE item SET userPolicy = old.userPolicy FROM item AS old
            WHERE item.id = ? AND old.baseParent = (SELECT identifier FROM item WHERE inode = ?) AND old.baseName = ?
                AND old.userPolicy = \(policy: .keepDownloaded)
                AND old.changedFields & \(field: [.filename, .parentItemIdentifier]) <> 0
            """, [row, parent.rawValue, name])
    }

    // MARK: - When it is sent

    /// The provider is asked to store an item: until the answer it may have it.
    ///
    /// - Returns: false when there is no such row.
    func noteSent(_ row: Int64) throws -> Bool {
        try run("UPDATE item SET wasSent = 1 WHERE id = ?", [row])
        return changesCount > 0
    }

    /// The request for an item was answered, or has certainly not reached the remote.
    func noteAnswered(_ row: Int64) throws {
        try run("UPDATE item SET wasSent = 0 WHERE id = ?", [row])
        try forgetUnanswered(ofItem: row)
    }

    /// A request for an item failed: it is not sent before a moment; nil for at once.
    func postponeItem(_ row: Int64, until time: FileTimestamp?) throws {
        try run(
            "UPDATE item SET attempts = attempts + 1, nextTry = ? WHERE id = ?", [time?.nanosecondsSince1970, row])
    }

    /// An item is not sent before a moment, though nothing failed.
    func delayItem(_ row: Int64, until time: FileTimestamp) throws {
        try run("UPDATE item SET nextTry = ? WHERE id = ?", [time.nanosecondsSince1970, row])
    }

    /// An item is sent at once, as if it had never failed.
    func retryItem(_ row: Int64) throws {
        try run("UPDATE item SET attempts = 0, nextTry = NULL WHERE id = ?", [row])
    }

    /// As ``retryItem(_:)`` for all items of an inode.
    func retryItems(of number: InodeNumber) throws {
        try run("UPDATE item SET nextTry = NULL, attempts = 0 WHERE inode = ?", [number.rawValue])
    }

    /// As ``retryItem(_:)`` for the changes that have failed of what is in a directory, here or on the remote, and for the deletions there.
    ///
    /// - Returns: whether there are any.
    func retryFailed(in directory: ItemRecord) throws -> Bool {
        let identifier = directory.identifier?.rawValue
        let most = PendingStatement.fewFailures
        let failures = try one(
            "SELECT COUNT(*) FROM (SELECT 1 FROM failure LIMIT ?)", [most + 1], { $0[0] as Int })
        var items = 0
        if let failures, failures > 0 {
            try run(
                failures > most ? PendingStatement.retryManyFailed : PendingStatement.retryFewFailed,
                [directory.inode.number.rawValue, identifier])
            items = changesCount
        }
        try run("UPDATE deletion SET nextTry = NULL, attempts = 0 WHERE attempts > 0 AND baseParent = ?", [identifier])
        return items + changesCount > 0
    }

    /// As ``retryItem(_:)`` for all items and deletions.
    func retryEverything() throws {
        try run("UPDATE item SET nextTry = NULL, attempts = 0 WHERE nextTry IS NOT NULL OR attempts > 0", [])
        try run("UPDATE deletion SET nextTry = NULL, attempts = 0", [])
    }

    /// Has the changes of items that wait because of an error with this code tried again at a moment, if not before.
    ///
    /// - Returns: whether there are any.
    func hastenAll(after code: String, until time: FileTimestamp) throws -> Bool {
        // Of many deletions in a row each asks for it: the first of the items show whether it was done a moment ago.
        let latest = try one(
            """
            SELECT MAX(nextTry) FROM
                (SELECT nextTry FROM failure JOIN item ON item.inode = failure.inode WHERE code = ? LIMIT 64)
            """, [code], { $0[0] as Int64? })
        guard let next = latest.flatMap(\.self), next > time.nanosecondsSince1970 else { return false }
        try run(
            """
            UPDATE item SET nextTry = ?1
            WHERE nextTry > ?1 AND attempts > 0 AND inode IN (SELECT inode FROM failure WHERE code = ?2)
            """, [time.nanosecondsSince1970, code])
        return changesCount > 0
    }

    /// As ``retryItem(_:)`` for all items and deletions that wait because of an error with this code.
    func retryAll(after code: String) throws {
        try run(
            """
            UPDATE item SET nextTry = NULL, attempts = 0
            WHERE (nextTry IS NOT NULL OR attempts > 0) AND inode IN (SELECT inode FROM failure WHERE code = ?)
            """, [code])
        try run("UPDATE deletion SET nextTry = NULL, attempts = 0 WHERE code = ?", [code])
    }
}

/// Statements that run for each write and each creation, or read much.
enum PendingStatement {
    static let mark = """
        UPDATE item SET changedFields = changedFields | ?, pendingSince = COALESCE(pendingSince, ?), attempts = 0,
            nextTry = NULL WHERE inode = ?
        """

    /// How many failures are looked at one by one.
    static let fewFailures = 500

    /// By the failures: the directory may have a million items.
    static let retryFewFailed = """
        UPDATE item SET nextTry = NULL, attempts = 0
        WHERE inode IN (SELECT inode FROM failure) AND attempts > 0 AND changedFields <> 0
            AND (+parent = ? OR +baseParent = ?)
        """

    /// By the directory: where many directories change, the failures are not all looked at for each.
    static let retryManyFailed = """
        UPDATE item SET nextTry = NULL, attempts = 0
        WHERE attempts > 0 AND changedFields <> 0 AND (parent = ? OR baseParent = ?)
        """

    static let anyPinned = """
        SELECT 1 FROM item INDEXED BY keptItem
        WHERE COALESCE(userPolicy, policy) = \(policy: .keepDownloaded) LIMIT 1
        """

    /// Content that is about to be changed is based on the version that is here. That is not the remote's last one, where
    /// news arrived while the file was open. Of several names each has a version of its own, and none of them is older
    /// than the local content.
    static let noteOrigin = """
        UPDATE item SET baseContentVersion = (SELECT contentVersion FROM inode WHERE number = ?1)
        WHERE inode = ?1 AND identifier IS NOT NULL AND changedFields & \(field: .contents) = 0
            AND (SELECT linkCount FROM inode WHERE number = ?1) = 1
        """
}
