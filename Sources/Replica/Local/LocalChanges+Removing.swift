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
        try db.run("DELETE FROM item WHERE id = ?", [item.id])
        try dropName(of: item)
    }
}

extension Database {
    /// Remembers that the remote has to delete an item, if it has it.
    func queueDeletion(of item: ItemRecord, at now: FileTimestamp) throws {
        if item.isToBeOffered { return try queueDeletion(ofUnknown: item, at: now) }
        guard let identifier = item.identifier, let parent = item.base.parent, let name = item.base.name else { return }
        try run(
            """
            INSERT OR REPLACE INTO deletion (identifier, kind, baseParent, baseName, baseContentVersion,
                baseMetadataVersion, pendingSince) VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            [
                identifier.rawValue, item.inode.kind.rawValue, parent.rawValue, name,
                Data(item.base.version.contentVersion), Data(item.base.version.metadataVersion),
                now.nanosecondsSince1970,
            ])
    }

    /// As the other, for an item whose identifier was given up: it has to be found on the remote first.
    private func queueDeletion(ofUnknown item: ItemRecord, at now: FileTimestamp) throws {
        guard let name = item.base.name,
            let parent = try item.base.parent ?? item.parent.flatMap({ try providerName(of: $0) })
        else { return }
        try run(
            """
            INSERT OR REPLACE INTO deletion (identifier, kind, baseParent, baseName, baseContentVersion,
                baseMetadataVersion, pendingSince, isToBeFound) VALUES (?, ?, ?, ?, ?, ?, ?, 1)
            """,
            [
                item.placeholder.rawValue, item.inode.kind.rawValue, parent.rawValue, name,
                Data(item.base.version.contentVersion), Data(item.base.version.metadataVersion),
                now.nanosecondsSince1970,
            ])
    }

    /// The names of an inode's extended attributes.
    func extendedAttributeNames(of number: InodeNumber) throws -> [String] {
        try String.fetchAll(
            cachedStatement(sql: "SELECT name FROM extendedAttribute WHERE inode = ? ORDER BY name"),
            arguments: [number.rawValue])
    }
}
