import FileProvider
import GRDB

/// A listing of a directory that is under way.
package struct ListingBeginning: Sendable {
    package var identifier: ItemIdentifier
    /// The listing's number: rows that it confirms carry it.
    package var number: Int64
    /// Whether entries may be shown before the last page is there: only where none were remembered, because those keep
    /// their old places.
    package var isStreamed: Bool
    /// Whether the directory was materialized before, and is only compared.
    package var isComparison: Bool
    /// Begins with the listing: what was acknowledged or reported since is newer.
    package var observation: Observation
}

/// Directories: listed, page by page.
extension Replica {
    /// Begins to list a directory: it is partial from now on, unless it is materialized and only compared.
    ///
    /// - Parameter isOnlyCompared: whether the directory is listed only to compare it, with no reader waiting.
    /// - Returns: nil when it is only to be compared, and its listing was evicted.
    /// - Throws: `noSuchItem` for what is not a directory of the remote's.
    package func beginListing(
        of number: InodeNumber, isOnlyCompared: Bool = false
    ) async throws -> ListingBeginning? {
        try await database.write { [ordering] db in
            guard let item = try db.item(ofInode: number), item.inode.kind == .directory,
                let identifier = item.identifier
            else { throw FileProviderError(.noSuchItem, "inode \(number) is no directory of the remote's") }
            let listing = try db.beginSeeing()
            let remembered = try db.one(
                "SELECT EXISTS (SELECT 1 FROM item WHERE parent = ?)", [number.rawValue], { $0[0] as Bool })
            let isComparison = item.inode.content == .materialized
            if isOnlyCompared, !isComparison { return nil }
            if !isComparison {
                try db.beginListing(of: number)
            }
            return ListingBeginning(
                identifier: identifier, number: listing, isStreamed: remembered != true && !isComparison,
                isComparison: isComparison, observation: ordering.observe())
        }
    }

    /// Gives up a listing that failed: what was dataless before is dataless again.
    package func abandonListing(of number: InodeNumber) async throws {
        try await database.write { db in
            try db.abandonListing(of: number)
        }
    }

    /// A listing has ended, with success or not: forgets which items it has confirmed.
    package func endListing(_ beginning: ListingBeginning) async throws {
        try await database.write { db in try db.endSeeing(in: beginning.number) }
    }

    /// Whether a listing of a directory has brought an item already.
    package func wasSeen(
        _ identifier: ItemIdentifier, in number: InodeNumber, listing: Int64
    ) async throws -> Bool {
        try await database.write { db in
            guard let item = try db.item(identifier), item.parent == number else { return false }
            return try db.wasSeen(item.id, in: listing)
        }
    }

    /// The items of a directory that a listing has not confirmed, once all its pages are in.
    package func unconfirmed(in number: InodeNumber, listing: Int64) async throws -> [ItemRecord] {
        try await database.write { db in try db.unseenItems(in: number, listing: listing) }
    }
}

extension Ingestion {
    /// One page of a directory's listing. Items that `isKnownBetter` has newer news of are left alone.
    ///
    /// - Returns: false when the listing was evicted meanwhile, and the page was dropped.
    package mutating func page(
        of directory: InodeNumber, listing number: Int64, items: [FileProviderItem],
        isKnownBetter: (ItemIdentifier) -> Bool
    ) throws -> Bool {
        listing = number
        let content = try db.inode(directory)?.content
        guard content != .dataless else { return false }
        let isCompared = content == .materialized
        isFirstListing = !isCompared
        let highest = try highestItem(in: directory)
        for item in items where !isKnownBetter(item.itemIdentifier) { try place(item, in: directory) }
        // The kernel may have kept the names of a directory that was listed before.
        if isCompared, try highestItem(in: directory) != highest { effects.invalidations.append(.contents(directory)) }
        return true
    }

    /// The end of a listing: what is gone goes, the directory is materialized, unless its listing was evicted while it was
    /// only compared.
    package mutating func finishListing(of directory: InodeNumber, gone: [ItemRecord]) throws {
        for item in gone {
            if let current = try db.item(id: item.id), current.parent == directory,
                current.identifier == item.identifier
            {
                try remove(current)
            }
        }
        try db.finishListing(of: directory)
        try db.forgetFailure(of: directory)
    }

    /// The end of a listing that is no comparison, in one transaction with its last page: removes what it has not
    /// confirmed.
    package mutating func finishListing(
        of directory: InodeNumber, listing number: Int64, isKnownBetter: (ItemIdentifier) -> Bool
    ) throws {
        let gone = try db.unseenItems(in: directory, listing: number)
            .filter { item in item.identifier.map { !isKnownBetter($0) } ?? false }
        try finishListing(of: directory, gone: gone)
        try db.endSeeing(in: number)
    }

    /// One batch of changes, with the anchor that stands behind it, or none.
    ///
    /// New items are taken in where their parent's listing is here or under way; the others would take space for
    /// nothing. Items are placed before others are removed, so that what moved out of a directory outlives it.
    ///
    /// - Parameters:
    ///   - required: directories that are taken in wherever they are, because what is known here was moved into them.
    ///   - later: what will be removed at the end of the round.
    ///   - observation: begun before the changes were requested; nil where nothing can be newer.
    /// - Returns: items of which an answer was recorded after that. They are left as they are, and the anchor is not noted.
    @discardableResult
    package mutating func changes(
        _ batch: ChangeBatch, required: Set<ItemIdentifier> = [], later: Set<ItemIdentifier> = [],
        observed observation: Observation? = nil
    ) throws -> Set<ItemIdentifier> {
        var outdated: Set<ItemIdentifier> = []
        upcoming = Set(batch.updated.map(\.itemIdentifier)).union(batch.deleted).union(later)
        // A parent may come after its child in one batch.
        var waiting = batch.updated
        while !waiting.isEmpty {
            var later: [FileProviderItem] = []
            let upcomingParents = Set(waiting.map(\.itemIdentifier))
            for item in waiting {
                if let observation, isStale(item.itemIdentifier, observation) {
                    outdated.insert(item.itemIdentifier)
                    continue
                }
                if item.itemIdentifier == .rootContainer {
                    try placeRoot(item)
                    continue
                }
                let parent = try db.item(item.parentItemIdentifier)
                if parent == nil, upcomingParents.contains(item.parentItemIdentifier),
                    item.parentItemIdentifier != item.itemIdentifier
                {
                    later.append(item)
                    continue
                }
                let known = try db.item(item.itemIdentifier)
                let isTaken =
                    try known != nil || parent != nil && parent?.inode.content != .dataless || isForTrash(item)
                    || required.contains(item.itemIdentifier)
                if try isTaken && !isOutOfSight(known, parent: parent) {
                    try place(item, in: parent?.inode.number)
                }
                upcoming.remove(item.itemIdentifier)
            }
            if later.count == waiting.count {
                reportCycle(later)
                break
            }
            waiting = later
        }
        try vanish(Set(batch.deleted))
        // Until the round has ended, news are asked for from where it began.
        if later.isEmpty, outdated.isEmpty { try noteAnchor(batch.anchor) }
        return outdated
    }

    /// The remote has removed these items.
    package mutating func vanish(_ identifiers: Set<ItemIdentifier>) throws {
        upcoming.formUnion(identifiers)
        for identifier in identifiers {
            if let item = try db.item(identifier), try !isOutOfSight(item) { try remove(item) }
            upcoming.remove(identifier)
        }
        try restoreNames()
    }

    package func noteAnchor(_ anchor: SyncAnchor?) throws {
        try DomainKey.syncAnchor.set(bytes: anchor?.rawValue, in: db)
    }
}

extension ReplicaDatabase {
    /// How many of the remote's items are known, and how many of them would go with some of them.
    package func countVanishing(_ identifiers: Set<ItemIdentifier>) throws -> (gone: Int, known: Int) {
        try read { db in
            let known =
                try db.one("SELECT COUNT(*) FROM item WHERE identifier IS NOT NULL", [], { $0[0] as Int }) ?? 1
            var seen: Set<Int64> = []
            var waiting = try identifiers.compactMap { try db.item($0) }
            while let item = waiting.popLast() {
                guard item.identifier != nil, seen.insert(item.id).inserted else { continue }
                if item.inode.kind == .directory { waiting += try db.items(in: item.inode.number) }
            }
            return (seen.count, known - 1)
        }
    }
}

extension Ingestion {
    /// An item that was looked up: it goes where the remote has it, or nowhere when that directory is not known here.
    ///
    /// - Parameters:
    ///   - ancestors: the directories on the way to it that may be unknown here, the uppermost first.
    ///   - observation: begun before the item was looked up: nothing is done where an acknowledgement is newer; nil where
    ///     nothing can be newer.
    package mutating func move(
        _ item: FileProviderItem, below ancestors: [FileProviderItem] = [],
        observed observation: Observation? = nil
    ) throws {
        if let observation, isStale(item.itemIdentifier, observation) { return }
        if item.itemIdentifier == .rootContainer { return try placeRoot(item) }
        guard try db.item(item.itemIdentifier) != nil else { return }
        for directory in ancestors {
            try place(directory, in: try db.item(directory.parentItemIdentifier)?.inode.number)
        }
        try place(item, in: try db.item(item.parentItemIdentifier)?.inode.number)
    }

    /// The largest row number of a directory's items: its listing has come so far.
    package func highestItem(in directory: InodeNumber) throws -> Int64 {
        try db.one("SELECT MAX(id) FROM item WHERE parent = ?", [directory.rawValue], { $0[0] as Int64? ?? 0 }) ?? 0
    }

    /// Removes an item that the remote has no more, with all below it.
    ///
    /// - Parameter observation: begun before the item was looked up: nothing is done where an acknowledgement is newer.
    package mutating func removeIfKnown(
        _ identifier: ItemIdentifier, observed observation: Observation? = nil
    ) throws {
        if let observation, isStale(identifier, observation) { return }
        if let item = try db.item(identifier) { try remove(item) }
    }

    /// Removes whatever is this inode, with all below it.
    package mutating func removeIfKnown(inode number: InodeNumber) throws {
        if let item = try db.item(ofInode: number) { try remove(item) }
    }
}
