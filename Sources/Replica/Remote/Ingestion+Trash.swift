import FileProvider
import GRDB
import Syscalls

/// The remote's trash: what is trashed there lies in the trash here, and what lies below a trashed directory is left
/// as it was.
extension Ingestion {
    /// Whether a report of an item is about a trashed one.
    func isForTrash(_ item: FileProviderItem) throws -> Bool { try item.isTrashed && db.hasTrash() }

    /// Whether an item is outside the working set: below a trashed directory, and not moved out of it.
    func isOutOfSight(_ known: ItemRecord?, parent: ItemRecord?) throws -> Bool {
        guard try db.hasTrashDirectories() else { return false }
        if let known, try known.trash != nil || !db.isTrashed(known.parent) { return false }
        guard let parent else { return false }
        return try db.isTrashed(parent.inode.number)
    }

    /// Whether an item left the working set because a directory above it was trashed: its deletion is not applied.
    func isOutOfSight(_ known: ItemRecord) throws -> Bool {
        guard try db.hasTrashDirectories() else { return false }
        return try known.trash == nil && db.isTrashed(known.parent)
    }

    /// The directory of trashed items that an item belongs in: the one that it lies in, or that of the daemon's
    /// user.
    mutating func trashDirectory(for known: ItemRecord?) throws -> InodeNumber {
        if let parent = known?.parent, try db.trashRole(of: parent) == .files { return parent }
        return try withTrash { try $0.trash(of: Machine.userIdentifier, group: Machine.groupIdentifier).files }
    }

    /// A name in a trash that nothing has.
    mutating func freeTrashName(for name: String, in files: InodeNumber) throws -> String {
        try withTrash { directories in
            guard let trash = try directories.trash(with: files) else { return name }
            return try directories.freeName(for: name, in: trash)
        }
    }

    /// An item has come into the trash under a name; `before` is what it was.
    mutating func noteTrashed(_ before: ItemRecord, named name: String, in files: InodeNumber) throws {
        try db.noteTrashed(before, at: now)
        try writeInformation(of: before.id, named: name, in: files)
    }

    /// A new item has come into the trash: its place before that is not known.
    mutating func noteTrashed(newItem row: Int64, as item: FileProviderItem, named name: String, in files: InodeNumber)
        throws
    {
        try db.noteTrashed(newItem: row, named: item.filename, at: now)
        try writeInformation(of: row, named: name, in: files)
    }

    /// An item has left the trash; `before` is what it was there.
    mutating func noteRestored(_ before: ItemRecord) throws {
        try removeInformation(of: before)
        try db.noteRestored(before)
    }

    /// Removes the file in `info` that belongs to a trashed item.
    mutating func removeInformation(of item: ItemRecord) throws {
        guard item.trash != nil, let files = item.parent else { return }
        let nameless = try withTrash { try $0.removeInformation(named: item.name, in: files) }
        if let nameless, !open.keepsNameless(nameless) { try drop(nameless) }
    }

    private mutating func writeInformation(of row: Int64, named name: String, in files: InodeNumber) throws {
        let db = db
        try withTrash { directories in
            guard let trash = try directories.trash(with: files), let item = try db.item(id: row) else { return }
            try directories.writeInformation(of: item, named: name, in: trash)
        }
    }

    private mutating func withTrash<Value>(_ body: (inout TrashDirectories) throws -> Value) throws -> Value {
        var directories = TrashDirectories(db: db, contents: contents, now: now)
        let value = try body(&directories)
        effects.invalidations += directories.invalidations
        return value
    }
}

extension Ingestion {
    /// All that is in the remote's trash.
    package mutating func trash(_ items: [FileProviderItem], isKnownBetter: (ItemIdentifier) -> Bool) throws {
        for item in items where try isForTrash(item) && !isKnownBetter(item.itemIdentifier) {
            try place(item, in: nil)
        }
    }
}

extension ReplicaDatabase {
    /// The items that the remote had in its trash when it was last heard of them, and that are not among these.
    package func itemsTrashedOnRemote(otherThan identifiers: Set<ItemIdentifier>) throws -> [ItemIdentifier] {
        try read { db in
            try String.fetchAll(
                db,
                sql: "SELECT identifier FROM item WHERE baseParent = ? AND identifier IS NOT NULL",
                arguments: [ItemIdentifier.trashContainer.rawValue]
            ).map(ItemIdentifier.init(rawValue:)).filter { !identifiers.contains($0) }
        }
    }
}
