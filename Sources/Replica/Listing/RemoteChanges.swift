import FileProvider

/// The provider's reports beside listings: batches of changes, items that were looked up, the trash.
package struct RemoteChanges: RemotePart {
    let transaction: RemoteTransaction
    private var placement: Placement { Placement(transaction: transaction) }
    private var removal: ItemRemoval { ItemRemoval(transaction: transaction) }
    private var trash: RemoteTrash { RemoteTrash(transaction: transaction) }

    /// One batch of changes, with the anchor that stands behind it, or none.
    ///
    /// New items are taken in where their parent's listing is here or under way; the others would take space for
    /// nothing. Items are placed before others are removed, so that what moved out of a directory outlives it.
    ///
    /// - Parameters:
    ///   - required: directories that are taken in wherever they are, because what is known here was moved into them.
    ///   - later: what will be removed at the end of the round, also what was held before.
    ///   - notesAnchor: false where something before the anchor was not taken in.
    ///   - observation: begun before the changes were requested; nil where nothing can be newer.
    /// - Returns: items of which an answer was recorded after that. They are left as they are, and the anchor is not noted.
    @discardableResult
    package func apply(
        _ batch: ChangeBatch, required: Set<ItemIdentifier> = [], later: Set<ItemIdentifier> = [],
        notesAnchor: Bool = true, observed observation: Observation? = nil
    ) throws -> Set<ItemIdentifier> {
        var outdated: Set<ItemIdentifier> = []
        transaction.upcoming = Set(batch.updated.map(\.itemIdentifier)).union(batch.deleted).union(later)
        var order = PlacingOrder(batch.updated)
        var outside = DirectoriesOutsideTrash()
        var (waitsForMoves, isAnyPlaced) = (true, false)
        while true {
            guard let item = order.next() else {
                if !order.hasMoves { break }
                // When no move of the batch opens the circle, a move that was made here may be undone.
                waitsForMoves = waitsForMoves && isAnyPlaced
                isAnyPlaced = false
                order.retryMoves()
                continue
            }
            if let observation, isStale(item.itemIdentifier, observation) {
                outdated.insert(item.itemIdentifier)
                order.finish(item)
                continue
            }
            if item.itemIdentifier == .rootContainer {
                try placement.placeRoot(item)
                order.finish(item)
                continue
            }
            let parent = try db.item(item.parentItemIdentifier)
            if parent == nil, order.waitsForParent(item) { continue }
            let known = try db.item(item.itemIdentifier)
            if waitsForMoves, let known, let parent, try placement.isBelowItself(known, in: parent.inode.number) {
                order.waitForMoves(item)
                continue
            }
            let isTaken =
                try known != nil || parent != nil && parent?.inode.content != .dataless || trash.isForTrash(item)
                || required.contains(item.itemIdentifier)
            if try isTaken && !trash.isOutOfSight(known, parent: parent, &outside) {
                try placement.place(item, in: parent?.inode.number)
                if let known, known.inode.kind == .directory, item.isTrashed || known.parent != parent?.inode.number {
                    outside.forget()
                }
            }
            transaction.upcoming.remove(item.itemIdentifier)
            order.finish(item)
            isAnyPlaced = true
        }
        for item in order.waiting { report(Placement.notShown(item, "its parents form a circle")) }
        try vanish(Set(batch.deleted))
        // Until the round has ended, news are asked for from where it began.
        if notesAnchor, later.isEmpty, outdated.isEmpty { try noteAnchor(batch.anchor) }
        return outdated
    }

    /// The remote has removed these items.
    package func vanish(_ identifiers: Set<ItemIdentifier>) throws {
        transaction.upcoming.formUnion(identifiers)
        var outside = DirectoriesOutsideTrash()
        for identifier in identifiers {
            if let item = try db.item(identifier), try !trash.isOutOfSight(item, &outside) { try removal.remove(item) }
            transaction.upcoming.remove(identifier)
        }
        try ShownNames(transaction: transaction).restoreNames()
    }

    /// Notes up to where the provider's changes are taken in.
    ///
    /// - Parameters:
    ///   - held: all items that were reported as deleted before it and are not removed.
    ///   - before: items that were held when the round began, and were not reported since. Those of which a change was answered
    ///     meanwhile are not held again.
    package func noteAnchor(
        _ anchor: SyncAnchor?, holding held: Set<ItemIdentifier> = [], heldBefore before: Set<ItemIdentifier> = []
    ) throws {
        try DomainKey.syncAnchor.set(bytes: anchor?.rawValue, in: db)
        try setHeldRemovals(held, heldBefore: before)
    }

    // MARK: - Items that were looked up

    /// An item that was looked up: it goes where the remote has it, or nowhere when that directory is not known here.
    ///
    /// - Parameters:
    ///   - ancestors: the directories on the way to it that may be unknown here, the uppermost first.
    ///   - observation: begun before the item was looked up: nothing is done where an acknowledgement is newer; nil where
    ///     nothing can be newer.
    package func move(
        _ item: FileProviderItem, below ancestors: [FileProviderItem] = [],
        observed observation: Observation? = nil
    ) throws {
        if let observation, isStale(item.itemIdentifier, observation) { return }
        if item.itemIdentifier == .rootContainer { return try placement.placeRoot(item) }
        guard try db.item(item.itemIdentifier) != nil else { return }
        for directory in ancestors {
            try placement.place(directory, in: try db.item(directory.parentItemIdentifier)?.inode.number)
        }
        try placement.place(item, in: try db.item(item.parentItemIdentifier)?.inode.number)
    }

    /// The remote has no item that was changed here: what was written is offered again, the rest goes.
    ///
    /// - Parameter successor: the item that has its name there now, which may not be known here yet. What is offered again has its own
    ///   policy, rank and tags, and meets the other item then.
    package func lose(_ row: Int64, replacedBy successor: FileProviderItem?) throws {
        guard let item = try db.item(id: row), item.inode.number != .root, try !removal.keepLocalWork(in: item) else {
            return
        }
        if let successor, try db.item(successor.itemIdentifier) == nil,
            let directory = try db.item(successor.parentItemIdentifier)
        {
            try placement.place(successor, in: directory.inode.number)
        }
        try removal.remove(item)
    }

    /// Removes an item that the remote has no more, with all below it.
    ///
    /// - Parameter observation: begun before the item was looked up: nothing is done where an acknowledgement is newer.
    package func removeIfKnown(
        _ identifier: ItemIdentifier, observed observation: Observation? = nil
    ) throws {
        if let observation, isStale(identifier, observation) { return }
        guard let item = try db.item(identifier) else { return }
        // Should it come back, the version of its directory need not say so.
        if let parent = item.parent { try db.noteIncompleteIfListed(parent) }
        try removal.remove(item)
    }

    // MARK: - The trash

    /// All that is in the remote's trash.
    package func placeTrashed(_ items: [FileProviderItem], isKnownBetter: (ItemIdentifier) -> Bool) throws {
        for item in items where try trash.isForTrash(item) && !isKnownBetter(item.itemIdentifier) {
            try placement.place(item, in: nil)
        }
    }
}
