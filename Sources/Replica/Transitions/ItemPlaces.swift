import FileProvider
import GRDB

/// The places of items: their directory and name in the mount, their inode, and the trash.
extension Database {
    /// Shows an item in a directory under a name. Precondition: no other item has the name there.
    ///
    /// - Parameter parent: nil for a directory that is not known here.
    func move(_ row: Int64, to parent: InodeNumber?, named name: String) throws {
        try run("UPDATE item SET parent = ?, name = ? WHERE id = ?", [parent?.rawValue, name, row])
    }

    /// Makes a conflict copy that leaves its directory an ordinary file: a file that has its original's name elsewhere is
    /// another one.
    func endConflict(of row: Int64) throws {
        try run("UPDATE item SET conflictOf = NULL, collisions = 0 WHERE id = ? AND conflictOf IS NOT NULL", [row])
    }

    /// Shows an item under another name in its directory. Precondition: no other item has the name there.
    func setName(of row: Int64, to name: String) throws {
        try run("UPDATE item SET name = ? WHERE id = ?", [name, row])
    }

    /// Takes an item's name away, so that another item can have it: no lookup finds it until it is given a name again.
    func displace(_ row: Int64) throws {
        try setName(of: row, to: Displacement.name(forItem: row))
    }

    /// Makes an item the name of another inode. The caller has counted the link there and takes it from the old one.
    func setInode(of row: Int64, to number: InodeNumber) throws {
        try run("UPDATE item SET inode = ? WHERE id = ?", [number.rawValue, row])
    }

    /// Compares an item's place with its place on the remote, and makes pending exactly what differs.
    ///
    /// Of an item that has no identifier all is pending. What could not be sent before is tried at once.
    func noteWhereItIs(_ row: Int64, at now: FileTimestamp) throws {
        if let item = try item(id: row) { try noteWhereItIs(item, at: now) }
    }

    /// As ``noteWhereItIs(_:at:)``, of the row as it is.
    func noteWhereItIs(_ item: ItemRecord, at now: FileTimestamp) throws {
        guard item.identifier != nil else {
            try retryItem(item.id)
            // Its failure may have been about the name that it had.
            if item.changedFields != [] { try forgetFailure(of: item.inode.number) }
            return
        }
        let fields = try pendingFields(ofPlaced: item)
        try setChangedFields(of: item.id, to: fields, at: now)
        // Its failure was about a change that is no longer there.
        if fields.isEmpty, !item.changedFields.isEmpty { try forgetFailure(of: item.inode.number) }
    }

    /// As ``noteWhereItIs(_:at:)``, after a report that repeats where the remote has the item: a change that has failed waits
    /// as before, unless other fields are pending now. Each comparison of a directory repeats its items.
    func noteUnmoved(_ row: Int64, at now: FileTimestamp) throws {
        guard let item = try item(id: row), try pendingFields(ofPlaced: item) != item.changedFields else { return }
        try noteWhereItIs(item, at: now)
    }

    /// What is pending of an item that the remote has: its place as far as it differs, and its other changes.
    private func pendingFields(ofPlaced item: ItemRecord) throws -> ItemFields {
        var fields = item.changedFields.subtracting([.filename, .parentItemIdentifier])
        // In the trash the local name is not the remote's.
        if item.trash == nil, item.base.name?.utf8.elementsEqual(item.name.utf8) != true { fields.insert(.filename) }
        let parent = try item.parent.flatMap { try self.identifier(ofInode: $0) }
        if parent == nil || parent != item.base.parent { fields.insert(.parentItemIdentifier) }
        // A request that has no answer may have moved it on the remote: its place is sent even if it is the old one again,
        // and what the remote says meanwhile is not taken for news.
        if item.wasSent { fields.formUnion(item.changedFields.intersection([.filename, .parentItemIdentifier])) }
        return fields
    }

    /// As ``noteWhereItIs(_:at:)`` for an item that waits to be offered again: its place on the remote stays known.
    func noteWhereItIs(
        waiting item: ItemRecord, movedTo parent: InodeNumber, named name: String, at now: FileTimestamp
    ) throws {
        guard item.isToBeOffered, let base = item.base.name else { return }
        let origin = try item.base.parent ?? item.parent.flatMap { try providerName(of: $0) }
        let isElsewhere = try providerName(of: parent) != origin
        var fields = item.changedFields.subtracting([.filename, .parentItemIdentifier])
        if isElsewhere { fields.insert(.parentItemIdentifier) }
        if !base.utf8.elementsEqual(name.utf8) { fields.insert(.filename) }
        try setChangedFields(of: item.id, to: fields, at: now)
        try setBaseParent(of: item.id, to: isElsewhere ? origin : nil)
    }

    // MARK: - The trash

    /// An item is trashed. Precondition: it still has the place from which it is trashed, which is remembered.
    func noteTrashed(_ item: ItemRecord, at now: FileTimestamp) throws {
        let parent = try item.parent.flatMap { try self.item(ofInode: $0) }
        try run(
            "UPDATE item SET trashedAt = ?, trashParent = ?, trashAncestors = ?, trashName = ? WHERE id = ?",
            [
                now.nanosecondsSince1970,
                (parent.map { $0.identifier ?? $0.placeholder } ?? item.base.parent)?.rawValue,
                TrashPlace.text(of: try ancestors(from: item.parent)),
                item.nameForUser, item.id,
            ])
    }

    /// A new item is trashed, and its place before that is not known: it is restored to the root.
    func noteTrashed(newItem row: Int64, named name: String, at now: FileTimestamp) throws {
        try run(
            "UPDATE item SET trashedAt = ?, trashAncestors = ?, trashName = ? WHERE id = ?",
            [now.nanosecondsSince1970, TrashPlace.text(of: [.root]), name, row])
    }

    /// A trashed item of an import was in this directory, where the remote still has it.
    func setTrashOrigin(of row: Int64, to directory: InodeNumber) throws {
        let name = try providerName(of: directory)?.rawValue
        try run(
            "UPDATE item SET baseParent = ?, trashParent = ?, trashAncestors = ? WHERE id = ?",
            [name, name, TrashPlace.text(of: try ancestors(from: directory)), row])
    }

    /// An item leaves the trash. There was no news of what it holds: that has to be compared with the remote.
    func noteRestored(_ item: ItemRecord) throws {
        try run(
            """
            UPDATE item SET trashedAt = NULL, trashParent = NULL, trashAncestors = NULL, trashName = NULL WHERE id = ?
            """, [item.id])
        if item.inode.kind == .directory { try noteIncompleteIfListed(from: item.inode.number) }
    }
}
