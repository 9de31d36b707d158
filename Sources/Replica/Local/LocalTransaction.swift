import FileNames
import FileProvider
import GRDB
import SystemPackage

/// Why a local change cannot be made on the spot.
package enum LocalObstacle: Error, Hashable, Sendable {
    /// It fails with this error.
    case refused(Errno)
    /// The directory has to be listed first.
    case listing(of: InodeNumber)
    /// All of the file's content has to be here first.
    case content(of: InodeNumber)
    /// The disk is full: there has to be room first.
    case room
}

extension LocalObstacle: CustomStringConvertible {
    package var description: String {
        switch self {
        case .refused(let error): error.description
        case .listing(let number): "the directory \(number) is not listed"
        case .content(let number): "the content of \(number) is not here"
        case .room: Errno.noSpace.description
        }
    }
}

/// A transaction that was to change no names has to make one: it is made again as one that may.
struct NamesNeeded: Error {}

/// The transaction of a local change: the parts of ``LocalChanges`` share it.
final class LocalTransaction: ReplicaTransaction {
    let ignored: IgnoredNames
    /// Whether the transaction may make names (``WriteReach``).
    let mayChangeNames: Bool
    /// A content file that was opened for the caller, who gets it only after the commit.
    var opened: FileDescriptor?
    /// The caller whose rights decide; nil where the kernel has checked them, or no user makes the change.
    let rights: CallerRights?
    /// Whether there is room on the disk for what is new; the rest of it is for what makes room.
    let hasRoom: () -> Bool

    fileprivate static let changeable = """
        SELECT \(Rows.inodeColumns), inode.hasContentFile, COALESCE((SELECT capabilities & \(capability: .allowsWriting)
            FROM item WHERE item.inode = inode.number ORDER BY id LIMIT 1), 1)
        FROM inode WHERE number = ?
        """

    init(
        db: Database, open: any OpenInodes, contents: ContentStore, withdrawals: ContentWithdrawals? = nil,
        now: FileTimestamp = .now, ignored: IgnoredNames = .none,
        mayChangeNames: Bool = true, rights: CallerRights? = nil, hasRoom: @escaping () -> Bool = { true }
    ) {
        self.rights = rights
        self.hasRoom = hasRoom
        self.mayChangeNames = mayChangeNames
        self.ignored = ignored
        super.init(db: db, open: open, contents: contents, withdrawals: withdrawals, now: now)
    }
}

/// An inode, as changes of its content and attributes need it.
struct ChangeableInode {
    var inode: InodeRecord
    var hasContentFile: Bool
    /// Whether the item's capabilities allow writing; true for an inode without a name.
    var allowsWriting: Bool
}

protocol LocalPart: TransactionPart where Transaction == LocalTransaction {}

extension LocalPart {
    /// A directory in which names can be made and removed: one whose listing is here.
    ///
    /// - Parameter isListed: whether its listing has to be here: else what is made meets its namesakes when it is listed.
    func directory(_ number: InodeNumber, isListed: Bool = true) throws -> DirectoryRecord {
        guard let item = try db.directory(number) else {
            // A directory that was removed while a process is in it.
            throw LocalObstacle.refused(.noSuchFileOrDirectory)
        }
        guard item.inode.kind == .directory else { throw LocalObstacle.refused(.notDirectory) }
        guard item.inode.content == .materialized || !isListed else { throw LocalObstacle.listing(of: number) }
        return item
    }

    /// As ``directory(_:isListed:)``, when its capabilities and the caller's rights let something be added or taken away.
    func writableDirectory(_ number: InodeNumber, isListed: Bool = true) throws -> DirectoryRecord {
        let item = try directory(number, isListed: isListed)
        guard item.capabilities.contains(.allowsAddingSubItems) else { throw LocalObstacle.refused(.permissionDenied) }
        try checkRights(in: item.inode)
        return item
    }

    /// Verifies that the caller may make and remove names in a directory.
    ///
    /// - Throws: ``LocalObstacle``: EACCES.
    func checkRights(in directory: InodeRecord) throws {
        guard transaction.rights != nil else { return }
        try checkRights(CallerRights.Right.writing | CallerRights.Right.searching, in: directory)
        var number = directory.number
        while let parent = try db.item(ofInode: number)?.parent, let above = try db.inode(parent) {
            try checkRights(CallerRights.Right.searching, in: above)
            number = parent
        }
    }

    /// Verifies that the caller may remove an item from a directory in which it may remove names.
    ///
    /// - Parameter isMoved: whether it gets another directory, so that `..` of a directory changes.
    /// - Throws: ``LocalObstacle``: EPERM, EACCES.
    func checkRemoving(_ item: ItemRecord, from directory: InodeRecord, isMoved: Bool) throws {
        guard transaction.rights?.allowRemoving(item.inode, from: directory) != false else {
            throw LocalObstacle.refused(.notPermitted)
        }
        if isMoved, item.inode.kind == .directory { try checkRights(CallerRights.Right.writing, in: item.inode) }
    }

    private func checkRights(_ wanted: UInt16, in directory: InodeRecord) throws {
        guard let rights = transaction.rights else { return }
        let list = try db.extendedAttribute(AccessControlList.accessKey, of: directory.number)
        guard rights.allow(wanted, in: directory, list.flatMap { AccessControlList($0) }) else {
            throw LocalObstacle.refused(.permissionDenied)
        }
    }

    /// An inode, with what else decides about changes of its content and attributes.
    ///
    /// - Throws: ``LocalObstacle``: ESTALE.
    func changeable(_ number: InodeNumber) throws -> ChangeableInode {
        let found = try db.one(LocalTransaction.changeable, [number.rawValue]) { row in
            ChangeableInode(
                inode: try Rows.inode(row), hasContentFile: row[Rows.inodeColumnCount],
                allowsWriting: row[Rows.inodeColumnCount + 1])
        }
        guard let found else { throw LocalObstacle.refused(.staleNFSFileHandle) }
        return found
    }

    func inode(_ number: InodeNumber) throws -> InodeRecord {
        guard let inode = try db.inode(number) else { throw LocalObstacle.refused(.staleNFSFileHandle) }
        return inode
    }

    /// A transaction that may not change names may not change directories either: new files are made on what is remembered
    /// of them. (``NewFiles``)
    func checkMayChange(_ inode: InodeRecord) throws {
        if inode.kind == .directory, !transaction.mayChangeNames { throw NamesNeeded() }
    }

    func child(_ name: String, of directory: InodeNumber) throws -> ItemRecord {
        guard let item = try db.item(named: name, in: directory) else {
            throw LocalObstacle.refused(.noSuchFileOrDirectory)
        }
        return item
    }

    func check(_ name: String) throws {
        guard FileNameText.byteCount(of: name) <= FileProviderItem.maximumFilenameLength else {
            throw LocalObstacle.refused(.fileNameTooLong)
        }
    }

    /// Makes fields of an inode pending in all of its items. An item whose upload has failed is tried again.
    func mark(_ fields: ItemFields, of number: InodeNumber) throws { try db.mark(fields, of: number, at: now) }

    /// A name was made or removed in a directory, as it was read in this transaction.
    ///
    /// - Parameter isOurs: whether the name stays on this machine, and the remote is not told.
    func touch(_ directory: DirectoryRecord, isOurs: Bool = false) throws {
        let number = directory.inode.number
        try db.setDirectoryTimes(of: number, to: now)
        // It is marked once for a thousand files.
        if !isOurs, !directory.changedFields.contains(.contentModificationDate) {
            try mark(.contentModificationDate, of: number)
        }
    }

    /// A name was made or removed in a directory.
    ///
    /// - Parameter isOurs: whether the name stays on this machine, and the remote is not told.
    func touch(_ directory: InodeNumber, isOurs: Bool = false) throws {
        try db.touch(directory, at: now, isOurs: isOurs)
    }

    func setChangeTime(of number: InodeNumber) throws {
        try db.setChangeTime(of: number, to: now)
    }

    /// Takes an item's name from its inode. Without a name the inode lives as long as a process has it open or the kernel may
    /// use it.
    func dropName(of item: ItemRecord) throws {
        let inode = item.inode
        try db.unlink(inode.number, at: now)
        guard inode.linkCount <= 1 else { return }
        try db.forgetFailure(of: inode.number)
        guard !open.keepsNameless(inode.number) else {
            return try db.keepOnRemote(item, isOpen: open.isOpen(inode.number))
        }
        try deleteNameless(inode)
    }

    /// Takes an item away here and, when the remote has it, there, too.
    func remove(_ item: ItemRecord) throws {
        guard item.capabilities.contains(.allowsDeleting) else { throw LocalObstacle.refused(.notPermitted) }
        try db.queueDeletion(of: item, at: now)
        try db.keepUnanswered(of: item, at: now)
        try db.forgetRenaming(of: item.id)
        try db.deleteItem(item)
        try dropName(of: item)
    }

    func tellKernelOfName(_ name: String, in directory: InodeNumber) {
        tellKernel([.entry(parent: directory, name: name), .contents(directory)])
    }
}

extension Database {
    /// A name was made or removed in a directory.
    func touch(_ directory: InodeNumber, at time: FileTimestamp, isOurs: Bool = false) throws {
        try setDirectoryTimes(of: directory, to: time)
        if !isOurs { try mark(.contentModificationDate, of: directory, at: time) }
    }
}
