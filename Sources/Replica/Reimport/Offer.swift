import FileProvider
import GRDB

package struct ReadyOffer: Hashable, Sendable {
    package var row: Int64
    package var parent: ItemIdentifier
    package var name: String
    package var placeholder: ItemIdentifier
}

/// Whether an item is to be offered.
package enum Offering: Hashable, Sendable {
    case none
    /// Others come before it.
    case waits
    case ready(ReadyOffer, InodeNumber)
}

extension Database {
    /// Items that wait to be offered and whose directory the provider knows, after a row.
    func readyOffers(after row: Int64, at now: FileTimestamp, limit: Int) throws -> [ReadyOffer] {
        let rows = try all(
            """
            SELECT item.id FROM item INDEXED BY itemToOffer JOIN item AS directory ON directory.inode = item.parent
            WHERE item.reimport > 0 AND item.id > ? AND item.isExcluded = \(exclusion: .none)
                AND (directory.identifier IS NOT NULL OR directory.trashRole = \(trash: .files))
                AND (item.nextTry IS NULL OR item.nextTry <= ?)
            ORDER BY item.id LIMIT ?
            """, [row, now.nanosecondsSince1970, limit], { $0[0] as Int64 })
        return try rows.compactMap { try readyOffer(of: $0) }
    }

    /// When the first item that could not be offered is tried again.
    func nextOffer(after now: FileTimestamp) throws -> FileTimestamp? {
        try one(
            "SELECT MIN(nextTry) FROM item WHERE reimport > 0 AND nextTry > ?", [now.nanosecondsSince1970],
            { ($0[0] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:)) }) ?? nil
    }

    func readyOffer(of row: Int64) throws -> ReadyOffer? {
        guard let item = try item(id: row), item.isToBeOffered, !item.isExcluded, item.parent != nil,
            let place = try placeToOffer(item)
        else { return nil }
        // What is new here is not that which the remote still has under its name, and which goes from there first.
        if item.base.name == nil, try isBeingLeft(place.name, in: place.parent, by: row) { return nil }
        return ReadyOffer(row: row, parent: place.parent, name: place.name, placeholder: item.placeholder)
    }

    /// Whether something that the remote has under a name is to be removed or moved away there.
    private func isBeingLeft(_ name: String, in directory: ItemIdentifier, by row: Int64) throws -> Bool {
        try one(
            """
            SELECT EXISTS (SELECT 1 FROM deletion WHERE baseParent = ?1 AND baseName = ?2)
                OR EXISTS (SELECT 1 FROM item INDEXED BY movedItem
                    WHERE baseParent = ?1 AND changedFields & \(field: .parentItemIdentifier) <> 0
                        AND baseParent IS NOT NULL AND baseName = ?2
                        AND id <> ?3 AND isExcluded = \(exclusion: .none))
            """, [directory.rawValue, name, row], { $0[0] as Bool }) ?? false
    }

    /// Where an item is offered first: where the remote had it, so that it is recognized, though it was moved since.
    ///
    /// - Returns: nil while that directory, or the one that it is in, waits itself.
    func placeToOffer(_ item: ItemRecord) throws -> (parent: ItemIdentifier, name: String, isAtOrigin: Bool)? {
        guard let directory = try item.parent.flatMap({ try self.identifier(ofInode: $0) }) else { return nil }
        let moves = item.changedFields.intersection([.filename, .parentItemIdentifier])
        let here = (parent: directory, name: item.nameToOffer(moves.contains(.filename)), isAtOrigin: false)
        guard !moves.isEmpty, let name = item.base.name else { return here }
        guard moves.contains(.parentItemIdentifier) else { return (directory, name, true) }
        guard let origin = item.base.parent else { return here }
        guard origin.isPlaceholder else { return (origin, name, true) }
        if try isBeingDeleted(origin) { return nil }
        guard let known = try known(origin), known.isToBeOffered else { return here }
        return nil
    }
}

extension ItemRecord {
    /// The name under which it is offered in its own directory: the remote's, but for one that was given here.
    fileprivate func nameToOffer(_ isRenamed: Bool) -> String {
        if isRenamed, !isHidden, trash == nil { return name }
        return base.name ?? ownName
    }
}

extension Replica {
    /// An item as it is to be offered, with everything that is known of it; nil when it has to wait, or need not be.
    ///
    /// - Parameter isAtOrigin: false to offer it where it is now, the remote not having it where it was.
    package func prepareOffer(_ row: Int64, atOrigin isAtOrigin: Bool = true) throws -> SentChange? {
        let (preparedAt, ignored) = (FileTimestamp.now, ignoredNames)
        return try database.read { db in
            guard let item = try db.item(id: row), item.isToBeOffered, !item.isExcluded,
                var place = try db.placeToOffer(item)
            else { return nil }
            if !isAtOrigin, place.isAtOrigin {
                guard let parent = try item.parent.flatMap({ try db.identifier(ofInode: $0) }) else { return nil }
                place = (parent, item.nameForUser, false)
            }
            guard var described = try db.describe(item) else { return nil }
            described.itemIdentifier = item.placeholder
            described.parentItemIdentifier = place.parent
            described.filename = place.name
            described.contentPolicy = .inherited
            // An empty file and a link have all they need in their rows, also where a directory was evicted: these rows do not bring
            // back what was deleted on the remote since.
            let isDataless =
                try item.inode.kind != .symbolicLink && item.inode.content != .materialized || !db.isRepresented(item)
            // An empty file of the remote's has no content file.
            let hasContent = try item.inode.kind == .file && !isDataless && db.hasContentFile(item.inode.number)
            // The version is that of the bytes that come with it, and not known where it is still to be compared.
            if item.changedFields.contains(.contents) || item.inode.contentStamp != nil
                || item.base.version.isContentDoubted
            {
                described.itemVersion.contentVersion = []
            } else if item.inode.kind == .file {
                described.itemVersion.contentVersion = item.inode.contentVersion
            }
            return SentChange(
                row: row, inode: item.inode.number, identifier: nil, item: described, base: item.base.version,
                fields: described.knownFields(withContents: hasContent),
                contentStamp: nil, isReplay: item.wasSent, preparedAt: preparedAt,
                offer: Offer(
                    round: item.reimport, isDataless: isDataless, wasKnown: item.base.name != nil,
                    isAtOrigin: place.isAtOrigin, isIgnored: try db.isIgnored(item, by: ignored)))
        }
    }
}

extension Database {
    /// Whether an item of an import has a name that is never sent. A directory with items that the remote had is sent with them.
    fileprivate func isIgnored(_ item: ItemRecord, by names: IgnoredNames) throws -> Bool {
        guard item.base.name == nil, !item.wasSent, item.trash == nil, !item.isHidden, !names.isSent(item.name) else {
            return false
        }
        return try !holdsWhatIsKnown(item.inode.number, countsImported: false)
    }
}

extension FileProviderItem {
    /// The fields of which an item has a value.
    fileprivate func knownFields(withContents: Bool) -> ItemFields {
        var fields: ItemFields = [.filename, .parentItemIdentifier]
        if withContents { fields.insert(.contents) }
        if lastUsedDate != nil { fields.insert(.lastUsedDate) }
        if tagData != nil { fields.insert(.tagData) }
        if favoriteRank != nil { fields.insert(.favoriteRank) }
        if creationDate != nil { fields.insert(.creationDate) }
        if contentModificationDate != nil { fields.insert(.contentModificationDate) }
        if extendedAttributes?.isEmpty == false { fields.insert(.extendedAttributes) }
        if permissions != nil { fields.insert(.permissions) }
        if owner != nil || group != nil { fields.insert(.ownership) }
        return fields
    }
}
