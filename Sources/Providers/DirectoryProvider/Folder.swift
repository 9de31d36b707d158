import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// The folder that is the remote: finds items by identifier, and never leaves the folder.
///
/// It keeps no table of files. The system knows the path of an item; inode number and birth time prove that the file
/// there is the item. Every step opens one name without following links. All functions block.
final class Folder: Sendable {
    /// The location of an item: its open directory and its name. The root has no name.
    struct Place: ~Copyable {
        let directory: FileDescriptor
        let name: String?
        let parent: ItemIdentifier
        let identifier: ItemIdentifier
        let status: FileStatus
        /// Whether it is in a trash, or below an item in one.
        let isTrashed: Bool

        deinit { try? directory.close() }
    }

    /// Without symbolic links.
    let path: FilePath
    let isOnNetwork: Bool
    /// Whether the file system has never been seen writable. One that is mounted read-only after an error is still a remote that
    /// can be written: changes wait until it is writable again.
    let isReadOnly: Bool
    /// Whether the user was told that a folder of that kind can be written now.
    let isReportedWritable = Atomic(false)
    let manager: any FileProviderManager
    let calls = BlockingCalls()
    let log = ChangeLog()
    let leftoverAge: Int64
    /// The paths of moved directories, until the system knows them.
    private let movedPaths = Mutex<[ItemIdentifier: [String]]>([:])
    let source: Mutex<SourceRecord>
    /// The identifiers of hard links by location, until the system knows them.
    let links = Mutex<[ItemIdentifier: ChangeLog.Place]>([:])
    /// The places to which this provider has moved hard links, by item (``LinkRenaming``).
    let renamings: Mutex<LinkRenamings>
    /// The records of files that are being written in place, or whose interrupted write is being completed.
    let edits = Mutex<Set<ProviderStoreKey>>([])
    /// The records of interrupted writes that could not be completed because another program had the file open.
    let editsInUse = Mutex<Set<ProviderStoreKey>>([])
    /// The records of interrupted writes whose file or copy was not found. The next start looks again.
    let lostEdits = Mutex<Set<ProviderStoreKey>>([])
    private let capabilities: ItemCapabilities
    /// Whether the file system is one that gives a lasting identity.
    let isChecked: Atomic<Bool>
    /// Whether files that were being written in place are to be completed once the folder is there.
    let hasUnfinishedEdits: Atomic<Bool>
    /// The result of the last search of the trash.
    let knownTrash = Mutex<KnownTrash?>(nil)
    let unanswered = Mutex(UnansweredFiles())
    /// Serializes replacements of files in directories whose modification time is restored.
    private let exchanging = Mutex<Void>(())
    let readOnlyDirectories = ReadOnlyDirectories()
    /// The file systems below the folder.
    let mounts: FolderMounts
    /// Finds items that were moved into directories that were never listed.
    let index = FolderIndex()

    /// - Throws: `serverUnreachable` with the reason if a folder that was never mounted does not exist, or is on a file system that
    ///   gives no lasting identity. If a known folder is
    ///   missing, or another one has replaced it, each call reports that. The errors of the store.
    init(path: FilePath, manager: any FileProviderManager, leftoverAge: Int64) throws {
        self.leftoverAge = leftoverAge
        self.manager = manager
        let stored = try manager.store.get(SourceRecord.key, in: SourceRecord.namespace)
        let known = stored?.source == path.fileNameText ? stored : nil
        var record: SourceRecord
        do throws(Errno) {
            let place = if let known { FilePath(fileNamed: known.path) } else { try path.resolvingLinks() }
            let root =
                stored == nil
                ? try FileDescriptor.openDirectory(notFollowing: place) : try FileDescriptor.openDirectory(place)
            defer { try? root.close() }
            // A folder that may not be read is no source.
            if known == nil {
                let contents = try root.openFile(named: ".")
                try? contents.close()
            }
            let found = try SourceIdentity(of: root)
            if let known, !known.identity.isSameDirectory(as: found) {
                // A mount point without its disk says nothing about the folder.
                record = known
                isOnNetwork = known.identity.isOnNetwork
                hasUnfinishedEdits = Atomic(true)
            } else {
                record = SourceRecord(
                    source: path.fileNameText, path: place.fileNameText, identity: stored?.identity ?? found)
                record.isReadOnly = known?.isReadOnly
                if let statistics = try? root.fileSystemStatistics(), known?.isReadOnly != false {
                    record.isReadOnly = statistics.isReadOnly
                }
                isOnNetwork = root.isOnNetworkFileSystem
                hasUnfinishedEdits = Atomic(false)
            }
        } catch {
            if error.isShortageHere { throw FileProviderError.shortageHere(error) }
            guard let known else {
                throw FileProviderError(
                    .serverUnreachable, "the source '\(path)' cannot be opened: \(error)", errno: error)
            }
            record = known
            isOnNetwork = known.identity.isOnNetwork
            hasUnfinishedEdits = Atomic(true)
        }
        self.path = FilePath(fileNamed: record.path)
        mounts = try FolderMounts(manager: manager, root: self.path)
        if known == nil { try FolderFileSystem.check(self.path) }
        isChecked = Atomic(known == nil)
        isReadOnly = record.isReadOnly ?? false
        capabilities = isReadOnly ? .readOnly : .ordinary.union(.allowsTrashing)
        source = Mutex(record)
        renamings = Mutex(LinkRenamings(places: LinkRenaming.stored(by: manager)))
        if known?.source != record.source || known?.isReadOnly != record.isReadOnly { keep(record) }
        if !hasUnfinishedEdits.load(ordering: .relaxed) { finishWritingInPlace() }
    }

    var items: FolderItems {
        FolderItems(rootDevice: source.withLock { $0.identity.device }, mounts: mounts, capabilities: capabilities)
    }

    /// Finds an item.
    ///
    /// - Throws: `noSuchItem`, `serverUnreachable`, POSIX errors.
    func find(_ identifier: ItemIdentifier) throws -> Place {
        guard let place = try findIfThere(identifier) else { throw FileProviderError.noSuchItem(identifier) }
        return place
    }

    /// As ``find(_:)``; nil if the item does not exist.
    func findIfThere(_ identifier: ItemIdentifier) throws -> Place? {
        if identifier == .rootContainer {
            let root = try openRoot()
            return Place(
                directory: root, name: nil, parent: .rootContainer, identifier: .rootContainer,
                status: try self.status(of: root), isTrashed: false)
        }
        if let moved = movedPaths.withLock({ $0[identifier] }), let place = try find(identifier, at: moved) {
            return place
        }
        if let known = manager.remotePath(of: identifier), let place = try find(identifier, at: known) { return place }
        if let renamed = try findRenamed(identifier) { return renamed }
        if let trashed = try findTrashedIfThere(identifier) { return trashed }
        for path in mounts.names(toMountOf: identifier) {
            if let place = try find(identifier, at: path) { return place }
        }
        for walked in index.paths(of: identifier, walk: walk) {
            if let place = try find(identifier, at: walked), isMoved(place) { return place }
        }
        return nil
    }

    /// The location of an item if it has this name in this directory, else nil.
    func place(of identifier: ItemIdentifier, named name: String, in parent: ItemIdentifier) throws -> Place? {
        guard let directory = try? openDirectory(parent) else { return nil }
        guard let status = try? self.status(of: name, in: directory, parent),
            items.isFile(status, of: identifier)
        else {
            try? directory.close()
            return nil
        }
        return Place(
            directory: directory, name: name, parent: parent, identifier: identifier, status: status,
            isTrashed: parent == .trashContainer)
    }

    func openDirectory(_ identifier: ItemIdentifier) throws -> FileDescriptor {
        try open(find(identifier))
    }

    /// Opens the directory at a location.
    func open(_ place: borrowing Place) throws -> FileDescriptor {
        guard let name = place.name else { return try openRoot() }
        let (directory, status) = try openDirectory(named: name, in: place.directory, place.parent)
        guard status.isSameFile(as: place.status) else {
            try? directory.close()
            throw Errno.noSuchFileOrDirectory
        }
        return directory
    }

    /// The item with a name in a directory; nil if there is none.
    ///
    /// - Parameter known: looks up the identifier that the system knows of the name.
    func item(
        named name: String, in directory: FileDescriptor, parent: ItemIdentifier, known: (() -> ItemIdentifier?)? = nil
    ) throws -> FileProviderItem? {
        if parent == .rootContainer, Self.isTrashName(name.utf8) { return nil }
        do {
            let status = try self.status(of: name, in: directory, parent)
            // Hidden files get no identifier.
            guard status.kind != .special, !HiddenName.isOne(name) else { return nil }
            let identifier = identifier(of: status, named: name, parent: parent, known: known)
            noteSeen(identifier, at: ChangeLog.Place(name, in: parent))
            return items.item(identifier, named: name, in: directory, parent: parent, status: status)
        } catch let error as FileProviderError where error.code == .ubiquitousFileUnavailable {
            // One that the system does not know is shown when it answers.
            return mounts.away(name, in: parent).map(items.away)
        } catch let error as Errno {
            guard error == .noSuchFileOrDirectory || error == .fileNameTooLong else { throw error }
            return nil
        }
    }

    func item(at place: borrowing Place) -> FileProviderItem? {
        guard let name = place.name else { return items.root(status: place.status) }
        noteSeen(place.identifier, at: ChangeLog.Place(name, in: place.parent))
        return items.item(
            place.identifier, named: name, in: place.directory, parent: place.parent, status: place.status)
    }

    /// Records the path of a moved directory that the system may not know yet.
    func noteMoved(_ item: FileProviderItem) {
        guard item.kind == .directory, let parent = path(of: item.parentItemIdentifier) else { return }
        movedPaths.withLock { paths in
            if paths.count > 4096 { paths.removeAll() }
            paths[item.itemIdentifier] = parent + [item.filename]
        }
    }

    /// Discards all paths after the source was replaced.
    func forgetPlaces() {
        movedPaths.withLock { $0 = [:] }
        links.withLock { $0 = [:] }
        knownTrash.withLock { $0 = nil }
    }

    func path(of identifier: ItemIdentifier) -> [String]? {
        if identifier == .rootContainer { return [] }
        return movedPaths.withLock { $0[identifier] } ?? manager.remotePath(of: identifier)
    }

    /// - Returns: nil if there is no file at the path, or another one.
    func find(_ identifier: ItemIdentifier, at path: [String]) throws -> Place? {
        try find(identifier, at: path, from: openRoot(), .rootContainer)
    }

    /// - Parameter top: the open directory at which the path begins; closed before this returns, unless the result
    ///   owns it.
    func find(
        _ identifier: ItemIdentifier, at path: [String], from top: FileDescriptor, _ topIdentifier: ItemIdentifier
    ) throws -> Place? {
        var directory = top
        guard let name = path.last else {
            try? top.close()
            return nil
        }
        do {
            var parent = topIdentifier
            for component in path.dropLast() {
                let (next, status) = try openDirectory(named: component, in: directory, parent)
                try? directory.close()
                directory = next
                parent = ItemIdentifier(items.file(status))
            }
            let status = try self.status(of: name, in: directory, parent)
            guard items.isFile(status, of: identifier) else {
                try? directory.close()
                return nil
            }
            return Place(
                directory: directory, name: name, parent: parent, identifier: identifier, status: status,
                isTrashed: topIdentifier == .trashContainer)
        } catch {
            try? directory.close()
            switch error as? Errno {
            case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .fileNameTooLong: return nil
            case .permissionDenied: throw FileProviderError(.fileReadNoPermission, itemIdentifier: identifier)
            default: throw error
            }
        }
    }
}

extension Folder {
    /// Replaces a file and restores the modification time of its directory, because a write to a file does not change
    /// its directory. The body must be quick.
    func keepingTime<Value>(of directory: FileDescriptor, _ body: () throws -> Value) throws -> Value {
        try exchanging.withLock { _ in
            let before = try FileStatus(of: directory).modified
            let value = try body()
            // The time of another user's directory cannot be set.
            try? directory.setModified(before)
            return value
        }
    }

    /// Sets attributes of a file (``FolderAttributes/apply(_:of:to:)``). For a directory this is serialized with
    /// ``keepingTime(of:_:)``, which would restore the old time.
    func setAttributes(
        _ fields: ItemFields, of item: FileProviderItem, to file: FileDescriptor, _ kind: FileStatus.Kind
    ) throws(Errno) -> ItemFields {
        guard kind == .directory else { return try FolderAttributes.apply(fields, of: item, to: file) }
        return try exchanging.withLock { _ throws(Errno) in
            try FolderAttributes.apply(fields, of: item, to: file, readOnlyDirectories)
        }
    }

    /// The status of a name. For a directory it waits for a running replacement, during which the directory has
    /// another time.
    func status(of name: String, in directory: FileDescriptor) throws(Errno) -> FileStatus {
        var status = try FileStatus(of: name, in: directory)
        guard status.kind == .directory else { return status }
        status = try exchanging.withLock { _ throws(Errno) in try FileStatus(of: name, in: directory) }
        status.permissions = readOnlyDirectories.permissions(of: status)
        return status
    }

    /// As ``status(of:in:)``, for an open directory.
    func status(of directory: FileDescriptor) throws(Errno) -> FileStatus {
        var status = try exchanging.withLock { _ throws(Errno) in try FileStatus(of: directory) }
        status.permissions = readOnlyDirectories.permissions(of: status)
        return status
    }
}
