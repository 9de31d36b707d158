import FileProvider
import GRDB

/// When something that waits is to be tried.
package struct PendingState: Hashable, Sendable {
    package var since: FileTimestamp
    package var attempts: Int
    package var nextTry: FileTimestamp?
    /// Of its last failure, or of that of another name of its inode.
    package var failure: FileProviderError.Code?

    /// Whether it is tried once no removals on the remote are held.
    package var waitsForRemovals: Bool { failure == .removalsAreHeld }
}

extension ReplicaDatabase {
    /// The items with changes that the provider has not acknowledged, in the order in which they were made; those that
    /// stay on this machine left out.
    package func pendingItems(after row: Int64, limit: Int) throws -> [(item: ItemRecord, state: PendingState)] {
        try read { db in try db.pendingItems(after: row, limit: limit) }
    }

    /// The item of a row, when it has changes that wait.
    package func pendingItem(_ row: Int64) throws -> (item: ItemRecord, state: PendingState)? {
        try read { db in try db.pendingItem(row) }
    }

    package func item(row: Int64) throws -> ItemRecord? {
        try read { db in try db.item(id: row) }
    }

    /// How often in a row sending an item has failed.
    package func attempts(ofItem row: Int64) throws -> Int {
        try read { db in try db.one("SELECT attempts FROM item WHERE id = ?", [row], { $0[0] as Int }) ?? 0 }
    }

    /// When an item that waits after a failure is sent or offered again; nil for one that does not wait, or stays on this machine.
    package func nextTry(ofItem row: Int64) throws -> FileTimestamp? {
        try one(
            """
            SELECT nextTry FROM item WHERE id = ? AND (changedFields <> 0 OR reimport > 0)
                AND isExcluded = \(exclusion: .none)
            """, [row], { ($0[0] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:)) }) ?? nil
    }

    /// The item directly in the trash that a deletion was made in, or is of; nil for what was not deleted from the trash.
    package func trashedTop(of deletion: PendingDeletion) throws -> ItemIdentifier? {
        try one("SELECT trashedTop FROM deletion WHERE id = ?", [deletion.id], { $0[0] as String? })?
            .map(ItemIdentifier.init(rawValue:))
    }

    /// The items that the remote has to delete, the ones that were removed last first: what a directory contained was
    /// removed before it.
    package func pendingDeletions(after id: Int64 = 0, limit: Int = .max) throws -> [PendingDeletion] {
        try read { db in try db.pendingDeletions(after: id, limit: limit) }
    }

    /// Where something is on the remote that is to be deleted; nil for anything else.
    private func placeOfDeletion(_ identifier: ItemIdentifier) throws -> (parent: ItemIdentifier, name: String)? {
        try one(
            "SELECT baseParent, baseName FROM deletion WHERE identifier = ?", [identifier.rawValue],
            { (ItemIdentifier(rawValue: $0[0]), $0[1]) })
    }

    /// The path from the mount's root of what is to be deleted, also below directories that are to be deleted.
    package func path(of deletion: PendingDeletion) throws -> [String] {
        var names = [deletion.name]
        var parent = deletion.parent
        while names.count < 4096, let above = try placeOfDeletion(parent) {
            names.insert(above.name, at: 0)
            parent = above.parent
        }
        guard let directory = try item(parent) else { return names }
        return (try path(of: directory.inode.number) ?? []) + names
    }

    /// The present time. All that waits was changed up to then, and what is changed from now on is later.
    ///
    /// What was changed before the clock was set back has a later time, which is corrected to the present one: a wait for what lies
    /// before that time would include every new change. If it cannot be corrected, the latest time is returned.
    package func timeAfterAllPending() async throws -> FileTimestamp {
        let latest =
            try one(
                """
                SELECT max((SELECT COALESCE(max(pendingSince), 0) FROM item
                        WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none)),
                    (SELECT COALESCE(max(pendingSince), 0) FROM deletion),
                    (SELECT COALESCE(max(requestedAt), 0) FROM reimport))
                """, [], { $0[0] as Int64 }) ?? 0
        let now = FileTimestamp.now
        guard latest > now.nanosecondsSince1970 else { return now }
        do {
            return try await write { db in
                // All that is committed was changed before this moment.
                let now = FileTimestamp.now
                try db.correctPendingTimes(after: now)
                return now
            }
        } catch {
            // The disk may be full.
            return FileTimestamp(nanosecondsSince1970: latest)
        }
    }

    /// Whether anything waits that was changed up to a moment.
    package func hasPending(since time: FileTimestamp) throws -> Bool {
        try one(
            """
            SELECT EXISTS (SELECT 1 FROM item WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none)
                AND pendingSince <= ?1)
                OR EXISTS (SELECT 1 FROM deletion WHERE pendingSince <= ?1)
                OR EXISTS (SELECT 1 FROM reimport WHERE requestedAt <= ?1)
                OR EXISTS (SELECT 1 FROM item WHERE reimport > 0 AND isExcluded = \(exclusion: .none))
            """, [time.nanosecondsSince1970], { $0[0] as Bool }) ?? false
    }

    /// How much the remote has not got yet: items, and the bytes of files among them.
    package func pendingCounts() throws -> (items: Int, bytes: Int64) {
        try read { db in
            let bytes = try Double.fetchOne(
                db,
                sql: """
                    SELECT TOTAL(inode.size) FROM item JOIN inode ON inode.number = item.inode
                    WHERE item.changedFields <> 0 AND item.isExcluded = \(exclusion: .none)
                        AND item.changedFields & \(field: .contents)
                    """)
            return (try db.pendingCount(), Int64(saturating: bytes ?? 0))
        }
    }

    /// An inode and the directories above it whose permissions the remote does not have yet, the topmost first.
    package func changedPermissions(above number: InodeNumber) throws -> [InodeNumber] {
        try read { db in
            var found: [InodeNumber] = []
            var current = try db.item(ofInode: number)
            for _ in 0..<ItemRemoval.deepest {
                guard let item = current else { break }
                if item.changedFields.contains(.permissions) { found.append(item.inode.number) }
                current = try item.parent.flatMap { try db.item(ofInode: $0) }
            }
            return found.reversed()
        }
    }

    package func isOpenForWriting(_ number: InodeNumber) throws -> Bool {
        try read { db in try db.inode(number)?.contentStamp != nil }
    }

    /// The files that are open for writing, or were when the daemon ended.
    package func filesBeingWritten() throws -> [InodeNumber] {
        try read { db in
            try Int64.fetchAll(db, sql: "SELECT number FROM inode WHERE contentStamp IS NOT NULL")
                .map(InodeNumber.init(rawValue:))
        }
    }

    /// The directories of which something was left out and that are to be compared with the remote again. One that is being listed is
    /// compared after that.
    package func directoriesToCompare() throws -> [InodeNumber] {
        try read { db in
            // Items that are offered again in a directory explain what the remote has there.
            try Int64.fetchAll(
                db,
                sql: """
                    SELECT number FROM inode WHERE isIncomplete <> \(comparison: .none) AND content <> \(content: .partial)
                        AND NOT EXISTS (SELECT 1 FROM item WHERE parent = number AND reimport > 0 AND attempts = 0)
                        AND NOT EXISTS (SELECT 1 FROM item WHERE inode = number AND reimport > 0)
                    """
            ).map(InodeNumber.init(rawValue:)).filter { try !db.isTrashed($0) }
        }
    }

    /// Whether something was left out of a directory.
    package func isToBeCompared(_ number: InodeNumber) throws -> Bool {
        try one(
            "SELECT isIncomplete <> \(comparison: .none) FROM inode WHERE number = ?", [number.rawValue],
            { $0[0] as Bool }) ?? false
    }

    /// The conflict copies, each with the name of its original, which is in the same directory. One that has got that name, or was
    /// moved to another directory or to the trash, is none any more.
    package func conflictCopies() throws -> [(item: ItemRecord, original: String)] {
        try read { db in
            try Row.fetchAll(
                db,
                sql: """
                    SELECT id, conflictOf FROM item WHERE conflictOf IS NOT NULL AND conflictOf <> name AND trashedAt IS NULL
                    ORDER BY id
                    """
            )
            .compactMap { row in try db.item(id: row[0]).map { ($0, row[1] as String) } }
        }
    }
}

package enum RemoteNameHolder: Hashable, Sendable {
    case deletion(Int64)
    case item(Int64, ItemFields)
}

/// The state of an item between this machine and the remote.
package enum SyncState: String, Hashable, Sendable {
    case synced
    case pending
    case uploading
    case failed
    /// It stays on this machine.
    case excluded
}

extension ReplicaDatabase {
    /// The state of an item; only the engine knows whether it is being uploaded now.
    package func syncState(of item: ItemRecord) throws -> SyncState {
        if item.isExcluded { return .excluded }
        if item.changedFields.isEmpty, !item.isToBeOffered { return .synced }
        let attempts = try one("SELECT attempts FROM item WHERE id = ?", [item.id], { $0[0] as Int })
        return attempts ?? 0 > 0 ? .failed : .pending
    }
}

extension Database {
    func pendingItems(after row: Int64, limit: Int) throws -> [(item: ItemRecord, state: PendingState)] {
        let rows = try Row.fetchAll(
            cachedStatement(
                sql: """
                    SELECT id, pendingSince, attempts, nextTry, CASE WHEN attempts > 0 THEN (
                        SELECT code FROM failure WHERE failure.inode = item.inode) END FROM item
                    WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none) AND id > ? ORDER BY id LIMIT ?
                    """), arguments: [row, limit])
        return try rows.compactMap { row in
            guard let item = try item(id: row[0]) else { return nil }
            let state = PendingState(
                since: FileTimestamp(nanosecondsSince1970: row[1] ?? 0), attempts: row[2],
                nextTry: (row[3] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:)),
                failure: (row[4] as String?).flatMap(FileProviderError.Code.init))
            return (item, state)
        }
    }

    func pendingItem(_ row: Int64) throws -> (item: ItemRecord, state: PendingState)? {
        try pendingItems(after: row - 1, limit: 1).first { $0.item.id == row }
    }

    func pendingDeletion(_ id: Int64) throws -> PendingDeletion? {
        try pendingDeletions(after: id - 1, limit: 1).first { $0.id == id }
    }

    func pendingDeletions(after id: Int64, limit: Int) throws -> [PendingDeletion] {
        try all(
            "SELECT \(PendingDeletion.columns) FROM deletion WHERE id > ? ORDER BY id LIMIT ?", [id, limit],
            PendingDeletion.init)
    }
}

extension Database {
    func pendingCount() throws -> Int {
        try Int.fetchOne(
            self,
            sql: """
                SELECT (SELECT COUNT(*) FROM item WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none))
                    + (SELECT COUNT(*) FROM deletion)
                    + (SELECT COUNT(*) FROM item WHERE reimport > 0 AND changedFields = 0
                        AND isExcluded = \(exclusion: .none))
                """) ?? 0
    }
}
