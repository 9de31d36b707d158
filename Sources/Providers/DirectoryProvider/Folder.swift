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
        let status: FileStatus

        deinit { try? directory.close() }
    }

    private struct State {
        var identity: ItemIdentifier
        /// Where directories were seen that moved, until the system has heard of it.
        var moved: [ItemIdentifier: [String]] = [:]
    }

    let path: FilePath
    let items: FolderItems
    let isOnNetwork: Bool
    /// Whether nothing in it can be changed.
    let isReadOnly: Bool
    let manager: any FileProviderManager
    let leftoverAge: Int64
    private let state: Mutex<State>
    /// What was in the trash when it was looked through last.
    let knownTrash = Mutex<KnownTrash?>(nil)
    /// What was made, by its place, until the system knows it.
    let unanswered = Mutex<[ChangeLog.Place: Unanswered]>([:])
    /// One file at a time gets its place in a directory whose own time is kept.
    private let exchanging = Mutex<Void>(())
    /// Where items are that were moved to where nobody looks.
    let index = FolderIndex()

    /// - Throws: `serverUnreachable` when the folder is not there, with the reason.
    init(path: FilePath, manager: any FileProviderManager, leftoverAge: Int64) throws {
        self.path = path
        self.leftoverAge = leftoverAge
        self.manager = manager
        do {
            let root = try FileDescriptor.openDirectory(path)
            defer { try? root.close() }
            let status = try FileStatus(of: root)
            isReadOnly = (try? FileSystemStatistics(of: path).isReadOnly) ?? false
            items = FolderItems(
                rootDevice: status.device, capabilities: isReadOnly ? .readOnly : .ordinary.union(.allowsTrashing))
            isOnNetwork = root.isOnNetworkFileSystem
            state = Mutex(State(identity: items.identifier(of: status, named: "", parent: .rootContainer)))
        } catch {
            if error.isShortageHere { throw FileProviderError.shortageHere(error) }
            throw FileProviderError(
                .serverUnreachable, "the source '\(path)' cannot be opened: \(error)", errno: error)
        }
    }

    /// The root, open. Another, empty folder in its place is a mount point whose disk is gone: not a remote that has
    /// lost everything.
    func openRoot() throws -> FileDescriptor {
        let root: FileDescriptor
        do {
            root = try FileDescriptor.openDirectory(path)
        } catch {
            if error.isShortageHere { throw FileProviderError.shortageHere(error) }
            throw FileProviderError(.serverUnreachable, "the source '\(path)' cannot be opened: \(error)")
        }
        do {
            let status = try FileStatus(of: root)
            let identity = items.identifier(of: status, named: "", parent: .rootContainer)
            if identity != state.withLock({ $0.identity }) {
                guard try !root.names().isEmpty else {
                    throw FileProviderError(
                        .serverUnreachable, "the source '\(path)' is another, empty folder now: is its disk mounted?")
                }
                state.withLock { $0.identity = identity }
            }
            return root
        } catch {
            try? root.close()
            throw error
        }
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
            return Place(directory: root, name: nil, parent: .rootContainer, status: try self.status(of: root))
        }
        if let moved = state.withLock({ $0.moved[identifier] }), let place = try find(identifier, at: moved) {
            return place
        }
        if let known = manager.remotePath(of: identifier), let place = try find(identifier, at: known) { return place }
        if let known = manager.remoteTrashPath(of: identifier), let place = try findTrashed(identifier, at: known) {
            return place
        }
        if let trashed = try findTrashed(identifier) { return trashed }
        if let walked = index.path(of: identifier, in: self) { return try find(identifier, at: walked) }
        return nil
    }

    /// An item's place when it has this name in this directory; nil when it has not.
    func place(of identifier: ItemIdentifier, named name: String, in parent: ItemIdentifier) throws -> Place? {
        guard let directory = try? openDirectory(parent) else { return nil }
        guard let status = try? self.status(of: name, in: directory),
            items.identifier(of: status, named: name, parent: parent) == identifier
        else {
            try? directory.close()
            return nil
        }
        return Place(directory: directory, name: name, parent: parent, status: status)
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
            return items.item(named: name, in: directory, parent: parent, status: status)
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

    func path(of identifier: ItemIdentifier) -> [String]? {
        if identifier == .rootContainer { return [] }
        return state.withLock { $0.moved[identifier] } ?? manager.remotePath(of: identifier)
    }

    /// - Returns: nil when another file, or none, is there.
    private func find(_ identifier: ItemIdentifier, at path: [String]) throws -> Place? {
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
                parent = items.identifier(of: status, named: component, parent: parent)
                isParentKnown = isParentKnown && status.kind == .directory
            }
            let status = try self.status(of: name, in: directory)
            guard isParentKnown, items.identifier(of: status, named: name, parent: parent) == identifier else {
                try? directory.close()
                return nil
            }
            return Place(directory: directory, name: name, parent: parent, status: status)
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
