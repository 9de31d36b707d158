import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// The folder that is the remote: finds items by their identifiers, and never leaves it.
///
/// It keeps no table of its files. Where an item lies the system knows; that the file there is the item, its inode and
/// birth time prove. Every step opens one name without following links. All functions block.
final class Folder: Sendable {
    /// An item's place: its directory, open, and its name there; the root has none.
    struct Place: ~Copyable {
        let directory: FileDescriptor
        let name: String?
        let parent: ItemIdentifier
        let identifier: ItemIdentifier
        let status: FileStatus

        deinit { try? directory.close() }
    }

    private struct State {
        /// Where directories were seen that moved, until the system has heard of it.
        var moved: [ItemIdentifier: [String]] = [:]
    }

    /// Without symbolic links.
    let path: FilePath
    let isOnNetwork: Bool
    /// Whether nothing in it can be changed.
    let isReadOnly: Bool
    let manager: any FileProviderManager
    let leftoverAge: Int64
    private let state = Mutex(State())
    let stateFiles: StateFiles
    /// Which directory the source is.
    let source: Mutex<SourceRecord>
    /// Identifiers of files with several names, by place, until the system knows them.
    let links = Mutex<[ItemIdentifier: ChangeLog.Place]>([:])
    /// The records of files that are being written in place.
    let edits = Mutex<Set<String>>([])
    private let capabilities: ItemCapabilities
    /// What was in the trash when it was looked through last.
    let knownTrash = Mutex<KnownTrash?>(nil)
    /// What was made, by its place, until the system knows it.
    let unanswered = Mutex<[ChangeLog.Place: Unanswered]>([:])
    /// One file at a time gets its place in a directory whose own time is kept.
    private let exchanging = Mutex<Void>(())
    /// Finds items that were moved into directories that were never listed.
    let index = FolderIndex()

    /// - Throws: `serverUnreachable` when the folder is not there, with the reason. Where another one is in the place of the
    ///   one that is known, that is said by each call.
    init(path: FilePath, manager: any FileProviderManager, leftoverAge: Int64) throws {
        self.leftoverAge = leftoverAge
        self.manager = manager
        stateFiles = StateFiles(directory: manager.stateDirectory)
        let known = stateFiles.read(SourceRecord.self, SourceRecord.name)
        do throws(Errno) {
            let place: FilePath
            if let known, known.source == path.string {
                place = FilePath(known.path)
            } else {
                place = try path.resolvingLinks()
            }
            self.path = place
            let root =
                known == nil
                ? try FileDescriptor.openDirectory(notFollowing: place) : try FileDescriptor.openDirectory(place)
            defer { try? root.close() }
            isReadOnly = (try? root.fileSystemStatistics().isReadOnly) ?? false
            capabilities = isReadOnly ? .readOnly : .ordinary.union(.allowsTrashing)
            isOnNetwork = root.isOnNetworkFileSystem
            let found = try SourceIdentity(of: root)
            source = Mutex(
                SourceRecord(source: path.string, path: place.string, identity: known?.identity ?? found))
        } catch {
            if error.isShortageHere { throw FileProviderError.shortageHere(error) }
            throw FileProviderError(
                .serverUnreachable, "the source '\(path)' cannot be opened: \(error)", errno: error)
        }
        if known?.source != path.string { keep(source.withLock { $0 }) }
        finishWritingInPlace()
    }

    var items: FolderItems {
        FolderItems(rootDevice: source.withLock { $0.identity.device }, capabilities: capabilities)
    }

    /// Finds an item.
    ///
    /// - Throws: `noSuchItem`, `serverUnreachable`, POSIX errors.
    func find(_ identifier: ItemIdentifier) throws -> Place {
        guard let place = try findIfThere(identifier) else { throw FileProviderError.noSuchItem(identifier) }
        return place
    }

    /// As ``find(_:)``, with nil for what is not there.
    func findIfThere(_ identifier: ItemIdentifier) throws -> Place? {
        if identifier == .rootContainer {
            let root = try openRoot()
            return Place(
                directory: root, name: nil, parent: .rootContainer, identifier: .rootContainer,
                status: try self.status(of: root))
        }
        if let moved = state.withLock({ $0.moved[identifier] }), let place = try find(identifier, at: moved) {
            return place
        }
        if let known = manager.remotePath(of: identifier), let place = try find(identifier, at: known) { return place }
        if let known = manager.remoteTrashPath(of: identifier), let place = try findTrashed(identifier, at: known) {
            return place
        }
        if let trashed = try findTrashed(identifier) { return trashed }
        if let walked = index.path(of: identifier, walk: walk) { return try find(identifier, at: walked) }
        return nil
    }

    /// An item's place when it has this name in this directory; nil when it has not.
    func place(of identifier: ItemIdentifier, named name: String, in parent: ItemIdentifier) throws -> Place? {
        guard let directory = try? openDirectory(parent) else { return nil }
        guard let status = try? self.status(of: name, in: directory),
            items.isFile(status, of: identifier)
        else {
            try? directory.close()
            return nil
        }
        return Place(directory: directory, name: name, parent: parent, identifier: identifier, status: status)
    }

    /// Opens a directory by its identifier.
    func openDirectory(_ identifier: ItemIdentifier) throws -> FileDescriptor {
        let place = try find(identifier)
        guard let name = place.name else { return try openRoot() }
        return try place.directory.openDirectory(named: name)
    }

    /// The item under a name in a directory; nil when there is none that can be an item.
    func item(
        named name: String, in directory: FileDescriptor, parent: ItemIdentifier
    ) throws -> FileProviderItem? {
        if parent == .rootContainer, Self.isTrashName(name.utf8) { return nil }
        do {
            let status = try self.status(of: name, in: directory)
            // What is hidden gets no identifier.
            guard status.kind != .special, !HiddenName.isOne(name) else { return nil }
            let identifier = identifier(of: status, named: name, parent: parent)
            return items.item(identifier, named: name, in: directory, parent: parent, status: status)
        } catch {
            guard error == .noSuchFileOrDirectory || error == .fileNameTooLong else { throw error }
            return nil
        }
    }

    /// An item was seen in a place that the system may not have heard of yet.
    func noteMoved(_ item: FileProviderItem) {
        guard item.kind == .directory, let parent = path(of: item.parentItemIdentifier) else { return }
        state.withLock { state in
            if state.moved.count > 4096 { state.moved.removeAll() }
            state.moved[item.itemIdentifier] = parent + [item.filename]
        }
    }

    /// The source is another directory from now on.
    func forgetPlaces() {
        state.withLock { $0.moved = [:] }
        links.withLock { $0 = [:] }
        knownTrash.withLock { $0 = nil }
    }

    func path(of identifier: ItemIdentifier) -> [String]? {
        if identifier == .rootContainer { return [] }
        return state.withLock { $0.moved[identifier] } ?? manager.remotePath(of: identifier)
    }

    /// - Returns: nil when another file, or none, is there.
    func find(_ identifier: ItemIdentifier, at path: [String]) throws -> Place? {
        try find(identifier, at: path, from: openRoot(), .rootContainer)
    }

    /// - Parameter top: where the path begins, open; closed when this returns, unless the place has it.
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
            var isParentKnown = true
            for component in path.dropLast() {
                let status = try FileStatus(of: component, in: directory)
                let next = try directory.openDirectory(named: component)
                try? directory.close()
                directory = next
                parent = ItemIdentifier(items.file(status))
                isParentKnown = isParentKnown && status.kind == .directory
            }
            let status = try self.status(of: name, in: directory)
            guard isParentKnown, items.isFile(status, of: identifier) else {
                try? directory.close()
                return nil
            }
            return Place(directory: directory, name: name, parent: parent, identifier: identifier, status: status)
        } catch {
            try? directory.close()
            switch error {
            case .noSuchFileOrDirectory, .notDirectory, .tooManySymbolicLinkLevels, .fileNameTooLong: return nil
            case .permissionDenied: throw FileProviderError(.fileReadNoPermission, itemIdentifier: identifier)
            default: throw error
            }
        }
    }
}

extension Folder {
    /// Replaces a file, by a body that blocks for moments only. A file that is written keeps its name: its directory does
    /// not change, and has the time that it had.
    func keepingTime<Value>(
        of directory: FileDescriptor, _ body: () throws(Errno) -> Value
    ) throws(Errno) -> Value {
        try exchanging.withLock { _ throws(Errno) in
            let before = try FileStatus(of: directory).modified
            let value = try body()
            // Where it is somebody else's directory there is nothing to be done.
            try? directory.setModified(before)
            return value
        }
    }

    /// Gives a directory attributes, by a body that blocks for moments only: whoever replaces a file in it would put its
    /// old time back.
    func settingAttributes<Value>(
        of kind: FileStatus.Kind, _ body: () throws(Errno) -> Value
    ) throws(Errno) -> Value {
        guard kind == .directory else { return try body() }
        return try exchanging.withLock { _ throws(Errno) in try body() }
    }

    /// What a name stands for. A directory is not looked at while a file in it is replaced: it has another time then.
    func status(of name: String, in directory: FileDescriptor) throws(Errno) -> FileStatus {
        let status = try FileStatus(of: name, in: directory)
        guard status.kind == .directory else { return status }
        return try exchanging.withLock { _ throws(Errno) in try FileStatus(of: name, in: directory) }
    }

    /// As ``status(of:in:)``, of an open directory.
    func status(of directory: FileDescriptor) throws(Errno) -> FileStatus {
        try exchanging.withLock { _ throws(Errno) in try FileStatus(of: directory) }
    }
}
