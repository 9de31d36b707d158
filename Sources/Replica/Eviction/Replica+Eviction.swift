import FileProvider
import GRDB
import SystemPackage

/// Why an item stays materialized. Each has its own errno and its own words.
package enum EvictionRefusal: Error, Hashable, Sendable {
    /// A local change is not on the remote yet.
    case unsyncedEdits
    /// It is kept downloaded, or lies in the trash.
    case nonEvictable
    /// It is new, and the remote does not have it yet.
    case existsOnlyHere
    /// It stays on this machine: the remote is never asked to keep it.
    case isExcluded
    case isOpen
    /// It is being downloaded, because that was asked for.
    case isDownloading
    case isBeingListed
    /// It was read or listed again while what it lies in was evicted.
    case isInUse
    /// Several names share its content.
    case isHardLinked
    /// Much has vanished on the remote, and its removal is held: what is here may be the last copy.
    case removalsAreHeld
    /// Something below it refused.
    case nonEvictableChildren
    /// It is not known here.
    case noSuchItem
    /// Its content file cannot be removed.
    case failed(Errno)
}

/// Making items dataless: one item, one transaction.
extension Replica {
    /// Makes a file dataless. One that is dataless already, or has nothing to drop, is a success.
    ///
    /// - Returns: how many bytes were given back, and what is left to tell the kernel.
    /// - Throws: ``EvictionRefusal``.
    package func evictFile(_ number: InodeNumber, open: any OpenInodes) async throws -> (Int64, ReplicaEffects) {
        if mayHaveDoubtfulContent {
            // What was written to it without a row is set aside.
            _ = try await BlockingWork.run { try self.verifyContent(of: number, mayBeInUse: true, open: open) }
        }
        let withdrawals = ContentWithdrawals(from: contents, of: database)
        return try await withdrawals.run {
            try await ClaimingOpenInodes.run(open) { [database] open in
                try await database.write(undoing: TransactionUndo { withdrawals.begin() }) { db in
                    withdrawals.begin()
                    return try Self.evictFile(number, open: open, in: db, withdrawals)
                }
            }
        }
    }

    private static func evictFile(
        _ number: InodeNumber, open: any OpenInodes, in db: Database, _ withdrawals: ContentWithdrawals
    ) throws -> (Int64, ReplicaEffects) {
        guard let item = try db.item(ofInode: number) else { throw EvictionRefusal.noSuchItem }
        var effects = ReplicaEffects()
        if let refusal = try db.evictionRefusal(of: item, isOpen: open.isOpen(number)) { throw refusal }
        guard item.inode.kind == .file, item.inode.content != .dataless, try db.hasContentFile(number) else {
            try db.setFetchedAgain(false, number)
            return (0, effects)
        }
        try db.dropContent(of: number)
        do {
            try withdrawals.withdraw(number, generation: item.inode.contentGeneration)
        } catch {
            throw EvictionRefusal.failed(error)
        }
        effects.invalidations.append(.contents(number))
        return (item.inode.localBytes, effects)
    }

    /// Drops a directory's listing once everything below it is dataless. Its items are remembered, so that they are the
    /// same inodes when it is listed again.
    ///
    /// - Throws: ``EvictionRefusal``; ``ReplicaDatabase/obstaclesToEvictingListing(of:limit:)`` says what refused.
    package func evictListing(of number: InodeNumber) async throws -> ReplicaEffects {
        try await database.write { db in
            guard let item = try db.item(ofInode: number), item.inode.kind == .directory else {
                throw EvictionRefusal.noSuchItem
            }
            var effects = ReplicaEffects()
            // A handle of a directory has nothing that the next listing does not give back.
            let refusal = try db.evictionRefusal(of: item, isOpen: false)
            if refusal == .nonEvictable { throw EvictionRefusal.nonEvictable }
            guard item.inode.content == .materialized else { return effects }
            if let refusal { throw refusal }
            guard try db.obstacles(toEvictingListingOf: number, limit: 1).isEmpty else {
                throw EvictionRefusal.nonEvictableChildren
            }
            // The next listing reads all of it, so nothing is left to be compared.
            try db.dropListing(of: number)
            effects.invalidations += try db.all(
                "SELECT name FROM item WHERE parent = ?", [number.rawValue],
                { .entry(parent: number, name: $0[0] as String) })
            effects.invalidations.append(.contents(number))
            return try db.recordInvalidations(of: effects)
        }
    }
}

extension Replica {
    /// Why an item cannot be evicted now; nil when it can, as far as the database knows. What has nothing to drop may have a
    /// reason, too.
    package func evictionRefusal(of item: ItemRecord, open: any OpenInodes) throws -> EvictionRefusal? {
        let isOpen = item.inode.kind == .file && open.isOpen(item.inode.number)
        return try database.read { db in try db.evictionRefusal(of: item, isOpen: isOpen) }
    }
}

extension ReplicaDatabase {
    /// Those of a directory's items, after a row, of which something may have to be evicted: directories, and files of
    /// which something is here. The trash is left out.
    package func itemsToEvict(in directory: InodeNumber, after row: Int64, limit: Int) throws -> [ItemRecord] {
        try read { db in
            let rows = try db.all(
                """
                SELECT item.id FROM item INDEXED BY itemInParent JOIN inode ON inode.number = item.inode
                WHERE item.parent = ? AND item.id > ? AND item.trashRole = \(trash: .none)
                    AND item.isExcluded = \(exclusion: .none)
                    AND (inode.kind = \(kind: .directory) OR inode.kind = \(kind: .file)
                        AND (inode.content = \(content: .partial) OR inode.localBytes > 0))
                ORDER BY item.id LIMIT ?
                """, [directory.rawValue, row, limit], { $0[0] as Int64 })
            return try rows.compactMap { try db.item(id: $0) }
        }
    }

    /// Whether a directory holds what never leaves this machine: then its listing stays.
    ///
    /// - Parameter isBesideTrash: whether the directories of the trash do not count.
    package func holdsWhatStaysHere(_ directory: InodeNumber, besideTrash isBesideTrash: Bool = false) throws -> Bool {
        try one(
            """
            SELECT EXISTS (SELECT 1 FROM item WHERE parent = ?1 AND (NOT ?2 AND trashRole <> \(trash: .none)
                OR trashRole = \(trash: .none) AND isExcluded <> \(exclusion: .none)))
            """,
            [directory.rawValue, isBesideTrash], { $0[0] as Bool }) ?? false
    }

    /// The items in a directory that keep its listing from being dropped, each with its reason.
    package func obstaclesToEvictingListing(
        of directory: InodeNumber, limit: Int
    ) throws -> [(number: InodeNumber, refusal: EvictionRefusal)] {
        try read { db in try db.obstacles(toEvictingListingOf: directory, limit: limit) }
    }
}

extension Database {
    /// The only rule for what may not be evicted: eviction and `yonder why` both apply it.
    func evictionRefusal(of item: ItemRecord, isOpen: Bool) throws -> EvictionRefusal? {
        if item.isExcluded { return .isExcluded }
        if item.identifier == nil { return item.isToBeOffered ? .unsyncedEdits : .existsOnlyHere }
        let isFile = item.inode.kind == .file
        // Trashed items are stored on this machine.
        if try item.trash != nil || isTrashed(item.parent) { return .nonEvictable }
        // Whatever is pending, not the content alone.
        if isFile, !item.changedFields.isEmpty { return .unsyncedEdits }
        if try effectivePolicy(of: item) == .keepDownloaded { return .nonEvictable }
        let hasContent = try item.inode.content != .dataless && hasContentFile(item.inode.number)
        if !isFile || hasContent, try DomainKey.changesAreHeld.bytes(in: self) != nil { return .removalsAreHeld }
        guard isFile else { return nil }
        if isOpen { return .isOpen }
        guard hasContent else { return nil }
        if item.inode.contentStamp != nil { return .unsyncedEdits }
        return item.inode.linkCount > 1 ? .isHardLinked : nil
    }

    fileprivate func obstacles(
        toEvictingListingOf directory: InodeNumber, limit: Int
    ) throws -> [(number: InodeNumber, refusal: EvictionRefusal)] {
        try all(
            """
            SELECT inode.number, item.identifier IS NULL OR item.changedFields <> 0,
                item.identifier IS NULL
                    AND item.reimport <= 0, COALESCE(item.userPolicy, item.policy) = \(policy: .keepDownloaded)
            FROM item INDEXED BY itemInParent JOIN inode ON inode.number = item.inode
            WHERE item.parent = ? AND (item.identifier IS NULL OR item.changedFields <> 0
                OR COALESCE(item.userPolicy, item.policy) = \(policy: .keepDownloaded)
                OR inode.content <> \(content: .dataless) AND (inode.kind = \(kind: .directory)
                    OR inode.localBytes > 0))
            LIMIT ?
            """, [directory.rawValue, limit],
            { columns in
                let refusal: EvictionRefusal =
                    if columns[2] as Bool {
                        .existsOnlyHere
                    } else if columns[1] as Bool {
                        .unsyncedEdits
                    } else if columns[3] as Bool {
                        .nonEvictable
                    } else {
                        // A process has had it listed or read since it was evicted.
                        .isInUse
                    }
                return (InodeNumber(rawValue: columns[0]), refusal)
            })
    }
}
