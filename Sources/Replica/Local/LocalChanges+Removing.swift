import FileProvider
import Foundation
import GRDB
import SystemPackage

/// Removing names.
extension LocalChanges {
    /// Removes a name that is no directory's.
    ///
    /// - Returns: the inode that it was.
    /// - Throws: ``LocalObstacle``: ENOENT, EISDIR, EACCES.
    @discardableResult
    package mutating func unlink(_ name: String, in parent: InodeNumber) throws -> InodeNumber {
        _ = try writableDirectory(parent)
        let item = try child(name, of: parent)
        guard item.inode.kind != .directory else { throw LocalObstacle.refused(.isDirectory) }
        let isOurs = try db.exclusion(of: item) == .name
        try remove(item)
        try touch(parent, isOurs: isOurs)
        return item.inode.number
    }

    /// Removes an empty directory.
    ///
    /// - Throws: ``LocalObstacle``: ENOENT, ENOTDIR, ENOTEMPTY, EACCES; one that was never listed is listed first.
    package mutating func removeDirectory(_ name: String, in parent: InodeNumber) throws {
        _ = try writableDirectory(parent)
        let item = try child(name, of: parent)
        try checkEmpty(item)
        let isOurs = try db.exclusion(of: item) == .name
        try remove(item)
        try touch(parent, isOurs: isOurs)
    }

    func checkEmpty(_ item: ItemRecord) throws {
        guard item.inode.kind == .directory else { throw LocalObstacle.refused(.notDirectory) }
        guard item.inode.content == .materialized else { throw LocalObstacle.listing(of: item.inode.number) }
        let isEmpty = try db.one(
            "SELECT NOT EXISTS (SELECT 1 FROM item WHERE parent = ?)", [item.inode.number.rawValue], { $0[0] as Bool })
        guard isEmpty == true else { throw LocalObstacle.refused(.directoryNotEmpty) }
    }

    /// Takes an item away here and, when the remote has it, there, too.
    mutating func remove(_ item: ItemRecord) throws {
        guard item.capabilities.contains(.allowsDeleting) else { throw LocalObstacle.refused(.notPermitted) }
        try db.queueDeletion(of: item, at: now)
        try db.keepUnanswered(of: item, at: now)
        try db.deleteItem(item.id)
        try dropName(of: item)
    }
}
