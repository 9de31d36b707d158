import FileNames
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Lists one directory page by page while it reads it, so that memory does not grow with the directory. The token of
/// a page is the number of names before it.
///
/// The watch is set before the first name is read, so that a change during the listing is reported as a change.
final class FolderEnumerator: FileProviderEnumerator {
    /// The position of a listing.
    private struct Progress {
        var stream: DirectoryStream
        /// The number of names read.
        var count = 0
        /// The first name of the next page.
        var following: [UInt8]?

        var token: FileProviderPage { FileProviderPage(rawValue: Array(String(count).utf8)) }

        mutating func next() throws(Errno) -> [UInt8]? {
            if let following {
                self.following = nil
                return following
            }
            guard let name = try stream.next() else { return nil }
            count += 1
            return name
        }
    }

    private let container: ItemIdentifier
    private let folder: Folder
    private let watcher: FolderWatcher?
    private let calls: BlockingCalls
    private let manager: any FileProviderManager
    private let progress = Mutex<Progress?>(nil)

    init(
        container: ItemIdentifier, folder: Folder, watcher: FolderWatcher?, calls: BlockingCalls,
        manager: any FileProviderManager
    ) {
        self.container = container
        self.folder = folder
        self.watcher = watcher
        self.calls = calls
        self.manager = manager
    }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        try await calls.run { [self] wish in
            do {
                let directory = try folder.openDirectory(container)
                defer { try? directory.close() }
                if page == .initial { try folder.waitForAnswers(in: container, wish) }
                return try list(directory, startingAt: page, size: max(1, suggestedPageSize), wish: wish)
            } catch let error as Errno {
                throw folder.failure(error, of: container)
            }
        }
    }

    private func list(
        _ directory: FileDescriptor, startingAt page: FileProviderPage, size: Int, wish: BlockingCalls.Wish
    ) throws -> ItemPage {
        var progress = try begin(directory, at: page)
        var names: [[UInt8]] = []
        while names.count < size, let name = try progress.next() { names.append(name) }
        // Small directories are sorted by name.
        names.sort { $0.lexicographicallyPrecedes($1) }
        var items: [FileProviderItem] = []
        for bytes in names where folder.isShown(bytes, in: directory) {
            try wish.check()
            if container == .rootContainer, Folder.isTrashName(bytes) { continue }
            let name = FileNameText.text(of: bytes)
            if let item = try folder.item(named: name, in: directory, parent: container) { items.append(item) }
        }
        progress.following = try progress.next()
        guard progress.following != nil else { return ItemPage(items: items) }
        let reached = progress
        self.progress.withLock { $0 = reached }
        return ItemPage(items: items, nextPage: reached.token)
    }

    /// Takes the stream for a page. It is returned with the next page, so a failed page ends the listing.
    ///
    /// - Throws: `pageExpired` for a page that is not the next one.
    private func begin(_ directory: FileDescriptor, at page: FileProviderPage) throws -> Progress {
        let reached = progress.withLock { progress in
            defer { progress = nil }
            return progress
        }
        if page == .initial {
            watcher?.watch(directory, as: container)
            return Progress(stream: try DirectoryStream(of: directory))
        }
        guard let reached, reached.token == page else { throw FileProviderError(.pageExpired) }
        return reached
    }
}

/// Reports the changes in watched directories.
struct FolderChanges: FileProviderEnumerator {
    let folder: Folder
    let log: ChangeLog
    let watcher: FolderWatcher?
    let calls: BlockingCalls
    let manager: any FileProviderManager

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        ItemPage(items: [])
    }

    func currentSyncAnchor() async throws -> SyncAnchor? { log.anchor }

    func enumerateChanges(from anchor: SyncAnchor, suggestedBatchSize: Int) async throws -> ChangeBatch {
        guard let news = log.places(since: anchor, limit: max(1, suggestedBatchSize)) else {
            throw FileProviderError(.syncAnchorExpired)
        }
        return try await calls.run { [self] wish in
            var batch = ChangeBatch(anchor: news.anchor, moreComing: !news.isAll)
            var vanished: Set<ItemIdentifier> = []
            var movedAway: Set<ItemIdentifier> = []
            for place in news.places {
                try wish.check()
                let before = vanished
                if let name = place.name { try folder.waitForAnswers(in: place.directory, named: name, wish) }
                if place.directory == .trashContainer {
                    try lookAtTrash(place.name, &batch, &vanished)
                } else if place.directory == .rootContainer, let name = place.name, Folder.isTrashName(name) {
                    // A new trash directory may have received items before it was watched.
                    watcher?.watchTrash(of: folder)
                    try add(folder.trashedItems(checking: wish.check), to: &batch)
                } else {
                    try look(at: place, &batch, &vanished)
                }
                if log.takeMovedAway(place) { movedAway.formUnion(vanished.subtracting(before)) }
            }
            var found = Set(batch.updated.map(\.itemIdentifier))
            for item in try folder.search(for: movedAway.intersection(vanished).subtracting(found)) {
                batch.updated.append(item)
                found.insert(item.itemIdentifier)
            }
            batch.deleted = Array(vanished.subtracting(found))
            return batch
        }
    }

    private func add(_ items: [FileProviderItem], to batch: inout ChangeBatch) {
        let identifiers = Set(items.map(\.itemIdentifier))
        batch.updated.removeAll { identifiers.contains($0.itemIdentifier) }
        batch.updated += items
    }

    /// Compares a name in the trash with the known item.
    private func lookAtTrash(
        _ bytes: [UInt8]?, _ batch: inout ChangeBatch, _ vanished: inout Set<ItemIdentifier>
    ) throws {
        guard let bytes, let name = String(validating: bytes, as: UTF8.self) else { return }
        let known = manager.identifier(ofChildNamed: name, in: .trashContainer)
        do {
            let item = try folder.trashedItem(named: name)
            if let item { add([item], to: &batch) }
            if let known, known != item?.itemIdentifier { vanished.insert(known) }
        } catch let error as Errno {
            throw folder.failure(error, of: .trashContainer)
        }
    }

    /// Compares a path with the known item.
    private func look(
        at place: ChangeLog.Place, _ batch: inout ChangeBatch, _ vanished: inout Set<ItemIdentifier>
    ) throws {
        do {
            guard let bytes = place.name, let name = String(validating: bytes, as: UTF8.self) else {
                let found = try folder.find(place.directory)
                if let item = folder.item(at: found) { batch.updated.append(item) }
                return
            }
            let known = manager.identifier(ofChildNamed: name, in: place.directory)
            let directory = try folder.openDirectory(place.directory)
            defer { try? directory.close() }
            let item = try folder.item(named: name, in: directory, parent: place.directory)
            if let item {
                batch.updated.removeAll { $0.itemIdentifier == item.itemIdentifier }
                batch.updated.append(item)
                folder.noteMoved(item)
                add(folder.siblings(of: item), to: &batch)
            }
            if let known, known != item?.itemIdentifier { vanished.insert(known) }
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // The directory was removed, which its parent reports.
        } catch let error as Errno {
            throw folder.failure(error, of: place.directory)
        }
    }
}

extension Folder {
    /// Finds items that were moved out of a watched directory and did not appear in another one.
    ///
    /// - Returns: the items that are still in the folder.
    func search(for identifiers: Set<ItemIdentifier>) throws -> [FileProviderItem] {
        guard !identifiers.isEmpty else { return [] }
        index.expire()
        return try identifiers.compactMap { identifier in
            guard let place = try findIfThere(identifier), let item = item(at: place) else { return nil }
            noteMoved(item)
            return item
        }
    }

    func item(at place: borrowing Place) -> FileProviderItem? {
        guard let name = place.name else { return items.root(status: place.status) }
        return items.item(
            place.identifier, named: name, in: place.directory, parent: place.parent, status: place.status)
    }

    /// The provider error for a failed system call.
    func failure(_ error: Errno, of identifier: ItemIdentifier) -> FileProviderError {
        switch error {
        case .permissionDenied, .notPermitted:
            FileProviderError(.fileReadNoPermission, itemIdentifier: identifier)
        case .noSuchFileOrDirectory, .notDirectory: FileProviderError.noSuchItem(identifier)
        case .socketNotConnected, .staleNFSFileHandle, .noRouteToHost, .hostIsDown, .operationNotSupportedByDevice:
            FileProviderError(.serverUnreachable, "the source '\(path)' does not answer: \(error)")
        case .timedOut: FileProviderError(.timedOut, "the source '\(path)' does not answer")
        default: FileProviderError(.posix, "the source: \(error)", itemIdentifier: identifier, errno: error)
        }
    }
}
