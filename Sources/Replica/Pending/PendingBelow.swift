import FileProvider
import GRDB

/// Something that is not on the remote yet.
package enum PendingMark: Hashable, Sendable {
    case item(Int64)
    case deletion(Int64)
    /// A reimport that is not complete.
    case reimport(Int64)
}

/// What keeps something from being sent.
package struct SendingObstacle: Sendable {
    package var error: FileProviderError
    /// The row of the item whose change has failed; nil for a deletion.
    package var row: Int64?
    /// When that is tried again; nil for at once.
    package var nextTry: FileTimestamp?

    init(code: String, message: String, row: Int64?, nextTry: Int64?) {
        error = FileProviderError(FileProviderError.Code(rawValue: code) ?? .cannotSynchronize, message)
        self.row = row
        self.nextTry = nextTry.map(FileTimestamp.init(nanosecondsSince1970:))
    }
}

/// The changes at or below one item that the remote does not have yet.
extension ReplicaDatabase {
    /// The first of what was changed at or below an item up to a moment and is not on the remote: what was changed there,
    /// moved into it or out of it, removed from it, or waits to be recognized.
    ///
    /// - Parameter last: where to go on; nil for the beginning.
    package func firstPending(
        below top: InodeNumber, since time: FileTimestamp, after last: PendingMark? = nil
    ) throws -> PendingMark? {
        try read { db in
            var search = PendingSearch(db: db, top: top)
            var row: Int64 = 0
            var deletion: Int64 = 0
            switch last {
            case nil: break
            case .item(let last): row = last
            case .deletion(let last): (row, deletion) = (.max, last)
            case .reimport: (row, deletion) = (.max, .max)
            }
            return try search.item(after: row, since: time) ?? search.deletion(after: deletion, since: time)
                ?? search.reimport(since: time)
        }
    }

    /// Which of some items were changed here, or contain something that was, and is not on the remote. Visits each change and the
    /// directories above it once, however many items there are.
    package func itemsWithPendingChanges(among items: Set<ItemIdentifier>) throws -> Set<ItemIdentifier> {
        if items.isEmpty { return [] }
        return try read { db in
            // A file that is being written may hold what is not noted as a change yet.
            let rows = try db.all(
                """
                SELECT id FROM item WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none)
                UNION SELECT item.id FROM inode CROSS JOIN item ON item.inode = inode.number
                    WHERE inode.contentStamp IS NOT NULL
                """, [], { $0[0] as Int64 })
            var found: Set<ItemIdentifier> = []
            var seen: Set<Int64> = []
            for row in rows {
                var current = try db.item(id: row)
                while let item = current, seen.insert(item.id).inserted {
                    if let identifier = item.identifier, items.contains(identifier) { found.insert(identifier) }
                    current = try item.parent.flatMap { try db.item(ofInode: $0) }
                }
            }
            return found
        }
    }

    /// Whether something is still pending that was changed up to a moment.
    package func isPending(_ mark: PendingMark, since time: FileTimestamp) throws -> Bool {
        try read { db in
            switch mark {
            case .item(let row):
                try db.one(
                    """
                    SELECT isExcluded = \(exclusion: .none) AND (reimport > 0 OR changedFields <> 0
                        AND pendingSince <= ?)
                    FROM item WHERE id = ?
                    """, [time.nanosecondsSince1970, row], { $0[0] as Bool }) ?? false
            case .deletion(let row):
                try db.one("SELECT 1 FROM deletion WHERE id = ?", [row], { _ in true }) ?? false
            case .reimport(let row):
                try db.one("SELECT 1 FROM reimport WHERE id = ?", [row], { _ in true }) ?? false
            }
        }
    }

    /// What keeps something from being sent: its own last failure, or that of a directory above it which the remote does
    /// not have. Nil when nothing has failed since it was changed.
    package func obstacle(toSending mark: PendingMark) throws -> SendingObstacle? {
        try read { db in
            switch mark {
            case .reimport: return nil
            case .deletion(let row):
                return try db.one(
                    "SELECT code, message, nextTry FROM deletion WHERE id = ? AND attempts > 0 AND code IS NOT NULL",
                    [row], { SendingObstacle(code: $0[0], message: $0[1], row: nil, nextTry: $0[2] as Int64?) })
            case .item(let row):
                for item in try db.itemAndNewDirectories(above: row) {
                    let obstacle = try db.one(
                        """
                        SELECT failure.code, failure.message, item.nextTry
                        FROM item JOIN failure ON failure.inode = item.inode WHERE item.id = ? AND item.attempts > 0
                        """, [item.id],
                        { SendingObstacle(code: $0[0], message: $0[1], row: item.id, nextTry: $0[2] as Int64?) })
                    if let obstacle { return obstacle }
                }
                return nil
            }
        }
    }

    /// What keeps a directory above an item from being sent, which the remote does not have; nil when nothing has failed there, or the
    /// item itself has failed.
    package func obstacle(
        toSendingDirectoriesAbove row: Int64
    ) throws -> (directory: ItemRecord, error: FileProviderError, nextTry: FileTimestamp?)? {
        guard let obstacle = try obstacle(toSending: .item(row)), let above = obstacle.row, above != row,
            let directory = try item(row: above)
        else { return nil }
        return (directory, obstacle.error, obstacle.nextTry)
    }

    /// What was changed in a directory and has to be sent before the directory's date, if that is all that the remote does not have of
    /// it; nil where the date does not wait. What has failed comes first.
    package func changeBeforeDate(of directory: ItemRecord) throws -> PendingMark? {
        guard directory.inode.kind == .directory, directory.changedFields == .contentModificationDate else {
            return nil
        }
        return try read { db in try db.pendingChild(of: directory) }
    }

    /// An item, and the directories above it that have to be sent before it, because the remote does not have them. A
    /// directory that the remote has takes the item whatever is wrong with a change of its own.
    package func itemAndNewDirectories(above row: Int64) throws -> [ItemRecord] {
        try read { db in try db.itemAndNewDirectories(above: row) }
    }
}

extension Database {
    fileprivate func itemAndNewDirectories(above row: Int64) throws -> [ItemRecord] {
        guard let first = try item(id: row) else { return [] }
        var items = [first]
        while items.count < 4096, let parent = items.last?.parent, let directory = try item(ofInode: parent),
            directory.identifier == nil
        {
            items.append(directory)
        }
        return items
    }
}

/// Looks for what is pending below an item. Which directories lie below it is asked once for each.
private struct PendingSearch {
    let db: Database
    let top: InodeNumber
    var known: [InodeNumber: Bool] = [:]
    private static let mostKnown = 10_000

    mutating func item(after row: Int64, since time: FileTimestamp) throws -> PendingMark? {
        guard row < .max else { return nil }
        let changed = """
            SELECT id, inode, parent,
                CASE WHEN changedFields & \(field: .parentItemIdentifier) THEN baseParent END FROM item
            WHERE changedFields <> 0 AND isExcluded = \(exclusion: .none) AND pendingSince <= ?1
                AND id > ?2 ORDER BY id
            """
        let offered = """
            SELECT id, inode, parent, NULL FROM item
            WHERE reimport > 0 AND isExcluded = \(exclusion: .none) AND ?1 = ?1 AND id > ?2 ORDER BY id
            """
        return try [changed, offered].compactMap { sql in
            var found: Int64?
            try db.query(sql, [time.nanosecondsSince1970, row]) { columns in
                let inode = InodeNumber(rawValue: columns[1])
                let parent = (columns[2] as Int64?).map(InodeNumber.init(rawValue:))
                let origin = (columns[3] as String?).map(ItemIdentifier.init(rawValue:))
                var isIt = inode == top
                if !isIt, let parent { isIt = try isInside(parent) }
                if !isIt, let origin { isIt = try isInside(origin) }
                if isIt { found = columns[0] as Int64 }
                return !isIt
            }
            return found
        }.min().map(PendingMark.item)
    }

    mutating func deletion(after row: Int64, since time: FileTimestamp) throws -> PendingMark? {
        guard row < .max else { return nil }
        var found: Int64?
        try db.query(
            "SELECT id, baseParent FROM deletion WHERE pendingSince <= ? AND id > ? ORDER BY id",
            [time.nanosecondsSince1970, row]
        ) { columns in
            if try isInside(ItemIdentifier(rawValue: columns[1])) { found = columns[0] as Int64 }
            return found == nil
        }
        return found.map(PendingMark.deletion)
    }

    /// One that is still finding its items may find some here.
    mutating func reimport(since time: FileTimestamp) throws -> PendingMark? {
        let rows = try db.all(
            "SELECT id, inode FROM reimport WHERE requestedAt <= ? AND isComplete = 0", [time.nanosecondsSince1970],
            { (id: $0[0] as Int64, inode: InodeNumber(rawValue: $0[1])) })
        for row in rows where try db.isMarkingReimport() {
            if try db.isBelow(top, row.inode) || isInside(row.inode) { return .reimport(row.id) }
        }
        return nil
    }

    private mutating func isInside(_ directory: InodeNumber) throws -> Bool {
        if let known = known[directory] { return known }
        let answer = try db.isBelow(directory, top)
        if known.count < Self.mostKnown { known[directory] = answer }
        return answer
    }

    /// As ``isInside(_:)-inode``, for a directory on the remote, which may have been removed here.
    private mutating func isInside(_ directory: ItemIdentifier) throws -> Bool {
        var current = directory
        for _ in 0..<4096 {
            if let item = try db.known(current) { return try isInside(item.inode.number) }
            let parent = try db.one(
                "SELECT baseParent FROM deletion WHERE identifier = ?", [current.rawValue],
                { ItemIdentifier(rawValue: $0[0]) })
            guard let parent else { return false }
            current = parent
        }
        return false
    }
}
