import FileProvider
import Foundation
import GRDB
import SystemPackage

/// Changes by users of the API, addressed by item identifiers. The kernel does not know of them and is told.
extension LocalChanges {
    /// As ``create(_:in:_:caller:usualGroup:isListed:)`` for a directory, also in one that was never listed.
    package mutating func createDirectory(
        named name: String, in parent: ItemIdentifier, caller: LocalCaller, usualGroup: UInt32
    ) throws -> FileProviderItem {
        let directory = try item(parent)
        guard FileProviderItem.defect(ofFilename: name) == nil else { throw LocalObstacle.refused(.invalidArgument) }
        let inode = try create(
            name, in: directory.inode.number, NewInode(kind: .directory, permissions: 0o755), caller: caller,
            usualGroup: usualGroup, isListed: false)
        tellKernelOfName(name, in: directory.inode.number)
        guard let made = try db.item(ofInode: inode.number), let described = try db.describe(made) else {
            throw LocalObstacle.refused(.ioError)
        }
        return described
    }

    /// Makes an empty file that is about to be written.
    package mutating func createFile(
        named name: String, in parent: ItemIdentifier, caller: LocalCaller, usualGroup: UInt32
    ) throws -> InodeNumber {
        let directory = try item(parent)
        guard FileProviderItem.defect(ofFilename: name) == nil else { throw LocalObstacle.refused(.invalidArgument) }
        let inode = try create(
            name, in: directory.inode.number, NewInode(kind: .file, permissions: 0o644), caller: caller,
            usualGroup: usualGroup, isListed: false)
        try beginWriting(inode.number, truncating: false, caller: caller)
        tellKernelOfName(name, in: directory.inode.number)
        return inode.number
    }

    /// The file has been written.
    package mutating func finishFile(_ number: InodeNumber) throws -> FileProviderItem {
        try endWriting(number)
        guard let made = try db.item(ofInode: number) else { throw LocalObstacle.refused(.noSuchFileOrDirectory) }
        return try describe(made.id)
    }

    /// Gives an item another name, another directory, or both.
    package mutating func move(
        _ identifier: ItemIdentifier, to parent: ItemIdentifier?, named name: String?
    ) throws -> FileProviderItem {
        let moved = try item(identifier)
        guard let origin = moved.parent else { throw LocalObstacle.refused(.resourceBusy) }
        let destination = try parent.map { try item($0).inode.number } ?? origin
        let newName = name ?? moved.name
        guard FileProviderItem.defect(ofFilename: newName) == nil else { throw LocalObstacle.refused(.invalidArgument) }
        try rename(moved.name, in: origin, to: newName, in: destination, .keep)
        tellKernelOfName(moved.name, in: origin)
        tellKernelOfName(newName, in: destination)
        return try describe(moved.id)
    }

    /// Removes an item, a directory with all below it, as far as it is listed.
    package mutating func delete(_ identifier: ItemIdentifier) throws {
        let doomed = try item(identifier)
        guard let parent = doomed.parent else { throw LocalObstacle.refused(.resourceBusy) }
        _ = try writableDirectory(parent, isListed: false)
        guard doomed.trashRole == .none else { throw LocalObstacle.refused(.resourceBusy) }
        try removeInformation(of: doomed)
        try removeTree(doomed, isTrashed: isTrashedOnRemote(doomed))
        try touch(parent)
        tellKernelOfRemoval(of: doomed, in: parent)
    }

    /// Sets what a user says of an item beside its attributes; nil takes it away.
    package mutating func setFavoriteRank(_ rank: Int64?, of identifier: ItemIdentifier) throws -> FileProviderItem {
        let item = try item(identifier)
        try db.setFavoriteRank(rank, of: item.id)
        try mark(.favoriteRank, of: item.inode.number)
        return try describe(item.id)
    }

    package mutating func setTagData(_ data: [UInt8]?, of identifier: ItemIdentifier) throws -> FileProviderItem {
        let item = try item(identifier)
        try db.setTagData(data, of: item.id)
        try mark(.tagData, of: item.inode.number)
        return try describe(item.id)
    }

    package mutating func setLastUsedDate(_ date: FileTimestamp, of identifier: ItemIdentifier) throws
        -> FileProviderItem
    {
        let item = try item(identifier)
        try db.setAccessTime(of: item.inode.number, to: date)
        try mark(.lastUsedDate, of: item.inode.number)
        tellKernel(.attributes(item.inode.number))
        return try describe(item.id)
    }

    /// Queues fields of an inode, changed or not.
    package mutating func send(_ fields: ItemFields, of number: InodeNumber) throws {
        try mark(fields, of: number)
    }

    /// - Parameter isTrashed: whether the remote has it in its trash, and deletes it with all below: what was never
    ///   listed need not be.
    private mutating func removeTree(_ item: ItemRecord, isTrashed: Bool, isListed: Bool = true) throws {
        var isListed = isListed
        if item.inode.kind == .directory {
            if item.inode.content != .materialized {
                guard isTrashed else { throw LocalObstacle.listing(of: item.inode.number) }
                isListed = false
            }
            for child in try db.items(in: item.inode.number) {
                try removeTree(child, isTrashed: isTrashed, isListed: isListed)
                tellKernelOfRemoval(of: child, in: item.inode.number)
            }
        }
        if isListed || item.trash != nil { return try remove(item) }
        try db.deleteItem(item.id)
        try dropName(of: item)
    }

    private func isTrashedOnRemote(_ item: ItemRecord) throws -> Bool {
        if item.base.parent == .trashContainer { return true }
        guard case .trashed(let row) = try db.trashArea(of: item.parent) else { return false }
        return try db.item(id: row)?.base.parent == .trashContainer
    }

    func item(_ identifier: ItemIdentifier) throws -> ItemRecord {
        guard let item = try db.known(identifier) else { throw LocalObstacle.refused(.noSuchFileOrDirectory) }
        return item
    }

    func describe(_ row: Int64) throws -> FileProviderItem {
        guard let item = try db.item(id: row), let described = try db.describe(item) else {
            throw LocalObstacle.refused(.noSuchFileOrDirectory)
        }
        return described
    }

    /// The kernel drops the name and what it knows of the inode: an inode without a name stays as long as the kernel knows it.
    private mutating func tellKernelOfRemoval(of item: ItemRecord, in directory: InodeNumber) {
        tellKernel(.deletion(parent: directory, child: item.inode.number, name: item.name))
        tellKernelOfName(item.name, in: directory)
    }

    mutating func tellKernelOfName(_ name: String, in directory: InodeNumber) {
        tellKernel(.entry(parent: directory, name: name))
        tellKernel(.contents(directory))
    }
}
