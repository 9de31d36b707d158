import FileProvider
import SystemPackage

/// Changes by users of the API, addressed by item identifiers. The kernel does not know of them and is told.
package struct ItemActions: LocalPart {
    let transaction: LocalTransaction
    private var names: NameChanges { NameChanges(transaction: transaction) }
    private var writing: ContentChanges { ContentChanges(transaction: transaction) }
    private var trashMoves: TrashMoves { TrashMoves(transaction: transaction) }

    /// As ``create(_:in:_:caller:usualGroup:isListed:)`` for a directory, also in one that was never listed.
    package func createDirectory(
        named name: String, in parent: ItemIdentifier, caller: LocalCaller, usualGroup: UInt32
    ) throws -> FileProviderItem {
        let directory = try item(parent)
        guard FileProviderItem.defect(ofFilename: name) == nil else { throw LocalObstacle.refused(.invalidArgument) }
        let inode = try names.create(
            name, in: directory.inode.number, NewInode(kind: .directory, permissions: 0o755), caller: caller,
            usualGroup: usualGroup, isListed: false)
        tellKernelOfName(name, in: directory.inode.number)
        guard let made = try db.item(ofInode: inode.number), let described = try db.describe(made) else {
            throw LocalObstacle.refused(.ioError)
        }
        return described
    }

    /// Makes an empty file that is about to be written.
    package func createFile(
        named name: String, in parent: ItemIdentifier, caller: LocalCaller, usualGroup: UInt32
    ) throws -> InodeNumber {
        let directory = try item(parent)
        guard FileProviderItem.defect(ofFilename: name) == nil else { throw LocalObstacle.refused(.invalidArgument) }
        let inode = try names.create(
            name, in: directory.inode.number, NewInode(kind: .file, permissions: 0o644), caller: caller,
            usualGroup: usualGroup, isListed: false)
        try writing.beginWriting(inode.number, truncating: false, caller: caller)
        tellKernelOfName(name, in: directory.inode.number)
        return inode.number
    }

    /// The file has been written. A process may have it open for writing, too: then it stays marked until that has closed it.
    package func finishFile(_ number: InodeNumber) throws -> FileProviderItem {
        if try inode(number).contentStamp == nil {
            // Nothing says what was written since the mark was taken away.
            try writing.contentWasWritten(number)
        } else if open.isOpenForWriting(number) {
            try writing.compareContent(number)
        } else {
            try writing.endWriting(number)
        }
        guard let made = try db.item(ofInode: number) else { throw LocalObstacle.refused(.noSuchFileOrDirectory) }
        return try describe(made.id)
    }

    /// Gives an item another name, another directory, or both.
    package func move(
        _ identifier: ItemIdentifier, to parent: ItemIdentifier?, named name: String?
    ) throws -> FileProviderItem {
        let moved = try item(identifier)
        guard let origin = moved.parent else { throw LocalObstacle.refused(.resourceBusy) }
        let destination = try parent.map { try item($0).inode.number } ?? origin
        let newName = name ?? moved.name
        guard FileProviderItem.defect(ofFilename: newName) == nil else { throw LocalObstacle.refused(.invalidArgument) }
        try checkRemoving(moved, from: inode(origin), isMoved: destination != origin)
        try names.rename(moved.name, in: origin, to: newName, in: destination, .keep)
        tellKernelOfDeparture(of: moved, from: origin)
        tellKernelOfName(newName, in: destination)
        return try describe(moved.id)
    }

    /// Removes an item, a directory with all below it, as far as it is listed.
    package func delete(_ identifier: ItemIdentifier) throws {
        let doomed = try item(identifier)
        guard let parent = doomed.parent else { throw LocalObstacle.refused(.resourceBusy) }
        let directory = try writableDirectory(parent, isListed: false)
        guard doomed.trashRole == .none else { throw LocalObstacle.refused(.resourceBusy) }
        try trashMoves.removeInformation(of: doomed)
        try removeTree(doomed, from: directory.inode, isTrashed: isTrashedOnRemote(doomed))
        try touch(parent)
        tellKernelOfRemoval(of: doomed, in: parent)
    }

    /// Sets what a user says of an item beside its attributes; nil takes it away.
    package func setFavoriteRank(_ rank: Int64?, of identifier: ItemIdentifier) throws -> FileProviderItem {
        let item = try item(identifier)
        try db.setFavoriteRank(rank, of: item.id)
        try mark(.favoriteRank, of: item.inode.number)
        return try describe(item.id)
    }

    package func setTagData(_ data: [UInt8]?, of identifier: ItemIdentifier) throws -> FileProviderItem {
        let item = try item(identifier)
        try db.setTagData(data, of: item.id)
        try mark(.tagData, of: item.inode.number)
        return try describe(item.id)
    }

    package func setLastUsedDate(_ date: FileTimestamp, of identifier: ItemIdentifier) throws
        -> FileProviderItem
    {
        let item = try item(identifier)
        try db.setAccessTime(of: item.inode.number, to: date)
        try mark(.lastUsedDate, of: item.inode.number)
        tellKernel([.attributes(item.inode.number)])
        return try describe(item.id)
    }

    /// Queues fields of an inode, changed or not.
    package func send(_ fields: ItemFields, of number: InodeNumber) throws {
        try mark(fields, of: number)
    }

    // MARK: - The trash

    /// Moves an item into a user's trash. One that lies there already stays as it is.
    ///
    /// - Throws: ``LocalObstacle``: EOPNOTSUPP without a trash, EACCES without the capability, EBUSY for the root and
    ///   the trash itself, ENOENT.
    package func trash(
        _ identifier: ItemIdentifier, user: UInt32, group: UInt32
    ) throws -> FileProviderItem {
        guard try db.hasTrash() else { throw LocalObstacle.refused(.notSupported) }
        let item = try item(identifier)
        if item.trash != nil { return try describe(item.id) }
        guard let parent = item.parent, item.trashRole == .none else { throw LocalObstacle.refused(.resourceBusy) }
        guard try db.trashArea(of: parent) != .local else { throw LocalObstacle.refused(.notPermitted) }
        let directory = try writableDirectory(parent, isListed: false)
        try checkRemoving(item, from: directory.inode, isMoved: true)
        try trashMoves.checkTrashing(item)
        let (trash, name) = try withTrash { directories in
            let trash = try directories.trash(of: user, group: group)
            return (trash, try directories.freeName(for: item.name, in: trash))
        }
        try names.place(item, named: name, in: trash.files)
        try touch(parent)
        try setChangeTime(of: item.inode.number)
        tellKernelOfDeparture(of: item, from: parent)
        tellKernelOfName(name, in: trash.files)
        return try describe(item.id)
    }

    /// Moves a trashed item back to where it was, or into another directory. Where its directory is gone it comes to
    /// the nearest that is left, and where its name is taken it gets another.
    ///
    /// - Throws: ``LocalObstacle``: ENOENT for what is not in the trash, EACCES, EINVAL for a directory in the trash.
    package func untrash(_ identifier: ItemIdentifier, to parent: ItemIdentifier?) throws -> FileProviderItem {
        let item = try item(identifier)
        guard let place = item.trash, let files = item.parent else {
            throw LocalObstacle.refused(.noSuchFileOrDirectory)
        }
        try checkRights(in: inode(files))
        let destination = try parent.map { try self.item($0).inode.number } ?? origin(of: place)
        _ = try writableDirectory(destination, isListed: false)
        guard try db.trashArea(of: destination) == .outside, try !db.isBelow(destination, item.inode.number) else {
            throw LocalObstacle.refused(.invalidArgument)
        }
        let name = try Displacement.freeName(for: place.name) { try db.isFree($0, in: destination) }
        try trashMoves.removeInformation(of: item)
        try names.place(item, named: name, in: destination)
        try touch(destination)
        try setChangeTime(of: item.inode.number)
        tellKernelOfDeparture(of: item, from: files)
        tellKernelOfName(name, in: destination)
        return try describe(item.id)
    }

    private func origin(of place: TrashPlace) throws -> InodeNumber {
        for number in place.ancestors {
            guard let item = try db.item(ofInode: number), item.inode.kind == .directory,
                item.capabilities.contains(.allowsAddingSubItems),
                try item.inode.number == .root || item.parent != nil && db.trashArea(of: number) == .outside
            else { continue }
            return number
        }
        return .root
    }

    /// The items of a directory that are still to be removed, before the directory.
    private struct Level {
        /// Nil for the directory that contains the tree.
        var directory: ItemRecord?
        var inode: InodeRecord
        /// Whether the directory, and those above it in the tree, are listed.
        var isListed: Bool
        var items: [ItemRecord]
    }

    /// Removes an item with all below it. A loop, because a tree may be deeper than the stack of a thread.
    ///
    /// - Parameter isTrashed: whether the remote has it in its trash, and deletes it with all below: what was never
    ///   listed need not be.
    private func removeTree(_ top: ItemRecord, from directory: InodeRecord, isTrashed: Bool) throws {
        var levels = [Level(directory: nil, inode: directory, isListed: true, items: [top])]
        while let last = levels.indices.last {
            let level = (inode: levels[last].inode, isListed: levels[last].isListed)
            if let item = levels[last].items.popLast() {
                try checkRemoving(item, from: level.inode, isMoved: false)
                if item.inode.kind == .directory {
                    let isHere = item.inode.content == .materialized
                    guard isHere || isTrashed else { throw LocalObstacle.listing(of: item.inode.number) }
                    let children = try db.items(in: item.inode.number)
                    if !children.isEmpty { try checkRights(in: item.inode) }
                    levels.append(
                        Level(
                            directory: item, inode: item.inode, isListed: level.isListed && isHere,
                            items: children.reversed()))
                } else {
                    try removeEmptied(item, from: level.inode, isListed: level.isListed, isTop: last == 0)
                }
            } else if let item = levels.removeLast().directory, let above = levels.last {
                try removeEmptied(item, from: above.inode, isListed: level.isListed, isTop: levels.count == 1)
            }
        }
    }

    /// Removes an item of a tree after what it contained.
    private func removeEmptied(
        _ item: ItemRecord, from directory: InodeRecord, isListed: Bool, isTop: Bool
    ) throws {
        if isListed || item.trash != nil {
            try remove(item)
        } else {
            try db.deleteItem(item)
            try dropName(of: item)
        }
        if !isTop { tellKernelOfRemoval(of: item, in: directory.number) }
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

    private func tellKernelOfDeparture(of item: ItemRecord, from directory: InodeNumber) {
        tellKernel([.departure(of: item, from: directory), .contents(directory)])
    }

    /// The kernel drops the name and what it knows of the inode: an inode without a name stays as long as the kernel knows it.
    private func tellKernelOfRemoval(of item: ItemRecord, in directory: InodeNumber) {
        tellKernel([.deletion(parent: directory, child: item.inode.number, name: item.name)])
        tellKernelOfName(item.name, in: directory)
    }
}
