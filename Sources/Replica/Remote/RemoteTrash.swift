import FileProvider
import Syscalls

/// The remote's trash: what is trashed there lies in the trash here, and what lies below a trashed directory is left
/// as it was.
struct RemoteTrash: RemotePart {
    let transaction: RemoteTransaction
    private var versions: ContentVersions { ContentVersions(transaction: transaction) }

    /// Whether a report of an item is about a trashed one.
    func isForTrash(_ item: FileProviderItem) throws -> Bool { try item.isTrashed && db.hasTrash() }

    /// Whether an item is outside the working set: below a trashed directory, and not moved out of it.
    func isOutOfSight(
        _ known: ItemRecord?, parent: ItemRecord?, _ outside: inout DirectoriesOutsideTrash
    ) throws -> Bool {
        guard try db.hasTrashDirectories() else { return false }
        if let known, try known.trash != nil || !outside.isTrashed(known.parent, in: db) { return false }
        guard let parent else { return false }
        return try outside.isTrashed(parent.inode.number, in: db)
    }

    /// Whether an item left the working set because a directory above it was trashed: its deletion is not applied.
    func isOutOfSight(_ known: ItemRecord, _ outside: inout DirectoriesOutsideTrash) throws -> Bool {
        guard try db.hasTrashDirectories() else { return false }
        return try known.trash == nil && outside.isTrashed(known.parent, in: db)
    }

    /// The directory of trashed items that an item belongs in: the one that it lies in, or that of the daemon's
    /// user.
    func directory(for known: ItemRecord?) throws -> InodeNumber {
        if let parent = known?.parent, try db.trashRole(of: parent) == .files { return parent }
        return try withTrash { try $0.trash(of: Machine.userIdentifier, group: Machine.groupIdentifier).files }
    }

    /// A name in a trash that nothing has.
    func freeName(for name: String, in files: InodeNumber) throws -> String {
        try withTrash { directories in
            guard let trash = try directories.trash(with: files) else { return name }
            return try directories.freeName(for: name, in: trash)
        }
    }

    /// An item has come into the trash under a name; `before` is what it was.
    func noteTrashed(_ before: ItemRecord, as item: FileProviderItem, named name: String, in files: InodeNumber)
        throws
    {
        try db.noteTrashed(before, at: item.trashDate ?? now)
        try writeTrashInformation(of: before.id, named: name, in: files)
    }

    /// A new item has come into the trash: its place before that is not known.
    func noteTrashed(newItem row: Int64, as item: FileProviderItem, named name: String, in files: InodeNumber)
        throws
    {
        try db.noteTrashed(newItem: row, named: item.filename, at: item.trashDate ?? now)
        try writeTrashInformation(of: row, named: name, in: files)
    }

    /// An item has left the trash; `before` is what it was there.
    func noteRestored(_ before: ItemRecord) throws {
        try removeInformation(of: before)
        try db.noteRestored(before)
    }

    /// Removes the file in `info` that belongs to a trashed item.
    func removeInformation(of item: ItemRecord) throws {
        guard item.trash != nil, let files = item.parent else { return }
        let nameless = try withTrash { try $0.removeInformation(named: item.name, in: files) }
        if let nameless, !open.keepsNameless(nameless) { try versions.drop(nameless) }
    }
}
