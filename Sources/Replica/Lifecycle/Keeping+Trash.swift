import FileProvider
import GRDB
import Syscalls

/// What was moved into the trash here and the remote has not heard of it: it is trashed there when it is taken back.
extension ReplicaDatabase {
    /// How the manifest tells of a trashed item; nil when the remote has it in its trash already, or has never had it.
    ///
    /// - Parameter owner: whose trash it lies in.
    func describeTrashing(of item: ItemRecord, in owner: UInt32) throws -> Manifest.Item? {
        guard let place = item.trash, item.changedFields.contains(.parentItemIdentifier), let parent = item.base.parent,
            let name = item.base.name,
            let path = try read({ db in try db.known(parent).flatMap { try db.path(of: $0.inode.number) } })
        else { return nil }
        var described = try describeForManifest(item, at: (path + [name]).joined(separator: "/"), isHere: false)
        guard described.identifier != nil else { return nil }
        // What was written in it lies in the folder 'trash': without that it is what the remote has.
        described.changedFields = ItemFields.parentItemIdentifier.rawValue
        if item.inode.kind == .file, item.changedFields.contains(.contents) {
            described.size = item.base.size
            if let modified = item.base.modifiedAt { described.modified = modified.nanosecondsSince1970 }
        }
        described.remoteName = nil
        described.remoteDirectory = path.joined(separator: "/")
        described.link = nil
        described.trashedAt = place.date.nanosecondsSince1970
        described.trashOwner = owner
        return described
    }
}

extension Database {
    /// The directories from which something was moved into the trash, or removed, and the remote has not heard of it.
    func directoriesWithGone() throws -> [Int64] {
        try all(
            """
            SELECT directory.inode FROM deletion JOIN item AS directory ON directory.identifier = deletion.baseParent
            UNION
            SELECT directory.inode FROM item INDEXED BY trashedItem
                JOIN item AS directory ON directory.identifier = item.baseParent
                WHERE item.trashedAt IS NOT NULL AND item.changedFields & \(field: .parentItemIdentifier)
            """, [], { $0[0] as Int64 })
    }

    /// Puts an item into the trash of a new replica, as one that the remote has elsewhere.
    ///
    /// - Returns: its row, once the directories of the manifest are there, to be told where it was.
    func insertTrashed(
        _ item: Manifest.Item, contents: ContentStore, insert: (String, InodeNumber) throws -> Int64?
    ) throws -> Int64? {
        guard let trashedAt = item.trashedAt else { return nil }
        let owner = item.trashOwner ?? Machine.userIdentifier
        let last = item.path.utf8.split(separator: UInt8(ascii: "/")).last.map { String(Substring($0)) } ?? item.path
        var directories = TrashDirectories(db: self, contents: contents, now: FileTimestamp.now)
        let group = owner == Machine.userIdentifier ? Machine.groupIdentifier : item.group ?? 0
        let trash = try directories.trash(of: owner, group: group)
        let name = try directories.freeName(for: last, in: trash)
        guard let row = try insert(name, trash.files) else { return nil }
        try noteTrashed(
            newItem: row, named: last, at: FileTimestamp(nanosecondsSince1970: trashedAt))
        return row
    }

    /// Says where a trashed item of a manifest was.
    func placeTrashed(_ row: Int64, from directory: InodeNumber, contents: ContentStore) throws {
        try setTrashOrigin(of: row, to: directory)
        guard let item = try item(id: row), let files = item.parent else { return }
        var directories = TrashDirectories(db: self, contents: contents, now: FileTimestamp.now)
        guard let trash = try directories.trash(with: files) else { return }
        try directories.writeInformation(of: item, named: item.name, in: trash)
    }
}
