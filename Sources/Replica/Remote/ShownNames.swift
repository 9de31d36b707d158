import FileProvider

/// The names under which items are shown, where several items of a directory have one name.
struct ShownNames: RemotePart {
    let transaction: RemoteTransaction

    /// The name under which an item is shown: its own, or a decorated one when another item has it and stays.
    ///
    /// - Parameter holder: the item that has the name.
    func claim(
        _ name: String, in parent: InodeNumber, from holder: ItemRecord?, for item: ItemRecord?,
        identifier: ItemIdentifier
    ) throws -> String {
        guard let holder, holder.id != item?.id else { return name }
        if try makesRoom(holder) {
            try db.displace(holder.id)
            tellKernel([.departure(of: holder, from: parent)])
            return name
        }
        let candidate = try db.freeName(for: name, in: parent, held: item?.id)
        // A change does not say whether the other one is still there: its removal may have been missed.
        if transaction.listing == nil, candidate != item?.name { try db.noteIncompleteIfListed(parent) }
        // Two that wait to be recognized may turn out to be one.
        if !holder.isToBeOffered {
            let text =
                if try isReplaced(holder) {
                    "'\(name)' was changed here while the remote put another item in its place: the local version keeps the name, "
                        + "and '\(identifier)' of the remote is shown as '\(candidate)'"
                } else {
                    "two items are called '\(name)' on the remote: '\(identifier)' is shown as '\(candidate)'"
                }
            reportDecoration(of: identifier, text)
        }
        return candidate
    }

    /// Whether the item that has a name has it only here, as far as is known: it is new, was moved or renamed here, or its content was
    /// changed here and the remote has not listed it beside the other one.
    private func isReplaced(_ holder: ItemRecord) throws -> Bool {
        let changed = holder.changedFields
        if holder.identifier == nil || !changed.isDisjoint(with: [.filename, .parentItemIdentifier]) { return true }
        guard changed.contains(.contents) else { return false }
        return try transaction.listing.map { try !db.wasSeen(holder.id, in: $0) } ?? true
    }

    private func makesRoom(_ holder: ItemRecord) throws -> Bool {
        guard let identifier = holder.identifier, holder.changedFields.isEmpty else { return false }
        if transaction.upcoming.contains(identifier) { return true }
        guard let listing = transaction.listing, !transaction.newer.contains(identifier) else { return false }
        return try !db.wasSeen(holder.id, in: listing)
    }

    private static let isDecorated = """
        item.name <> item.baseName AND item.changedFields & \(field: .filename) = 0 AND item.trashedAt IS NULL
            AND \(Displacement.isNotDisplaced)
        """

    /// The items that may have their own name now.
    static let restorableItems = """
        SELECT item.id FROM item INDEXED BY renamedItem
        WHERE \(isDecorated) AND item.parent IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM item AS holder WHERE holder.parent = item.parent AND holder.name = item.baseName)
        ORDER BY item.id
        """

    /// The item that is to have a name in a directory.
    static let waitingItem = """
        SELECT item.id FROM item INDEXED BY renamedItem
        WHERE item.parent = ? AND item.baseName = ? AND \(isDecorated)
        ORDER BY item.id LIMIT 1
        """

    /// Items that were shown under a decorated name take their own where it has become free, also by a change here.
    func restoreNames() throws {
        let waiting = try db.all(Self.restorableItems, [], { $0[0] as Int64 })
        if !waiting.isEmpty { try willChangeNames() }
        for row in waiting { _ = try restoreName(of: row) }
    }

    /// A name has become free: the item that is shown under a decorated name because of it takes it. What has waited for the decorated
    /// name takes that.
    func restoreName(_ name: String, in parent: InodeNumber) throws {
        var freed: String? = name
        while let name = freed,
            let row = try db.one(Self.waitingItem, [parent.rawValue, name], { $0[0] as Int64 })
        {
            try willChangeNames()
            freed = try restoreName(of: row)
        }
    }

    /// As ``restoreName(_:in:)``, of a name on the remote.
    func restoreName(_ name: String?, inRemote directory: ItemIdentifier?) throws {
        guard let name, let directory, let parent = try db.item(directory)?.inode.number else { return }
        try restoreName(name, in: parent)
    }

    /// - Returns: the decorated name that the item does not have any more; nil where its own is not free.
    private func restoreName(of row: Int64) throws -> String? {
        guard let item = try db.item(id: row), item.isDecorated, let own = item.base.name, let parent = item.parent,
            try !db.hasItem(named: own, in: parent)
        else { return nil }
        try db.setName(of: item.id, to: own)
        tellKernel([.departure(of: item, from: parent), .entry(parent: parent, name: own), .contents(parent)])
        return item.name
    }
}
