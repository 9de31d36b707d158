import FileProvider
import GRDB

/// An item with changes that the provider has not acknowledged, and what decides whether they can be sent now: all as of one
/// moment.
package struct PendingEntry: Sendable {
    package var item: ItemRecord
    package var state: PendingState
    /// The directory that the item is in; nil while the provider has not got that.
    package var directory: ItemIdentifier?
    /// The row of the directory that the item is in.
    package var directoryRow: Int64?
    /// While the item cannot be moved to the directory that it is in: one that the provider has, and that stays, nearest to where the
    /// item is there.
    package var asideDirectory: ItemIdentifier?
    /// The directories above the place that the item has on the remote, and above the one that it is to have.
    package var ancestors: Set<ItemIdentifier> = []
    /// The content file of a file that is open for writing.
    package var content: ContentStatus?
    /// Whether the file that this one has replaced is still being read here, from the remote.
    package var isReplacedFileInUse = false
    /// Whether something in a directory is pending that would change the directory's time.
    package var hasPendingChildren = false
    /// The directories on the remote between a directory and its new place, if that is below the directory there: some of them have to
    /// leave it first.
    package var directoriesBetween: [ItemIdentifier]?
    package var nameHolder: RemoteNameHolder?
    /// Whether the deletion that holds the name waits for readers of the removed file.
    package var isNameHolderInUse = false

    /// Whether a directory is to be moved to where on the remote it is itself above.
    package var isBelowItself: Bool { directoriesBetween != nil }

    /// The directory on the remote that the item is in once it has been moved aside.
    package var directoryWhenAside: ItemIdentifier? { isBelowItself ? asideDirectory : directory ?? asideDirectory }

    /// What has to be sent before: the directory that the item is in, or what has its name on the remote.
    package var predecessors: [PendingMark] {
        if directory == nil { return directoryRow.map { [.item($0)] } ?? [] }
        switch nameHolder {
        case .deletion(let id): return [.deletion(id)]
        case .item(let row, let changes):
            return changes.isDisjoint(with: [.filename, .parentItemIdentifier]) ? [] : [.item(row)]
        case nil: return []
        }
    }
}

/// An item that the remote has to delete, and what decides whether it can be deleted now.
package struct PendingRemoval: Sendable {
    package var deletion: PendingDeletion
    package var ancestors: Set<ItemIdentifier> = []
    /// Whether the removed file is still being read here, from the remote.
    package var isInUse = false
    /// Whether a directory on the remote still holds what has to be deleted or moved away first.
    package var isDirectoryWaiting = false

    package init(_ deletion: PendingDeletion) {
        self.deletion = deletion
    }
}

/// The changes that wait to be sent, as of one moment: the input of a plan.
package struct PendingSnapshot: Sendable {
    package var removals: [PendingRemoval] = []
    package var items: [PendingEntry] = []
    package var offers: [ReadyOffer] = []
    /// When the first item that could not be offered is tried again.
    package var nextOffer: FileTimestamp?
    /// Where the next snapshot begins.
    package var next = PendingPosition()

    package init() {}
}

/// The rows after which snapshots begin: each one continues where the one before it ended, so that every item has its turn.
package struct PendingPosition: Hashable, Sendable {
    package var items: Int64 = 0
    package var offers: Int64 = 0

    package init() {}
}

/// The extent of a snapshot.
package struct PendingQuery {
    package var now: FileTimestamp
    /// Enough entries that can be sent.
    package var limit: Int
    package var start: PendingPosition
    package var hasOnlyOffers: Bool

    package init(now: FileTimestamp, limit: Int, start: PendingPosition, hasOnlyOffers: Bool) {
        self.now = now
        self.limit = limit
        self.start = start
        self.hasOnlyOffers = hasOnlyOffers
    }

    fileprivate static let batch = 256
}

extension Replica {
    /// Reads what waits to be sent, in one transaction: the deletions, the ones that were made first before others, and the items in
    /// the order of their rows. It ends when enough of it can be sent; while items can be sent, half of it are deletions at most. What an
    /// item waits for is read with it.
    ///
    /// - Parameters:
    ///   - isDue: whether an item's time has come. Nothing more is read of one that has to wait.
    ///   - canBeSent: whether an entry counts to the limit.
    package func pendingSnapshot(
        _ query: PendingQuery, isDue: (ItemRecord, PendingState) -> Bool, isRemovalDue: (PendingDeletion) -> Bool,
        canBeSent: (PendingEntry) -> Bool, canBeRemoved: (PendingRemoval) -> Bool
    ) throws -> PendingSnapshot {
        try database.readCommitted { db in
            var reader = PendingReader(db: db, contents: contents)
            var snapshot = PendingSnapshot()
            var count = 0
            var seen: Set<PendingMark> = []
            func add(_ item: ItemRecord, _ state: PendingState) throws {
                seen.insert(.item(item.id))
                guard isDue(item, state) else { return }
                let pending = try reader.item(item, state)
                snapshot.items.append(pending)
                if canBeSent(pending) { count += 1 }
            }
            func add(_ deletion: PendingDeletion) throws {
                seen.insert(.deletion(deletion.id))
                guard isRemovalDue(deletion) else { return }
                let removal = try reader.removal(deletion)
                snapshot.removals.append(removal)
                if canBeRemoved(removal) { count += 1 }
            }
            var lastDeletion: Int64 = 0
            func addDeletions(upTo limit: Int) throws {
                while count < limit {
                    let batch = try db.pendingDeletions(after: lastDeletion, limit: PendingQuery.batch)
                    for deletion in batch where count < limit {
                        try add(deletion)
                        lastDeletion = deletion.id
                    }
                    guard batch.count == PendingQuery.batch else { break }
                }
            }
            func addItems(after first: Int64, through last: Int64) throws {
                snapshot.next.items = first
                while count < query.limit, snapshot.next.items < last {
                    let batch = try db.pendingItems(after: snapshot.next.items, limit: PendingQuery.batch)
                        .prefix { $0.item.id <= last }
                    for (item, state) in batch where count < query.limit {
                        try add(item, state)
                        snapshot.next.items = item.id
                    }
                    guard batch.count == PendingQuery.batch else { break }
                }
            }
            if !query.hasOnlyOffers {
                try addDeletions(upTo: query.limit / 2)
                try addItems(after: query.start.items, through: .max)
                if count < query.limit { try addItems(after: 0, through: query.start.items) }
                if count < query.limit { snapshot.next.items = 0 }
                try addDeletions(upTo: query.limit)
                // Changes that wait for each other are seen as such only together, wherever their rows are.
                var index = 0
                while index < snapshot.items.count {
                    for mark in snapshot.items[index].predecessors where seen.insert(mark).inserted {
                        switch mark {
                        case .item(let row): if let found = try db.pendingItem(row) { try add(found.item, found.state) }
                        case .deletion(let id): if let found = try db.pendingDeletion(id) { try add(found) }
                        case .reimport: break
                        }
                    }
                    index += 1
                }
            }
            try reader.readOffers(query, count, &snapshot)
            return snapshot
        }
    }

    /// An item that waits to be sent; nil when it does not any more.
    package func pendingItem(_ row: Int64) throws -> PendingEntry? {
        try database.read { db in
            var reader = PendingReader(db: db, contents: contents)
            return try db.pendingItem(row).map { try reader.item($0.item, $0.state) }
        }
    }

    /// A deletion that waits; nil when it does not any more.
    package func pendingRemoval(_ id: Int64) throws -> PendingRemoval? {
        try database.read { db in
            var reader = PendingReader(db: db, contents: contents)
            return try db.pendingDeletion(id).map { try reader.removal($0) }
        }
    }
}

/// Reads the facts of entries in one transaction. It asks only what can matter for the entry.
private struct PendingReader {
    let db: Database
    let contents: ContentStore
    let now = FileTimestamp.now
    /// By directory: files come many to a directory.
    var ancestors: [ItemIdentifier: Set<ItemIdentifier>] = [:]
    /// The directory that holds another; nil for one that is not known. The levels of a deep tree have their ancestors in common.
    var parents: [ItemIdentifier: ItemIdentifier?] = [:]
    /// By directory, as ``ancestors``.
    var remaining: [ItemIdentifier: ItemIdentifier] = [:]

    mutating func removal(_ deletion: PendingDeletion) throws -> PendingRemoval {
        var removal = PendingRemoval(deletion)
        removal.ancestors = try ancestors(from: deletion.parent)
        // It is found by its name first.
        if deletion.isToBeFound { return removal }
        removal.isInUse = try db.isKeptOnRemote(deletion.identifier, at: now)
        if deletion.kind == .directory { removal.isDirectoryWaiting = try isWaiting(deletion.identifier) }
        return removal
    }

    mutating func item(_ item: ItemRecord, _ state: PendingState) throws -> PendingEntry {
        var pending = PendingEntry(item: item, state: state)
        let (fields, kind) = (item.changedFields, item.inode.kind)
        if item.inode.number == .root {
            pending.directory = .rootContainer
        } else if let parent = item.parent {
            let directory = try db.item(ofInode: parent)
            (pending.directory, pending.directoryRow) = (directory?.identifier, directory?.id)
        }
        if pending.directory == nil, item.identifier != nil, let parent = item.base.parent {
            pending.asideDirectory = try remainingDirectory(from: parent)
        }
        for directory in Set([item.base.parent, pending.directory].compactMap(\.self)) {
            pending.ancestors.formUnion(try ancestors(from: directory))
        }
        if fields.contains(.contents) {
            // Nil when the item was removed after this snapshot began. Of a file that cannot be examined the attempt to send it says why.
            if item.inode.contentStamp != nil { pending.content = try? contents.status(of: item.inode.number) }
            if let identifier = item.identifier {
                pending.isReplacedFileInUse = try db.isKeptOnRemote(identifier, at: now)
            }
        }
        if kind == .directory, fields.contains(.contentModificationDate) {
            pending.hasPendingChildren = try db.hasPendingChildren(item)
        }
        guard let directory = pending.directory, item.inode.number != .root else { return pending }
        if kind == .directory, fields.contains(.parentItemIdentifier), let identifier = item.identifier {
            pending.directoriesBetween = try directories(between: identifier, directory)
            if pending.isBelowItself, let parent = item.base.parent {
                pending.asideDirectory = try remainingDirectory(from: parent)
            }
        }
        // In the trash several items may have one name.
        let needsName = item.identifier == nil || !fields.isDisjoint(with: [.filename, .parentItemIdentifier])
        if needsName, directory != .trashContainer {
            pending.nameHolder = try holder(of: item.name, in: directory, otherThan: item.id)
            if case .deletion(let id) = pending.nameHolder,
                let identifier = try db.one(
                    "SELECT identifier FROM deletion WHERE id = ?", [id], { ItemIdentifier(rawValue: $0[0]) })
            {
                pending.isNameHolderInUse = try db.isKeptOnRemote(identifier, at: now)
            }
        }
        return pending
    }

    mutating func readOffers(_ query: PendingQuery, _ count: Int, _ snapshot: inout PendingSnapshot) throws {
        let limit = min(query.limit - count, PendingQuery.batch)
        guard limit > 0, try !db.isMarkingReimport() else { return }
        var offers = try db.readyOffers(after: query.start.offers, at: query.now, limit: limit)
        if offers.isEmpty, query.start.offers > 0 {
            offers = try db.readyOffers(after: 0, at: query.now, limit: limit)
        }
        snapshot.offers = offers
        snapshot.next.offers = offers.last?.row ?? 0
        if count == 0, offers.isEmpty { snapshot.nextOffer = try db.nextOffer(after: query.now) }
    }

    // MARK: - Queries

    /// A directory and those above it, as the provider last gave them.
    private mutating func ancestors(from directory: ItemIdentifier) throws -> Set<ItemIdentifier> {
        if let known = ancestors[directory] { return known }
        var found: Set<ItemIdentifier> = []
        var current = directory
        while current != .rootContainer, found.insert(current).inserted {
            guard let parent = try parent(of: current) else { break }
            current = parent
        }
        ancestors[directory] = found
        return found
    }

    private mutating func parent(of directory: ItemIdentifier) throws -> ItemIdentifier? {
        if let known = parents[directory] { return known }
        let parent = try db.one(
            """
            SELECT baseParent FROM item WHERE identifier = ?1
            UNION ALL SELECT baseParent FROM deletion WHERE identifier = ?1
            """, [directory.rawValue], { ($0[0] as String?).map { ItemIdentifier($0) } })
        parents[directory] = .some(parent ?? nil)
        return parent ?? nil
    }

    /// A directory, or the nearest one above it that is neither to be deleted nor in a directory that is to be moved to below itself:
    /// such a one waits until the directories between have left it.
    private mutating func remainingDirectory(from directory: ItemIdentifier) throws -> ItemIdentifier {
        if let known = remaining[directory] { return known }
        var (found, current) = (directory, directory)
        for _ in 0..<4096 where current != .rootContainer {
            guard let parent = try parent(of: current) else { break }
            let isLeft: Bool
            if let item = try db.item(current) {
                isLeft = try isToBeMovedBelowItself(item, current)
            } else {
                isLeft = found == current
            }
            if isLeft { found = parent }
            current = parent
        }
        remaining[directory] = found
        return found
    }

    private mutating func isToBeMovedBelowItself(_ item: ItemRecord, _ identifier: ItemIdentifier) throws -> Bool {
        guard item.changedFields.contains(.parentItemIdentifier), let parent = item.parent,
            let directory = try db.identifier(ofInode: parent)
        else { return false }
        return try directories(between: identifier, directory) != nil
    }

    /// The item or the deletion that still has a name on the remote.
    private func holder(
        of name: String, in directory: ItemIdentifier, otherThan row: Int64
    ) throws -> RemoteNameHolder? {
        if let id = try db.one(
            "SELECT id FROM deletion WHERE baseParent = ? AND baseName = ?", [directory.rawValue, name],
            { $0[0] as Int64 })
        {
            return .deletion(id)
        }
        return try db.one(
            "SELECT id, changedFields FROM item WHERE baseParent = ? AND baseName = ? AND id <> ?",
            [directory.rawValue, name, row],
            { RemoteNameHolder.item($0[0], ItemFields(rawValue: UInt32(truncatingIfNeeded: $0[1] as Int64))) })
    }

    /// The directories on the remote from one up to another above it, without that; nil when it is not below that one.
    private mutating func directories(
        between ancestor: ItemIdentifier, _ directory: ItemIdentifier
    ) throws -> [ItemIdentifier]? {
        var found: [ItemIdentifier] = []
        var current = directory
        for _ in 0..<4096 where current != .rootContainer {
            if current == ancestor { return found }
            found.append(current)
            guard let parent = try parent(of: current) else { return nil }
            current = parent
        }
        return nil
    }

    private func isWaiting(_ directory: ItemIdentifier) throws -> Bool {
        try db.one(
            """
            SELECT EXISTS (SELECT 1 FROM deletion WHERE baseParent = ?1)
                OR EXISTS (SELECT 1 FROM item WHERE baseParent = ?1 AND changedFields & \(field: .parentItemIdentifier) <> 0)
            """, [directory.rawValue], { $0[0] as Bool }) ?? false
    }
}

extension Database {
    /// What has still to be sent and gives a directory another date on the remote: a name that it gets or loses there, or content that
    /// may replace a file.
    static let changesOfDate = """
        SELECT 0 AS isDeletion, id, attempts FROM item INDEXED BY pendingChild
        WHERE parent = ?1 AND changedFields <> 0 AND isExcluded = \(exclusion: .none)
            AND (identifier IS NULL OR changedFields & \(field: [.contents, .filename, .parentItemIdentifier]) <> 0)
        UNION ALL SELECT 1, id, attempts FROM deletion WHERE baseParent = ?2
        UNION ALL SELECT 0, id, attempts FROM item
        WHERE baseParent = ?2 AND changedFields & \(field: .parentItemIdentifier) <> 0
        """

    /// Whether something that has still to be sent gives a directory another date on the remote.
    func hasPendingChildren(_ directory: ItemRecord) throws -> Bool {
        try one(
            "SELECT EXISTS (\(Self.changesOfDate))",
            [directory.inode.number.rawValue, directory.identifier?.rawValue], { $0[0] as Bool }) ?? false
    }

    /// Something of that, first what has failed.
    func pendingChild(of directory: ItemRecord) throws -> PendingMark? {
        try one(
            "SELECT isDeletion, id FROM (\(Self.changesOfDate)) ORDER BY attempts > 0 DESC LIMIT 1",
            [directory.inode.number.rawValue, directory.identifier?.rawValue],
            { ($0[0] as Bool) ? PendingMark.deletion($0[1] as Int64) : PendingMark.item($0[1] as Int64) })
    }
}
