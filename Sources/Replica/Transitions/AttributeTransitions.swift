import FileProvider
import GRDB

/// The attributes of an inode that `stat` shows, except those of its local content.
extension Database {
    func writeAttributes(of inode: InodeRecord) throws {
        try run(
            """
            UPDATE inode SET size = ?, permissions = ?, owner = ?, "group" = ?, modifiedAt = ?, changedAt = ?,
                createdAt = ?, accessedAt = ? WHERE number = ?
            """,
            [
                inode.size, inode.permissions.map { Int64($0) }, inode.owner.map { Int64($0) },
                inode.group.map { Int64($0) }, inode.modifiedAt.nanosecondsSince1970,
                inode.changedAt.nanosecondsSince1970, inode.createdAt.nanosecondsSince1970,
                inode.accessedAt?.nanosecondsSince1970, inode.number.rawValue,
            ])
    }

    /// Sets the target of a symbolic link; the caller writes its new size with the attributes.
    func setLinkTarget(of number: InodeNumber, to target: String) throws {
        try run("UPDATE inode SET linkTarget = ? WHERE number = ?", [target, number.rawValue])
    }

    func setPermissions(of number: InodeNumber, to permissions: UInt16) throws {
        try run("UPDATE inode SET permissions = ? WHERE number = ?", [Int64(permissions), number.rawValue])
    }

    func setModificationTime(of number: InodeNumber, to time: FileTimestamp) throws {
        try run("UPDATE inode SET modifiedAt = ? WHERE number = ?", [time.nanosecondsSince1970, number.rawValue])
    }

    func setChangeTime(of number: InodeNumber, to time: FileTimestamp) throws {
        try run("UPDATE inode SET changedAt = ? WHERE number = ?", [time.nanosecondsSince1970, number.rawValue])
    }

    func setAccessTime(of number: InodeNumber, to time: FileTimestamp) throws {
        try run("UPDATE inode SET accessedAt = ? WHERE number = ?", [time.nanosecondsSince1970, number.rawValue])
    }

    /// Sets both times of a directory in which a name was made or removed. The remote is not told.
    func setDirectoryTimes(of directory: InodeNumber, to time: FileTimestamp) throws {
        try run(
            "UPDATE inode SET modifiedAt = ?, changedAt = ? WHERE number = ?",
            [time.nanosecondsSince1970, time.nanosecondsSince1970, directory.rawValue])
    }

    /// Forgets the local values of fields on an inode that shows the remote's version from now on.
    func forgetAttributes(_ fields: ItemFields, of number: InodeNumber) throws {
        if fields.contains(.permissions) {
            try run("UPDATE inode SET permissions = NULL WHERE number = ?", [number.rawValue])
        }
        if fields.contains(.ownership) {
            try run("UPDATE inode SET owner = NULL, \"group\" = NULL WHERE number = ?", [number.rawValue])
        }
        if fields.contains(.extendedAttributes) {
            try run("DELETE FROM extendedAttribute WHERE inode = ?", [number.rawValue])
        }
    }
}
