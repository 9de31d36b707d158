import FileProvider
import Foundation
import GRDB
import SystemPackage

/// The effect of a rename if the new name exists.
package enum RenameRule: Hashable, Sendable {
    case replace
    /// EEXIST.
    case keep
    /// Both change places.
    case exchange
}

/// Moving names.
extension LocalChanges {
    /// Gives an item another name, another directory, or both.
    ///
    /// A new file that replaces one of the remote's is a modification of that item: editors save this way, and the
    /// remote's item keeps its identifier.
    ///
    /// - Throws: ``LocalObstacle``: what `rename(2)` says.
    package mutating func rename(
        _ name: String, in parent: InodeNumber, to newName: String, in newParent: InodeNumber, _ rule: RenameRule
    ) throws {
        try check(newName)
        let directory = try writableDirectory(parent)
        let newDirectory = newParent == parent ? directory : try writableDirectory(newParent)
        var item = try child(name, of: parent)
        let target = try db.item(named: newName, in: newParent)
        if rule == .keep, target != nil { throw LocalObstacle.refused(.fileExists) }
        try checkMove(item, to: newParent, named: newName)
        if rule == .exchange {
            guard let target else { throw LocalObstacle.refused(.noSuchFileOrDirectory) }
            // Excluded and other items count as two file systems, except for special files, which are always excluded.
            let stay =
                try staysWhatItIs(item, as: newName, in: newDirectory)
                && staysWhatItIs(target, as: name, in: directory)
            guard item.isExcluded == target.isExcluded || stay else { throw LocalObstacle.refused(.improperLink) }
            try exchange(item, target)
        } else {
            // Two names of one inode: nothing happens, says POSIX.
            if let target, target.inode.number == item.inode.number { return }
            if let moving = try changeExclusion(of: item, movedTo: newDirectory, named: newName, replacing: target) {
                item = moving
                try replace(target, by: item, named: newName, in: newParent)
            }
        }
        // The remote is not told of a name that it neither had nor gets.
        let isOurs = try item.isExcluded && exclusion(ofNew: newName, in: newDirectory) != .none
        try touch(parent, isOurs: isOurs)
        if newParent != parent { try touch(newParent, isOurs: isOurs) }
        try setChangeTime(of: item.inode.number)
    }

    /// Whether an item is sent, or is not, under another name as it was under its own: special files never are.
    private func staysWhatItIs(_ item: ItemRecord, as name: String, in directory: ItemRecord) throws -> Bool {
        if item.inode.kind.itemKind == nil { return true }
        return try !item.isExcluded && exclusion(ofNew: name, in: directory) == .none
    }

    private mutating func replace(
        _ target: ItemRecord?, by item: ItemRecord, named name: String, in parent: InodeNumber
    ) throws {
        if let target {
            if target.inode.kind == .directory {
                guard item.inode.kind == .directory else { throw LocalObstacle.refused(.isDirectory) }
                try checkEmpty(target)
            } else if item.inode.kind == .directory {
                throw LocalObstacle.refused(.notDirectory)
            }
            if item.identifier == nil, !item.isToBeOffered, !item.wasSent, !item.isExcluded,
                target.identifier != nil || target.isToBeOffered,
                item.inode.kind == .file, target.inode.kind == .file
            {
                return try save(item, over: target)
            }
            try remove(target)
        }
        try place(item, named: name, in: parent)
    }

    /// An item that the remote knows takes the content of one that it does not, which is gone then.
    private mutating func save(_ item: ItemRecord, over target: ItemRecord) throws {
        guard target.capabilities.contains(.allowsWriting) else { throw LocalObstacle.refused(.permissionDenied) }
        // The version that is replaced is the local one, even if the remote has reported a newer one of an open file.
        let isUnchanged = !target.changedFields.contains(.contents) && target.inode.linkCount == 1
        let origin = isUnchanged ? target.inode.contentVersion : target.base.version.contentVersion
        var fields = item.changedFields.intersection([
            .contents, .contentModificationDate, .permissions, .ownership, .extendedAttributes,
        ])
        // A new file has none of those that the remote keeps with the old one.
        if try !db.extendedAttributes(of: target.inode.number).isEmpty { fields.insert(.extendedAttributes) }
        try db.deleteItem(item.id)
        try db.saveOver(target, with: item, fields: fields, origin: origin, at: now)
        try dropName(of: target)
    }

    private mutating func exchange(_ one: ItemRecord, _ other: ItemRecord) throws {
        guard one.id != other.id else { return }
        guard let parent = one.parent, let otherParent = other.parent else { return }
        try checkMove(other, to: parent, named: one.name)
        try db.displace(one.id)
        try place(other, named: one.name, in: parent)
        try place(one, named: other.name, in: otherParent)
        try setChangeTime(of: other.inode.number)
    }

    mutating func place(_ item: ItemRecord, named name: String, in parent: InodeNumber) throws {
        try noteTrash(of: item, named: name, movedTo: parent)
        try db.keepInReimport(item)
        try db.leaveUnanswered(item, at: now)
        let moving = try db.item(id: item.id) ?? item
        try db.move(item.id, to: parent, named: name)
        if moving.isToBeOffered {
            try db.noteWhereItIs(
                waiting: moving, movedTo: parent, named: moving.trash == nil ? name : moving.ownName, at: now)
        } else {
            try db.noteWhereItIs(item.id, at: now)
        }
    }

    private func checkMove(_ item: ItemRecord, to parent: InodeNumber, named name: String) throws {
        if try checkTrashMove(item, named: name, to: parent) {
            guard try item.inode.kind != .directory || !db.isBelow(parent, item.inode.number) else {
                throw LocalObstacle.refused(.invalidArgument)
            }
            return
        }
        if !item.name.utf8.elementsEqual(name.utf8), !item.capabilities.contains(.allowsRenaming) {
            throw LocalObstacle.refused(.notPermitted)
        }
        guard item.parent != parent else { return }
        guard item.capabilities.contains(.allowsReparenting) else { throw LocalObstacle.refused(.notPermitted) }
        if item.inode.kind == .directory, try db.isBelow(parent, item.inode.number) {
            throw LocalObstacle.refused(.invalidArgument)
        }
    }
}
