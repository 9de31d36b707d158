import FileProvider
import Foundation
import GRDB

/// A local change on its way to the provider: the item as it was when it was sent, so that what changed since is seen.
package struct SentChange: Sendable {
    /// The item's row.
    package var row: Int64
    package var inode: InodeNumber
    /// Nil for an item that the provider has not heard of.
    package var identifier: ItemIdentifier?
    package var item: FileProviderItem
    package var base: ItemVersion
    package var fields: ItemFields
    /// What the content file was when it was sent.
    package var contentStamp: Int64?
    /// Whether it may have been sent before, without an answer.
    package var isReplay: Bool
    /// How it is offered again, when its identifier was given up.
    package var offer: Offer?
}

/// An item that the remote has to delete.
package struct PendingDeletion: Hashable, Sendable {
    package var id: Int64
    package var identifier: ItemIdentifier
    package var kind: InodeKind
    package var parent: ItemIdentifier
    package var name: String
    package var version: ItemVersion
    package var since: FileTimestamp
    package var attempts: Int
    package var nextTry: FileTimestamp?
    package var code: String?
    package var message: String?
    /// Whether its identifier was given up: it has to be found on the remote by its name first.
    package var isToBeFound: Bool

    static let columns = """
        id, identifier, kind, baseParent, baseName, baseContentVersion, baseMetadataVersion, pendingSince, attempts, \
        nextTry, code, message, isToBeFound
        """

    init(_ row: Columns) {
        id = row[0]
        identifier = ItemIdentifier(rawValue: row[1])
        kind = InodeKind(rawValue: row[2]) ?? .file
        parent = ItemIdentifier(rawValue: row[3])
        name = row[4]
        version = ItemVersion(
            contentVersion: [UInt8](row[5] as Data), metadataVersion: [UInt8](row[6] as Data))
        since = FileTimestamp(nanosecondsSince1970: row[7])
        attempts = row[8]
        nextTry = (row[9] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:))
        code = row[10]
        message = row[11]
        isToBeFound = row[12]
    }
}

/// When something that waits is to be tried.
package struct PendingState: Hashable, Sendable {
    package var since: FileTimestamp
    package var attempts: Int
    package var nextTry: FileTimestamp?
}

extension ReplicaDatabase {
    /// The items with changes that the provider has not acknowledged, in the order in which they were made; those that
    /// stay on this machine left out.
    package func pendingItems(after row: Int64, limit: Int) throws -> [(item: ItemRecord, state: PendingState)] {
        try read { db in try db.pendingItems(after: row, limit: limit) }
    }

    /// The item of a row, when it has changes that wait.
    package func pendingItem(_ row: Int64) throws -> (item: ItemRecord, state: PendingState)? {
        try pendingItems(after: row - 1, limit: 1).first { $0.item.id == row }
    }

    /// The item of a row, or nil.
    package func item(row: Int64) throws -> ItemRecord? {
        try read { db in try db.item(id: row) }
    }

    /// How often in a row sending an item has failed.
    package func attempts(ofItem row: Int64) throws -> Int {
        try read { db in try db.one("SELECT attempts FROM item WHERE id = ?", [row], { $0[0] as Int }) ?? 0 }
    }

    /// The items that the remote has to delete, the ones that were removed last first: what a directory contained was
    /// removed before it.
    package func pendingDeletions(after id: Int64 = 0, limit: Int = .max) throws -> [PendingDeletion] {
        try read { db in try db.pendingDeletions(after: id, limit: limit) }
    }

    /// Whether anything waits that was changed up to a moment.
    package func hasPending(since time: FileTimestamp) throws -> Bool {
        try read { db in
            try db.one(
                """
                SELECT EXISTS (SELECT 1 FROM item WHERE changedFields <> 0 AND isExcluded = 0 AND pendingSince <= ?1)
                    OR EXISTS (SELECT 1 FROM deletion WHERE pendingSince <= ?1)
                    OR EXISTS (SELECT 1 FROM reimport WHERE requestedAt <= ?1)
                    OR EXISTS (SELECT 1 FROM item WHERE reimport > 0 AND isExcluded = 0)
                """, [time.nanosecondsSince1970], { $0[0] as Bool }) ?? false
        }
    }

    /// How much the remote has not got yet: items, and the bytes of files among them.
    package func pendingCounts() throws -> (items: Int, bytes: Int64) {
        try read { db in
            let row = try Row.fetchOne(
                db,
                sql: """
                    SELECT (SELECT COUNT(*) FROM item WHERE changedFields <> 0 AND isExcluded = 0)
                        + (SELECT COUNT(*) FROM deletion)
                        + (SELECT COUNT(*) FROM item WHERE reimport > 0 AND changedFields = 0 AND isExcluded = 0),
                        (SELECT TOTAL(inode.size) FROM item JOIN inode ON inode.number = item.inode
                            WHERE item.changedFields <> 0 AND item.isExcluded = 0 AND item.changedFields & 1)
                    """)
            return (row?[0] ?? 0, Int64(saturating: (row?[1] as Double?) ?? 0))
        }
    }

    /// The files that are open for writing, or were when the daemon ended.
    package func filesBeingWritten() throws -> [InodeNumber] {
        try read { db in
            try Int64.fetchAll(db, sql: "SELECT number FROM inode WHERE contentStamp IS NOT NULL")
                .map(InodeNumber.init(rawValue:))
        }
    }

    /// The directories of which something was left out and that are to be compared with the remote again.
    package func directoriesToCompare() throws -> [InodeNumber] {
        try read { db in
            // What is offered again in a directory makes sense of what the remote has there.
            try Int64.fetchAll(
                db,
                sql: """
                    SELECT number FROM inode WHERE isIncomplete <> 0 AND NOT EXISTS (
                        SELECT 1 FROM item WHERE parent = number AND reimport > 0 AND attempts = 0)
                        AND NOT EXISTS (SELECT 1 FROM item WHERE inode = number AND reimport > 0)
                    """
            ).map(InodeNumber.init(rawValue:)).filter { try !db.isTrashed($0) }
        }
    }

    /// The item that another item's conflict copy is, by the name of the original.
    package func conflictCopies() throws -> [(item: ItemRecord, original: String)] {
        try read { db in
            try Row.fetchAll(db, sql: "SELECT id, conflictOf FROM item WHERE conflictOf IS NOT NULL ORDER BY id")
                .compactMap { row in try db.item(id: row[0]).map { ($0, row[1] as String) } }
        }
    }
}

/// Who has a name on the remote.
package enum RemoteNameHolder: Hashable, Sendable {
    case deletion(Int64)
    case item(Int64, ItemFields)
}

/// Where an item stands between this machine and the remote.
package enum SyncState: String, Hashable, Sendable {
    case synced
    case pending
    case uploading
    case failed
    /// It stays on this machine.
    case excluded
}

extension ReplicaDatabase {
    /// Where an item stands; whether it is on its way just now the engine knows.
    package func syncState(of item: ItemRecord) throws -> SyncState {
        if item.isExcluded { return .excluded }
        if item.changedFields.isEmpty, !item.isToBeOffered { return .synced }
        let attempts = try read { db in
            try db.one("SELECT attempts FROM item WHERE id = ?", [item.id], { $0[0] as Int })
        }
        return attempts ?? 0 > 0 ? .failed : .pending
    }
}

extension Database {
    func pendingItems(after row: Int64, limit: Int) throws -> [(item: ItemRecord, state: PendingState)] {
        let rows = try Row.fetchAll(
            cachedStatement(
                sql: """
                    SELECT id, pendingSince, attempts, nextTry FROM item
                    WHERE changedFields <> 0 AND isExcluded = 0 AND id > ? ORDER BY id LIMIT ?
                    """), arguments: [row, limit])
        return try rows.compactMap { row in
            guard let item = try item(id: row[0]) else { return nil }
            let state = PendingState(
                since: FileTimestamp(nanosecondsSince1970: row[1] ?? 0), attempts: row[2],
                nextTry: (row[3] as Int64?).map(FileTimestamp.init(nanosecondsSince1970:)))
            return (item, state)
        }
    }

    func pendingDeletions(after id: Int64, limit: Int) throws -> [PendingDeletion] {
        try all(
            "SELECT \(PendingDeletion.columns) FROM deletion WHERE id > ? ORDER BY id LIMIT ?", [id, limit],
            PendingDeletion.init)
    }
}
