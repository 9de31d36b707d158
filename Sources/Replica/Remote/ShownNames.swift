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

    private static let decoratedItems = """
        SELECT id FROM item INDEXED BY renamedItem
        WHERE name <> baseName AND changedFields & \(field: .filename) = 0 AND parent IS NOT NULL AND trashedAt IS NULL
        ORDER BY id
        """

    /// Items that were shown under a decorated name take their own where it has become free.
    func restoreNames() throws {
        let waiting = try db.all(Self.decoratedItems, [], { $0[0] as Int64 })
        if !waiting.isEmpty { try willChangeNames() }
        for row in waiting {
            guard let item = try db.item(id: row), item.isDecorated, let own = item.base.name, let parent = item.parent,
                try db.item(named: own, in: parent) == nil
            else { continue }
            try db.setName(of: item.id, to: own)
            tellKernel([
                .departure(of: item, from: parent), .entry(parent: parent, name: own), .contents(parent),
            ])
        }
    }
}
