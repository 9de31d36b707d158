import FileNames
import FileProvider
import Foundation
import GRDB
import SystemPackage

/// Making names. What is made is complete at once, and offered to the provider under a template identifier that stays
/// the same until the provider has given a permanent one.
extension LocalChanges {
    /// Makes a file, directory, link or node.
    ///
    /// - Parameters:
    ///   - usualGroup: the group of directories that say nothing themselves.
    ///   - isListed: whether the directory has to be listed first.
    /// - Throws: ``LocalObstacle``: EEXIST, ENAMETOOLONG, EACCES.
    package mutating func create(
        _ name: String, in parent: InodeNumber, _ new: NewInode, caller: LocalCaller, usualGroup: UInt32,
        isListed: Bool = true
    ) throws -> InodeRecord {
        try make(name, in: parent, new, caller: caller, usualGroup: usualGroup, isListed: isListed, isWritten: false)
            .inode
    }

    /// Makes a file that is open for writing from the beginning.
    ///
    /// - Returns: the file, and its content, open; the caller's to close.
    package mutating func createFile(
        _ name: String, in parent: InodeNumber, permissions: UInt16, caller: LocalCaller, usualGroup: UInt32,
        isListed: Bool = true
    ) throws -> (inode: InodeRecord, content: FileDescriptor) {
        let made = try make(
            name, in: parent, NewInode(kind: .file, permissions: permissions), caller: caller, usualGroup: usualGroup,
            isListed: isListed, isWritten: true)
        guard let content = made.content else { throw LocalObstacle.refused(.ioError) }
        opened = content
        return (made.inode, content)
    }

    /// Makes a file that has no name, open for writing (`O_TMPFILE`). ``link(_:as:in:)`` may give it one; without one it goes
    /// when no process uses it, or at the next start.
    ///
    /// - Returns: the file, and its content, open; the caller's to close.
    package mutating func createUnnamed(
        in parent: InodeNumber, permissions: UInt16, caller: LocalCaller, usualGroup: UInt32
    ) throws -> (inode: InodeRecord, content: FileDescriptor) {
        let directory = try writableDirectory(parent, isListed: false)
        // The name is not used: it only describes what a file of this directory is like.
        let creation = try creation(
            of: NewInode(kind: .file, permissions: permissions), named: "unnamed", in: directory, caller: caller,
            usualGroup: usualGroup, isWritten: true)
        let number = try db.insertInode(creation)
        try db.unlink(number, at: now)
        try db.noteUnnamed(number)
        let content = try contents.create(number, size: 0, isFirst: true)
        opened = content
        var inode = creation.inode(number)
        inode.linkCount = 0
        return (inode, content)
    }

    private mutating func make(
        _ name: String, in parent: InodeNumber, _ new: NewInode, caller: LocalCaller, usualGroup: UInt32,
        isListed: Bool, isWritten: Bool
    ) throws -> (inode: InodeRecord, content: FileDescriptor?) {
        let directory = try directory(for: name, in: parent, isListed: isListed)
        var new = new
        let attributes = try inheritAccess(by: &new, in: directory.inode.number, caller: caller)
        let creation = try creation(
            of: new, named: name, in: directory, caller: caller, usualGroup: usualGroup, isWritten: isWritten)
        let made = try db.insert(creation)
        try insert(attributes, of: made.number)
        if creation.item.role != .top { try touch(directory, isOurs: creation.item.exclusion == .name) }
        if directory.trashRole == .files, let made = try db.item(id: made.row) {
            try noteTrash(of: made, named: name, movedTo: parent)
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
    func directory(for name: String, in parent: InodeNumber, isListed: Bool = true) throws -> ItemRecord {
        try check(name)
        let directory = try writableDirectory(parent, isListed: isListed)
        guard try !db.hasItem(named: name, in: parent) else { throw LocalObstacle.refused(.fileExists) }
        return directory
    }

    /// The creation of a new item in a directory, with all decisions about it.
    func creation(
        of new: NewInode, named name: String, in directory: ItemRecord, caller: LocalCaller, usualGroup: UInt32,
        isWritten: Bool
    ) throws -> Creation {
        let parent = directory.inode.number
        let (role, isLocal) = try trashRole(ofNew: name, new.kind, in: parent)
        var new = new
        if new.kind == .directory, directory.passesGroupOn { new.permissions |= 0o2000 }
        // A remote whose names are text can have no such link either.
        let isByteTarget = !ignored.sendsByteNames && new.linkTarget.map(FileNameText.isUTF8) == false
        let item = try newItem(
            name, in: parent, new.kind, as: isLocal || isByteTarget ? .unwanted : exclusion(ofNew: name, in: directory),
            role: role)
        return Creation(
            item: item, new: new, owner: caller.user, group: directory.groupOfNew(caller, usualGroup: usualGroup),
            isWritten: isWritten)
    }

    /// A new name.
    ///
    /// - Parameter exclusion: whether it stays on this machine, whatever it is.
    func newItem(
        _ name: String, in parent: InodeNumber, _ kind: InodeKind, as exclusion: Exclusion, role: TrashRole = .none
    ) throws -> NewItem {
        NewItem(
            kind: kind, name: name, parent: parent,
            capabilities: try exclusion == .unwanted ? .ordinary : newCapabilities(), madeAt: now, role: role,
            exclusion: exclusion)
    }

    /// The capabilities of a new item that is sent to the provider.
    func newCapabilities() throws -> ItemCapabilities {
        try db.hasTrash() ? ItemCapabilities.ordinary.union(.allowsTrashing) : .ordinary
    }

    /// Gives an inode one more name: another item, which shares its content.
    ///
    /// - Throws: ``LocalObstacle``: EPERM for directories, EEXIST, EMLINK; the content has to be here, because it is
    ///   sent once more.
    package mutating func link(
        _ number: InodeNumber, as name: String, in parent: InodeNumber
    ) throws -> InodeRecord {
        try check(name)
        let source = try inode(number)
        guard source.kind != .directory else { throw LocalObstacle.refused(.notPermitted) }
        // Of files without a name only those of O_TMPFILE can get one; which of them, the kernel knows (O_EXCL).
        guard try source.linkCount > 0 || db.isUnnamed(number) else {
            throw LocalObstacle.refused(.noSuchFileOrDirectory)
        }
        guard source.linkCount < Self.mostLinks else { throw LocalObstacle.refused(.tooManyLinks) }
        let directory = try writableDirectory(parent)
        guard try db.item(named: name, in: parent) == nil else { throw LocalObstacle.refused(.fileExists) }
        guard source.kind != .file || source.content == .materialized else {
            throw LocalObstacle.content(of: number)
        }
        switch try db.trashArea(of: parent) {
        case .outside, .trashed: break
        case .local, .files: throw LocalObstacle.refused(.improperLink)
        }
        let exclusion = try exclusion(ofNew: name, in: directory)
        try db.insert(newItem(name, in: parent, source.kind, as: exclusion), of: number)
        if try !db.extendedAttributeNames(of: number).isEmpty { try mark(.extendedAttributes, of: number) }
        try db.link(number, at: now)
        if source.linkCount == 0 { try db.forgetNameless(number) }
        try touch(parent, isOurs: exclusion == .name)
        return try inode(number)
    }

    /// As many as ext4 allows.
    private static let mostLinks = 65_000
}

extension ItemRecord {
    /// Whether what is made in a directory gets its group.
    fileprivate var passesGroupOn: Bool { inode.permissions.map { $0 & 0o2000 != 0 } ?? false }

    /// The group of what a caller creates in a directory.
    func groupOfNew(_ caller: LocalCaller, usualGroup: UInt32) -> UInt32 {
        passesGroupOn ? inode.group ?? usualGroup : caller.group
    }
}
