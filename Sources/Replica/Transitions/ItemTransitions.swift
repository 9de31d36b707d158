import FileProvider
import Foundation
import GRDB

/// Items between the local side and the remote: acknowledged, updated, given up, new again.
extension Database {
    /// The remote has an item: its identifier and its base are the remote's from now on. Nothing waits for an answer, and
    /// a reimport has found it. Precondition: no other item has the identifier.
    ///
    /// The place is not compared: the caller does that (``noteWhereItIs(_:at:)``).
    ///
    /// - Parameters:
    ///   - base: the content that the local content is based on, where that is not the remote's present one.
    ///   - capabilities: nil leaves them.
    ///   - changed: what is still pending.
    ///   - held: what the remote cannot hold.
    func acknowledge(
        _ row: Int64, as item: FileProviderItem, base: ItemBase? = nil, capabilities: ItemCapabilities? = nil,
        changed: ItemFields, held: ItemFields
    ) throws {
        try run(
            """
            UPDATE item SET identifier = ?, baseParent = ?, baseName = ?, baseContentVersion = ?,
                baseMetadataVersion = ?, baseSize = ?, baseModifiedAt = ?, capabilities = COALESCE(?, capabilities),
                changedFields = ?, heldFields = ?, wasSent = 0, attempts = 0, nextTry = NULL, reimport = -abs(reimport)
            WHERE id = ?
            """,
            [
                item.itemIdentifier.rawValue, item.parentItemIdentifier.rawValue, item.filename,
                Data(base?.version.contentVersion ?? item.itemVersion.contentVersion),
                Data(item.itemVersion.metadataVersion), base?.size ?? item.documentSize ?? 0,
                (base == nil ? item.contentModificationDate : base?.modifiedAt)?.nanosecondsSince1970,
                capabilities.map { Int64($0.rawValue) }, Int64(changed.rawValue), Int64(held.rawValue), row,
            ])
    }

    /// The remote has an item at this place. The place in the mount stays.
    func setBasePlace(of row: Int64, to item: FileProviderItem) throws {
        try run(
            "UPDATE item SET baseParent = ?1, baseName = ?2 WHERE id = ?3 AND (baseParent, baseName) IS NOT (?1, ?2)",
            [item.parentItemIdentifier.rawValue, item.filename, row])
    }

    /// Takes in what the remote says of an item beside its place. Content that was changed here stays based on the
    /// version that it was written over, with that version's size and date.
    func setBase(of row: Int64, to item: FileProviderItem) throws {
        try run(
            ItemStatement.setBase,
            [
                Int64(item.capabilities.rawValue), item.contentPolicy.rawValue,
                Data(item.itemVersion.contentVersion), Data(item.itemVersion.metadataVersion), item.documentSize ?? 0,
                item.contentModificationDate?.nanosecondsSince1970, row,
            ])
    }

    /// Changes of an item are based on this metadata version.
    func setBaseMetadataVersion(of row: Int64, to version: [UInt8]) throws {
        try run("UPDATE item SET baseMetadataVersion = ? WHERE id = ?", [Data(version), row])
    }

    /// The remote has fields as they are here, which it could not hold before: they are not kept here alone any more.
    func endHold(of row: Int64, _ fields: ItemFields) throws {
        try run("UPDATE item SET heldFields = heldFields & ~? WHERE id = ?", [Int64(fields.rawValue), row])
    }

    /// The directory that holds an item on the remote has this identifier, or none that is known.
    func setBaseParent(of row: Int64, to directory: ItemIdentifier?) throws {
        try run("UPDATE item SET baseParent = ? WHERE id = ?", [directory?.rawValue, row])
    }

    /// An item of the remote's takes the inode of a local file that was renamed over it. Its fields become pending, based
    /// on the version that was replaced. The caller deletes the local item's row and unlinks the old inode.
    func saveOver(
        _ target: ItemRecord, with item: ItemRecord, fields: ItemFields, origin: [UInt8], at now: FileTimestamp
    ) throws {
        try run(
            """
            UPDATE item SET inode = ?, baseContentVersion = ?, pendingSince = COALESCE(pendingSince, ?), attempts = 0,
                nextTry = NULL, changedFields = changedFields | ? WHERE id = ?
            """,
            [
                item.inode.number.rawValue, Data(origin), now.nanosecondsSince1970, Int64(fields.rawValue), target.id,
            ])
    }

    // MARK: - Conflicts

    /// An item shows the remote's content in an inode of its own; of what was changed here its place, its rank and its tags stay pending.
    /// The local content stays with the old inode, for which the caller inserts a conflict copy.
    func giveUpContent(of row: Int64, for remote: FileProviderItem, in number: InodeNumber) throws {
        try run(
            """
            UPDATE item SET inode = ?, changedFields = changedFields & ?, baseContentVersion = ?, baseSize = ?,
                wasSent = 0, attempts = 0, nextTry = NULL WHERE id = ?
            """,
            [
                number.rawValue,
                Int64(ItemFields([.filename, .parentItemIdentifier, .favoriteRank, .tagData]).rawValue),
                Data(remote.itemVersion.contentVersion), remote.documentSize ?? 0, row,
            ])
    }

    /// An item becomes a conflict copy under another name. One that the remote does not have is offered under another
    /// template.
    ///
    /// - Parameter attempts: how many other names were tried before.
    func becomeConflictCopy(_ item: ItemRecord, named name: String, of original: String) throws {
        try run(
            """
            UPDATE item SET name = ?, collisions = collisions + (conflictOf IS NOT NULL), conflictOf = ?, wasSent = 0,
                attempts = 0, nextTry = NULL, template = ?
            WHERE id = ?
            """,
            [
                name, original, item.identifier == nil ? ItemRecord.newTemplate() : item.template, item.id,
            ])
    }

    // MARK: - New again

    /// Makes an item one that the provider has never heard of. Precondition: its content is materialized, or it is a
    /// directory; it is not displaced.
    ///
    /// Everything the remote said of it is forgotten: identifier, base, capabilities and policy. It is offered with all
    /// fields of a new item, under another template, and belongs to no reimport. What was sent of it without an answer
    /// stays known: it may still arrive under the item's name, and is recognized there. What was to be found and deleted
    /// in a directory is not on the remote either.
    ///
    /// - Parameter exclusion: whether it stays on this machine instead.
    func becomeNew(_ item: ItemRecord, exclusion: Exclusion = .none, at now: FileTimestamp) throws {
        var capabilities = ItemCapabilities.ordinary
        if try exclusion != .unwanted && hasTrash() { capabilities.insert(.allowsTrashing) }
        try run(
            """
            UPDATE item SET identifier = NULL, reimport = -abs(reimport), baseParent = NULL, baseName = NULL,
                baseContentVersion = x'', baseMetadataVersion = x'', baseSize = 0, baseModifiedAt = NULL,
                capabilities = ?1, policy = \(policy: .inherited), template = ?2, wasSent = 0, changedFields = ?3,
                isExcluded = ?4, attempts = 0, nextTry = NULL,
                pendingSince = CASE WHEN isExcluded = \(exclusion: .none) THEN COALESCE(pendingSince, ?5) ELSE ?5 END
            WHERE id = ?6
            """,
            [
                Int64(capabilities.rawValue), ItemRecord.newTemplate(),
                Int64(ItemFields.ofNewItem(item.inode.kind).rawValue), exclusion.rawValue, now.nanosecondsSince1970,
                item.id,
            ])
        if item.inode.kind == .directory, item.isToBeOffered { try deleteDeletions(below: item.placeholder) }
    }

    /// Gives up an item's identifier: it waits to be offered in a reimport, under another template. What the remote said
    /// of it stays known, so that it is recognized.
    func giveUpIdentifier(of row: Int64, in round: Int64) throws {
        try run(
            """
            UPDATE item SET identifier = NULL, reimport = ?, template = ?, attempts = 0, nextTry = NULL,
                baseParent = CASE WHEN changedFields & \(field: .parentItemIdentifier) THEN baseParent END WHERE id = ?
            """, [round, ItemRecord.newTemplate(), row])
    }

    // MARK: - Excluded

    /// Keeps an item on this machine; it is no longer pending. Precondition: the remote does not have it.
    func exclude(_ row: Int64, as exclusion: Exclusion) throws {
        try run("UPDATE item SET isExcluded = ?, reimport = -abs(reimport) WHERE id = ?", [exclusion.rawValue, row])
    }

    /// Keeps on this machine what the remote has never heard of below a directory.
    func excludeWhatIsNew(below directory: InodeNumber, as exclusion: Exclusion) throws {
        try run(
            """
            \(ItemStatement.directoriesAtOrBelow)
            UPDATE item SET isExcluded = ?2
            WHERE parent IN (SELECT inode FROM below) AND identifier IS NULL AND wasSent = 0 AND reimport <= 0
                AND isExcluded = \(exclusion: .none)
            """, [directory.rawValue, exclusion.rawValue])
    }

    /// Sends again what was excluded because of its name.
    func includeWhatWasExcludedByName(at now: FileTimestamp) throws {
        try run(
            """
            UPDATE item SET isExcluded = \(exclusion: .none), attempts = 0, nextTry = NULL,
                pendingSince = COALESCE(pendingSince, ?)
            WHERE isExcluded = \(exclusion: .name)
            """, [now.nanosecondsSince1970])
    }

    /// Whether something below a directory is on the remote, or may be.
    ///
    /// - Parameter countsImported: whether items of an import that wait to be offered, and may be there, count.
    func holdsWhatIsKnown(_ directory: InodeNumber, countsImported: Bool = true) throws -> Bool {
        try one(
            """
            \(ItemStatement.directoriesAtOrBelow)
            SELECT EXISTS (SELECT 1 FROM item WHERE parent IN (SELECT inode FROM below)
                AND (identifier IS NOT NULL OR wasSent <> 0 OR reimport > 0 AND (?2 OR baseName IS NOT NULL)))
            """, [directory.rawValue, countsImported], { $0[0] as Bool }) ?? false
    }
}

private enum ItemStatement {
    /// Runs for each listed item.
    static let setBase = """
        UPDATE item SET capabilities = ?1, policy = ?2,
            baseContentVersion = CASE WHEN changedFields & \(field: .contents) THEN baseContentVersion ELSE ?3 END,
            baseMetadataVersion = ?4,
            baseSize = CASE WHEN changedFields & \(field: .contents) THEN baseSize ELSE ?5 END,
            baseModifiedAt = CASE WHEN changedFields & \(field: .contents) THEN baseModifiedAt ELSE ?6 END
        WHERE id = ?7 AND (capabilities, policy, baseContentVersion, baseMetadataVersion, baseSize, baseModifiedAt)
            IS NOT (?1, ?2, ?3, ?4, ?5, ?6)
        """

    /// Makes `below` the inodes of a directory, the first argument, and of all directories in it.
    static let directoriesAtOrBelow = """
        WITH RECURSIVE below (inode) AS (
            SELECT ?1
            UNION ALL
            SELECT item.inode FROM item JOIN below ON item.parent = below.inode
                JOIN inode ON inode.number = item.inode WHERE inode.kind = \(kind: .directory)
        )
        """
}
