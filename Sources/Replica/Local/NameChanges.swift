import FileNames
import FileProvider
import SystemPackage

/// The effect of a rename if the new name exists.
package enum RenameRule: Hashable, Sendable {
    case replace
    /// EEXIST.
    case keep
    case exchange
}

/// Names: made, removed, moved.
///
/// A new item is complete at once, and is offered to the provider under a template identifier that stays the same until the
/// provider has given a permanent one.
package struct NameChanges: LocalPart {
    let transaction: LocalTransaction
    private var trashMoves: TrashMoves { TrashMoves(transaction: transaction) }
    private var exclusions: Exclusions { Exclusions(transaction: transaction) }
    private var access: AccessControl { AccessControl(transaction: transaction) }

    /// Makes a file, directory, link or node.
    ///
    /// - Parameters:
    ///   - usualGroup: the group of directories that say nothing themselves.
    ///   - isListed: whether the directory has to be listed first.
    /// - Throws: ``LocalObstacle``: EEXIST, ENAMETOOLONG, EACCES.
    package func create(
        _ name: String, in parent: InodeNumber, _ new: NewInode, caller: LocalCaller, usualGroup: UInt32,
        isListed: Bool = true
    ) throws -> InodeRecord {
        try make(name, in: parent, new, caller: caller, usualGroup: usualGroup, isListed: isListed, isWritten: false)
            .inode
    }

    /// Makes a file that is open for writing from the beginning.
    ///
    /// - Returns: the file, and its content, open; the caller's to close.
    package func createFile(
        _ name: String, in parent: InodeNumber, permissions: UInt16, caller: LocalCaller, usualGroup: UInt32,
        isListed: Bool = true
    ) throws -> (inode: InodeRecord, content: FileDescriptor) {
        let made = try make(
            name, in: parent, NewInode(kind: .file, permissions: permissions), caller: caller, usualGroup: usualGroup,
            isListed: isListed, isWritten: true)
        guard let content = made.content else { throw LocalObstacle.refused(.ioError) }
        transaction.opened = content
        return (made.inode, content)
    }

    /// Makes a file that has no name, open for writing (`O_TMPFILE`). ``link(_:as:in:)`` may give it one; without one it goes
    /// when no process uses it, or at the next start.
    ///
    /// - Returns: the file, and its content, open; the caller's to close.
    package func createUnnamed(
        in parent: InodeNumber, permissions: UInt16, caller: LocalCaller, usualGroup: UInt32
    ) throws -> (inode: InodeRecord, content: FileDescriptor) {
        let directory = try writableDirectory(parent, isListed: false)
        guard transaction.hasRoom() else { throw LocalObstacle.room }
        var new = NewInode(kind: .file, permissions: permissions)
        let attributes = try access.inheritAccess(by: &new, in: parent, caller: caller)
        // The name is not used: it only describes what a file of this directory is like.
        let creation = try creation(
            of: new, named: "unnamed", in: directory, caller: caller, usualGroup: usualGroup, isWritten: true)
        let number = try db.insertInode(creation)
        try access.insert(attributes, of: number)
        try db.unlink(number, at: now)
        try db.noteUnnamed(number)
        let content = try contents.create(number, size: 0, isFirst: true)
        transaction.opened = content
        var inode = creation.inode(number)
        inode.linkCount = 0
        return (inode, content)
    }

    private func make(
        _ name: String, in parent: InodeNumber, _ new: NewInode, caller: LocalCaller, usualGroup: UInt32,
        isListed: Bool, isWritten: Bool
    ) throws -> (inode: InodeRecord, content: FileDescriptor?) {
        let directory = try directory(for: name, in: parent, isListed: isListed)
        guard transaction.hasRoom() else { throw LocalObstacle.room }
        var new = new
        let attributes = try access.inheritAccess(by: &new, in: directory.inode.number, caller: caller)
        let creation = try creation(
            of: new, named: name, in: directory, caller: caller, usualGroup: usualGroup, isWritten: isWritten)
        let made = try db.insert(creation)
        try access.insert(attributes, of: made.number)
        if creation.item.role != .top { try touch(directory, isOurs: creation.item.exclusion == .name) }
        if directory.trashRole == .files, let made = try db.item(id: made.row) {
            try trashMoves.noteTrash(of: made, named: name, movedTo: parent)
        }
        var content: FileDescriptor?
        if new.kind == .file {
            let file = try contents.create(made.number, size: 0, isFirst: true)
            if isWritten { content = file } else { try file.close() }
        }
        return (creation.inode(made.number), content)
    }

    /// The directory in which a name is to be made that is not there yet.
    ///
    /// - Throws: ``LocalObstacle``: EEXIST, ENAMETOOLONG, EACCES.
    func directory(for name: String, in parent: InodeNumber, isListed: Bool = true) throws -> DirectoryRecord {
        try check(name)
        let directory = try writableDirectory(parent, isListed: isListed)
        guard try !db.hasItem(named: name, in: parent) else { throw LocalObstacle.refused(.fileExists) }
        return directory
    }

    /// The creation of a new item in a directory, with all decisions about it.
    func creation(
        of new: NewInode, named name: String, in directory: DirectoryRecord, caller: LocalCaller, usualGroup: UInt32,
        isWritten: Bool
    ) throws -> Creation {
        let parent = directory.inode.number
        let (role, isLocal) = try trashMoves.role(ofNew: name, new.kind, in: parent)
        var new = new
        if new.kind == .directory, directory.passesGroupOn { new.permissions |= 0o2000 }
        // A remote whose names are text can have no such link either.
        let isByteTarget = !transaction.ignored.sendsByteNames && new.linkTarget.map(FileNameText.isUTF8) == false
        let item = try exclusions.newItem(
            name, in: parent, new.kind,
            as: isLocal || isByteTarget ? .unwanted : exclusions.exclusion(ofNew: name, in: directory),
            role: role)
        return Creation(
            item: item, new: new, owner: caller.user, group: directory.groupOfNew(caller, usualGroup: usualGroup),
            isWritten: isWritten)
    }

    /// Gives an inode one more name: another item, which shares its content.
    ///
    /// - Parameter isListed: as for ``create(_:in:_:caller:usualGroup:isListed:)``.
    /// - Throws: ``LocalObstacle``: EPERM for directories, EEXIST, EMLINK; the content has to be here, because it is
    ///   sent once more.
    package func link(
        _ number: InodeNumber, as name: String, in parent: InodeNumber, isListed: Bool = true
    ) throws -> InodeRecord {
        try check(name)
        let source = try inode(number)
        guard source.kind != .directory else { throw LocalObstacle.refused(.notPermitted) }
        // Of files without a name only those of O_TMPFILE can get one; which of them, the kernel knows (O_EXCL).
        guard try source.linkCount > 0 || db.isUnnamed(number) else {
            throw LocalObstacle.refused(.noSuchFileOrDirectory)
        }
        guard source.linkCount < Self.mostLinks else { throw LocalObstacle.refused(.tooManyLinks) }
        let directory = try writableDirectory(parent, isListed: isListed)
        try trashMoves.checkIsNotShared(name, in: parent)
        guard try db.item(named: name, in: parent) == nil else { throw LocalObstacle.refused(.fileExists) }
        guard transaction.hasRoom() else { throw LocalObstacle.room }
        guard source.kind != .file || source.content == .materialized else {
            throw LocalObstacle.content(of: number)
        }
        switch try db.trashArea(of: parent) {
        case .outside, .trashed: break
        case .local, .files: throw LocalObstacle.refused(.improperLink)
        }
        let exclusion = exclusions.exclusion(ofNew: name, in: directory)
        try db.insert(exclusions.newItem(name, in: parent, source.kind, as: exclusion), of: number)
        if try !db.extendedAttributeNames(of: number).isEmpty { try mark(.extendedAttributes, of: number) }
        try db.link(number, at: now)
        if source.linkCount == 0 { try db.forgetNameless(number) }
        try touch(parent, isOurs: exclusion == .name)
        return try inode(number)
    }

    /// As many as ext4 allows.
    private static let mostLinks = 65_000

    // MARK: - Removing

    /// Removes a name that is no directory's.
    ///
    /// - Parameter isListed: whether the directory has to be listed first: else only what the remote has never heard of can be
    ///   removed.
    /// - Returns: the inode that it was.
    /// - Throws: ``LocalObstacle``: ENOENT, EISDIR, EACCES.
    @discardableResult
    package func unlink(_ name: String, in parent: InodeNumber, isListed: Bool = true) throws -> InodeNumber {
        let directory = try writableDirectory(parent, isListed: isListed)
        let item = try child(name, of: parent)
        try checkListed(directory, for: item)
        guard item.inode.kind != .directory else { throw LocalObstacle.refused(.isDirectory) }
        let isOurs = try db.exclusion(of: item) == .name
        if try !endSave(byRemoving: item) { try remove(item) }
        try touch(directory, isOurs: isOurs)
        return item.inode.number
    }

    /// Removes an empty directory.
    ///
    /// - Parameter isListed: as for ``unlink(_:in:isListed:)``.
    /// - Throws: ``LocalObstacle``: ENOENT, ENOTDIR, ENOTEMPTY, EACCES; one that was never listed is listed first.
    package func removeDirectory(_ name: String, in parent: InodeNumber, isListed: Bool = true) throws {
        let directory = try writableDirectory(parent, isListed: isListed)
        let item = try child(name, of: parent)
        try checkListed(directory, for: item)
        try checkEmpty(item)
        let isOurs = try db.exclusion(of: item) == .name
        try remove(item)
        try touch(directory, isOurs: isOurs)
    }

    /// Without the listing of a directory it is not known whether the remote still has there what it had. What it has never heard of is
    /// changed as what is created there: a namesake is met when the item is sent, or the directory is listed.
    private func checkListed(_ directory: DirectoryRecord, for item: ItemRecord) throws {
        if directory.inode.content == .materialized { return }
        let isUnheardOf = item.identifier == nil && !item.wasSent && !item.isToBeOffered
        guard isUnheardOf, item.trash == nil, item.trashRole == .none else {
            throw LocalObstacle.listing(of: directory.inode.number)
        }
    }

    func checkEmpty(_ item: ItemRecord) throws {
        guard item.inode.kind == .directory else { throw LocalObstacle.refused(.notDirectory) }
        guard item.inode.content == .materialized else { throw LocalObstacle.listing(of: item.inode.number) }
        let isEmpty = try db.one(
            "SELECT NOT EXISTS (SELECT 1 FROM item WHERE parent = ?)", [item.inode.number.rawValue], { $0[0] as Bool })
        guard isEmpty == true else { throw LocalObstacle.refused(.directoryNotEmpty) }
    }

    // MARK: - Moving

    /// Gives an item another name, another directory, or both.
    ///
    /// A new file that replaces one of the remote's is a modification of that item: editors save this way, and the
    /// remote's item keeps its identifier.
    ///
    /// - Parameter isListed: whether both directories have to be listed first: else the remote must never have heard of the item,
    ///   nor of what is here under the new name.
    /// - Throws: ``LocalObstacle``: what `rename(2)` says.
    package func rename(
        _ name: String, in parent: InodeNumber, to newName: String, in newParent: InodeNumber, _ rule: RenameRule,
        isListed: Bool = true
    ) throws {
        try check(newName)
        let directory = try writableDirectory(parent, isListed: isListed)
        let newDirectory = newParent == parent ? directory : try writableDirectory(newParent, isListed: isListed)
        var item = try child(name, of: parent)
        let target = try db.item(named: newName, in: newParent)
        for changed in [directory, newDirectory] {
            try checkListed(changed, for: item)
            if let target { try checkListed(changed, for: target) }
        }
        if rule == .keep, target != nil { throw LocalObstacle.refused(.fileExists) }
        try checkMove(item, to: newParent, named: newName)
        if rule == .exchange {
            guard let target else { throw LocalObstacle.refused(.noSuchFileOrDirectory) }
            // Excluded and other items count as two file systems, if it is their names that decide which they are.
            let mayDiffer =
                try mayBeExchanged(item, as: newName, in: newDirectory)
                && mayBeExchanged(target, as: name, in: directory)
            guard item.isExcluded == target.isExcluded || mayDiffer else { throw LocalObstacle.refused(.improperLink) }
            try checkMove(target, to: parent, named: name)
            try exchange(
                included(item, as: newName, in: newDirectory), included(target, as: name, in: directory))
        } else {
            // Two names of one inode: nothing happens, says POSIX.
            if let target, target.inode.number == item.inode.number { return }
            if let moving = try exclusions.changeExclusion(
                of: item, movedTo: newDirectory, named: newName, replacing: target)
            {
                item = moving
                try replace(target, by: item, named: newName, in: newParent)
            }
        }
        // The remote is not told of a name that it neither had nor gets.
        let isOurs = item.isExcluded && exclusions.exclusion(ofNew: newName, in: newDirectory) != .none
        try touch(directory, isOurs: isOurs)
        if newParent != parent { try touch(newDirectory, isOurs: isOurs) }
        try setChangeTime(of: item.inode.number)
    }

    /// Whether an item is sent, or is not, under another name as it was under its own: special files never are, and what the provider did
    /// not want is offered to it again.
    private func mayBeExchanged(_ item: ItemRecord, as name: String, in directory: DirectoryRecord) throws -> Bool {
        if item.inode.kind.itemKind == nil { return true }
        guard exclusions.exclusion(ofNew: name, in: directory) == .none else { return false }
        guard item.isExcluded else { return true }
        return try item.trash == nil && item.trashRole == .none && directory.trashRole == .none
            && db.exclusion(of: item) == .unwanted
    }

    /// An item that is about to get another name in an exchange: one that is excluded is sent, if what has that name is.
    private func included(_ item: ItemRecord, as name: String, in directory: DirectoryRecord) throws -> ItemRecord {
        guard item.isExcluded else { return item }
        return try exclusions.changeExclusion(of: item, movedTo: directory, named: name, replacing: nil) ?? item
    }

    /// A file that was renamed is removed, and a new one has its old name: an editor has saved, and kept a backup meanwhile. The
    /// remote's item keeps its name and identifier, and gets the new content.
    ///
    /// - Returns: false when this is not the case, and nothing was done.
    private func endSave(byRemoving backup: ItemRecord) throws -> Bool {
        guard backup.identifier != nil, !backup.isToBeOffered, !backup.wasSent, backup.trash == nil,
            !backup.changedFields.isDisjoint(with: [.filename, .parentItemIdentifier]),
            backup.capabilities.isSuperset(of: [.allowsDeleting, .allowsWriting]),
            let name = backup.base.name, let parent = try backup.base.parent.flatMap({ try db.item($0) })?.inode.number,
            let item = try db.item(named: name, in: parent), isNewFile(item, over: backup)
        else { return false }
        try db.deleteItem(item)
        try place(backup, named: name, in: parent)
        try setContent(of: backup, to: item)
        return true
    }

    private func replace(
        _ target: ItemRecord?, by item: ItemRecord, named name: String, in parent: InodeNumber
    ) throws {
        if let target {
            if target.inode.kind == .directory {
                guard item.inode.kind == .directory else { throw LocalObstacle.refused(.isDirectory) }
                try checkEmpty(target)
            } else if item.inode.kind == .directory {
                throw LocalObstacle.refused(.notDirectory)
            }
            if target.identifier != nil || target.isToBeOffered, isNewFile(item, over: target) {
                return try save(item, over: target)
            }
            try remove(target)
        }
        try place(item, named: name, in: parent)
    }

    /// Whether an item is a file that the remote does not know, and another one is a file as well.
    private func isNewFile(_ item: ItemRecord, over target: ItemRecord) -> Bool {
        item.identifier == nil && !item.isToBeOffered && !item.wasSent && !item.isExcluded
            && item.inode.kind == .file && target.inode.kind == .file
    }

    /// An item that the remote knows takes the content of one that it does not, which is gone then.
    private func save(_ item: ItemRecord, over target: ItemRecord) throws {
        guard target.capabilities.contains(.allowsWriting) else { throw LocalObstacle.refused(.permissionDenied) }
        try db.deleteItem(item)
        try setContent(of: target, to: item)
    }

    /// Precondition: the row of the new item was deleted.
    private func setContent(of target: ItemRecord, to item: ItemRecord) throws {
        // The version that is replaced is the local one, even if the remote has reported a newer one of an open file.
        let isUnchanged = !target.changedFields.contains(.contents) && target.inode.linkCount == 1
        let origin = isUnchanged ? target.inode.contentVersion : target.base.version.contentVersion
        var fields = item.changedFields.intersection([
            .contents, .contentModificationDate, .permissions, .ownership, .extendedAttributes,
        ])
        // A new file has none of those that the remote keeps with the old one.
        if try !db.extendedAttributes(of: target.inode.number).isEmpty { fields.insert(.extendedAttributes) }
        try db.saveOver(target, with: item, fields: fields, origin: origin, at: now)
        try dropName(of: target)
    }

    private func exchange(_ one: ItemRecord, _ other: ItemRecord) throws {
        guard one.id != other.id else { return }
        guard let parent = one.parent, let otherParent = other.parent else { return }
        try db.displace(one.id)
        try place(other, named: one.name, in: parent)
        try place(one, named: other.name, in: otherParent)
        try setChangeTime(of: other.inode.number)
    }

    func place(_ item: ItemRecord, named name: String, in parent: InodeNumber) throws {
        try trashMoves.noteTrash(of: item, named: name, movedTo: parent)
        try db.keepInReimport(item)
        try db.leaveUnanswered(item, at: now)
        var moving = try db.item(id: item.id) ?? item
        try db.move(item.id, to: parent, named: name)
        if item.parent != parent, moving.conflictOf != nil { try db.endConflict(of: item.id) }
        if moving.isToBeOffered {
            try db.noteWhereItIs(
                waiting: moving, movedTo: parent, named: moving.trash == nil ? name : moving.ownName, at: now)
        } else {
            (moving.parent, moving.name) = (parent, name)
            try db.noteWhereItIs(moving, at: now)
        }
    }

    private func checkMove(_ item: ItemRecord, to parent: InodeNumber, named name: String) throws {
        try trashMoves.checkIsNotShared(name, in: parent)
        if try trashMoves.checkTrashMove(item, named: name, to: parent) {
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
