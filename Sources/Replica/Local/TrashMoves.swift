import FileProvider
import GRDB
import SystemPackage

/// The effects on the trash of moves into a trash directory and out of it.
package struct TrashMoves: LocalPart {
    let transaction: LocalTransaction

    /// Takes away what the trash's `info` says of an item.
    func removeInformation(of item: ItemRecord) throws {
        guard item.trash != nil, let files = item.parent else { return }
        try removeInformation(named: item.name, in: files)
    }

    private func removeInformation(named name: String, in files: InodeNumber) throws {
        let nameless = try withTrash { try $0.removeInformation(named: name, in: files) }
        guard let nameless, !open.keepsNameless(nameless), let inode = try db.inode(nameless) else { return }
        try deleteNameless(inode)
    }

    /// Takes away what `info` says of items that are not there: who moves an item out of the trash by hand leaves it.
    /// Those who trash write it first, so what is new is left alone.
    package func removeOrphanedInformation(before moment: FileTimestamp) throws {
        let orphans = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT files.inode, substr(information.name, 1, length(information.name) - 10)
                    FROM item AS directory JOIN item AS files ON files.parent = directory.parent
                    JOIN item AS information ON information.parent = directory.inode
                    JOIN inode ON inode.number = information.inode
                    WHERE directory.trashRole = \(trash: .information) AND files.trashRole = \(trash: .files)
                        AND inode.createdAt < ?
                        AND information.name GLOB '*.trashinfo' AND length(CAST(information.name AS BLOB)) < 255
                        AND NOT EXISTS (SELECT 1 FROM item WHERE item.parent = files.inode
                            AND item.name = substr(information.name, 1, length(information.name) - 10))
                    """), arguments: [moment.nanosecondsSince1970])
        for row in orphans { try removeInformation(named: row[1], in: InodeNumber(rawValue: row[0])) }
    }

    /// An item comes into a directory: notes what that means for the trash, before it is there.
    func noteTrash(of item: ItemRecord, named name: String, movedTo parent: InodeNumber) throws {
        guard try db.trashRole(of: parent) == .files else {
            if item.trash != nil { try db.noteRestored(item) }
            return
        }
        if item.trash == nil { try db.noteTrashed(item, at: now) }
        try writeTrashInformation(of: item.id, named: name, in: parent)
    }

    // MARK: - What may be done

    func checkTrashing(_ item: ItemRecord) throws {
        guard item.capabilities.contains(.allowsTrashing) || item.isExcluded else {
            throw LocalObstacle.refused(.permissionDenied)
        }
    }

    /// Whether a move has to do with a trash, and then whether it may be.
    ///
    /// - Returns: false when it is as any other move.
    func checkTrashMove(_ item: ItemRecord, named name: String, to parent: InodeNumber) throws -> Bool {
        if item.trashRole != .none { throw LocalObstacle.refused(.resourceBusy) }
        guard try db.hasTrashDirectories() else { return false }
        let (from, to) = (try db.trashArea(of: item.parent), try db.trashArea(of: parent))
        // The trash's own files, which are excluded, count as another file system.
        guard (from == .local) == (to == .local) else { throw LocalObstacle.refused(.improperLink) }
        switch (from, to) {
        case (.files, .files): return true
        case (_, .files):
            try checkTrashing(item)
            return true
        case (.files, _):
            let keepsName = item.ownName.utf8.elementsEqual(name.utf8)
            guard keepsName || item.capabilities.contains(.allowsRenaming) else {
                throw LocalObstacle.refused(.permissionDenied)
            }
            return true
        default: return false
        }
    }

    /// Verifies that a name is not that of the trash for all users.
    ///
    /// - Throws: ``LocalObstacle``: EPERM.
    func checkIsNotShared(_ name: String, in parent: InodeNumber) throws {
        guard !TrashRole.isShared(name, in: parent) else { throw LocalObstacle.refused(.notPermitted) }
    }

    /// The role of a new item in the trash, and whether it stays on this machine.
    ///
    /// - Throws: ``LocalObstacle``: EPERM for `.Trash`, and for a trash directory where there is no trash.
    func role(
        ofNew name: String, _ kind: InodeKind, in parent: InodeNumber
    ) throws -> (role: TrashRole, isLocal: Bool) {
        try checkIsNotShared(name, in: parent)
        if parent == .root {
            let role = TrashDirectories.role(of: name, in: parent, .none)
            guard kind == .directory, role != .none else { return (.none, false) }
            guard try db.hasTrash() else { throw LocalObstacle.refused(.notPermitted) }
            return (role, true)
        }
        guard try db.trashArea(of: parent) == .local else { return (.none, false) }
        let parentRole = try db.trashRole(of: parent)
        return (kind == .directory ? TrashDirectories.role(of: name, in: parent, parentRole) : .none, true)
    }
}
