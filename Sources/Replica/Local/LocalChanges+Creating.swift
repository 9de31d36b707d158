import FileProvider
import Foundation
import GRDB
import SystemPackage

/// A file, directory, link or node that is to be made.
package struct NewInode: Sendable {
    package var kind: InodeKind
    /// The lower twelve bits of the mode, the caller's umask applied.
    package var permissions: UInt16
    package var device: UInt32
    /// What a symbolic link points to.
    package var linkTarget: String?

    package init(kind: InodeKind, permissions: UInt16, device: UInt32 = 0, linkTarget: String? = nil) {
        self.kind = kind
        self.permissions = permissions
        self.device = device
        self.linkTarget = linkTarget
    }
}

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
        _ name: String, in parent: InodeNumber, permissions: UInt16, caller: LocalCaller, usualGroup: UInt32
    ) throws -> (inode: InodeRecord, content: FileDescriptor) {
        let made = try make(
            name, in: parent, NewInode(kind: .file, permissions: permissions), caller: caller, usualGroup: usualGroup,
            isListed: true, isWritten: true)
        guard let content = made.content else { throw LocalObstacle.refused(.ioError) }
        opened = content
        return (made.inode, content)
    }

    private mutating func make(
        _ name: String, in parent: InodeNumber, _ new: NewInode, caller: LocalCaller, usualGroup: UInt32,
        isListed: Bool, isWritten: Bool
    ) throws -> (inode: InodeRecord, content: FileDescriptor?) {
        try check(name)
        let directory = try writableDirectory(parent, isListed: isListed)
        guard try !db.hasItem(named: name, in: parent) else { throw LocalObstacle.refused(.fileExists) }
        let (role, isLocal) = try trashRole(ofNew: name, new.kind, in: parent)
        var permissions = new.permissions
        var group = caller.group
        if let mode = directory.inode.permissions, mode & 0o2000 != 0 {
            group = directory.inode.group ?? usualGroup
            if new.kind == .directory { permissions |= 0o2000 }
        }
        let size = Int64(new.linkTarget?.utf8.count ?? 0)
        try db.run(
            """
            INSERT INTO inode (kind, size, permissions, owner, "group", modifiedAt, changedAt, createdAt, accessedAt,
                linkTarget, device, content, hasContentFile, contentStamp)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 2, ?, ?)
            """,
            [
                new.kind.rawValue, size, Int64(permissions), Int64(caller.user), Int64(group),
                now.nanosecondsSince1970, now.nanosecondsSince1970, now.nanosecondsSince1970,
                now.nanosecondsSince1970, new.linkTarget, Int64(new.device), new.kind == .file,
                isWritten ? ContentStore.unknownStamp : nil,
            ])
        let number = InodeNumber(rawValue: db.lastInsertedRowID)
        let exclusion = isLocal ? .unwanted : try exclusion(ofNew: name, in: directory)
        let row = try offer(name, in: parent, inode: number, kind: new.kind, as: exclusion, role: role)
        if role != .top { try touch(directory, isOurs: exclusion == .name) }
        if directory.trashRole == .files, let made = try db.item(id: row) {
            try noteTrash(of: made, named: name, movedTo: parent)
        }
        var content: FileDescriptor?
        if new.kind == .file {
            let file = try contents.create(number, size: 0)
            if isWritten { content = file } else { try file.close() }
        }
        let inode = InodeRecord(
            number: number, kind: new.kind, size: size, permissions: permissions, owner: caller.user, group: group,
            linkCount: 1, modifiedAt: now, changedAt: now, createdAt: now, accessedAt: now, device: new.device,
            subdirectories: 0, content: .materialized, contentVersion: [], contentGeneration: 0, localBytes: 0,
            contentStamp: isWritten ? ContentStore.unknownStamp : nil)
        return (inode, content)
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
        guard source.linkCount > 0 else { throw LocalObstacle.refused(.noSuchFileOrDirectory) }
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
        try offer(name, in: parent, inode: number, kind: source.kind, as: exclusion)
        if try !db.extendedAttributeNames(of: number).isEmpty { try mark(.extendedAttributes, of: number) }
        try db.run(
            "UPDATE inode SET linkCount = linkCount + 1, changedAt = ? WHERE number = ?",
            [now.nanosecondsSince1970, number.rawValue])
        try touch(parent, isOurs: exclusion == .name)
        return try inode(number)
    }

    /// As many as ext4 allows.
    private static let mostLinks = 65_000

    /// - Parameter exclusion: whether it stays on this machine, whatever it is.
    @discardableResult
    func offer(
        _ name: String, in parent: InodeNumber, inode: InodeNumber, kind: InodeKind, as exclusion: Exclusion,
        role: TrashRole = .none
    ) throws -> Int64 {
        var capabilities = ItemCapabilities.ordinary
        if try exclusion != .unwanted && db.hasTrash() { capabilities.insert(.allowsTrashing) }
        try db.run(
            """
            INSERT INTO item (inode, parent, name, capabilities, changedFields, template, isExcluded, pendingSince,
                trashRole) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                inode.rawValue, parent.rawValue, name, Int64(capabilities.rawValue),
                Int64(ItemFields.ofNewItem(kind).rawValue), ItemRecord.newTemplate(),
                (kind.itemKind == nil ? .unwanted : exclusion).rawValue, now.nanosecondsSince1970, role.rawValue,
            ])
        return db.lastInsertedRowID
    }
}

extension ItemRecord {
    /// What makes an item's template identifier one that no other item ever has, also when a domain is made anew.
    static func newTemplate() -> Int64 { Int64.random(in: 1 ... .max) }
}

extension ItemFields {
    /// What a new item tells the remote.
    static func ofNewItem(_ kind: InodeKind) -> ItemFields {
        let fields: ItemFields = [
            .filename, .parentItemIdentifier, .creationDate, .contentModificationDate, .permissions, .ownership,
        ]
        return kind == .file ? fields.union(.contents) : fields
    }
}
