import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Lists one directory. The names are read once, sorted, and given page by page; the token of a page is the last name of
/// the one before.
final class FolderEnumerator: FileProviderEnumerator {
    private let container: ItemIdentifier
    private let folder: Folder
    private let watcher: FolderWatcher?
    private let calls: BlockingCalls
    private let manager: any FileProviderManager
    private let names = Mutex<[[UInt8]]?>(nil)

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
        let all = try sortedNames(of: directory, isFirst: page == .initial)
        let start = page == .initial ? 0 : Self.index(after: page.rawValue, in: all)
        var items: [FileProviderItem] = []
        var position = start
        while position < all.count, items.count < size {
            try wish.check()
            let bytes = all[position]
            position += 1
            guard let name = String(validating: bytes, as: UTF8.self) else {
                manager.report(
                    "the source has a name that is not UTF-8 and is not shown: '\(String(decoding: bytes, as: UTF8.self))'"
                )
                continue
            }
            if let item = try folder.item(named: name, in: directory, parent: container) { items.append(item) }
        }
        let isLast = position >= all.count
        if isLast { names.withLock { $0 = nil } }
        return ItemPage(items: items, nextPage: isLast ? nil : FileProviderPage(rawValue: all[position - 1]))
    }

    /// The names are read after the watch was set, so that nothing comes between.
    private func sortedNames(of directory: FileDescriptor, isFirst: Bool) throws -> [[UInt8]] {
        if !isFirst, let known = names.withLock({ $0 }) { return known }
        watcher?.watch(directory, as: container)
        let all = try folder.shownNames(in: directory)
            .filter { container != .rootContainer || !Folder.isTrashName($0) }
            .sorted { $0.lexicographicallyPrecedes($1) }
        names.withLock { $0 = all }
        return all
    }

    private static func index(after name: [UInt8], in names: [[UInt8]]) -> Int {
        var low = 0
        var high = names.count
        while low < high {
            let middle = (low + high) / 2
            if name.lexicographicallyPrecedes(names[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// Tells what changed in the directories that are watched.
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
            for place in news.places {
                try wish.check()
                if let name = place.name { try folder.waitForAnswers(in: place.directory, named: name, wish) }
                if place.directory == .trashContainer {
                    try lookAtTrash(place.name, &batch, &vanished)
                } else if place.directory == .rootContainer, let name = place.name, Folder.isTrashName(name) {
                    // A trash that was made just now: what is in it may have come before it was watched.
                    watcher?.watchTrash(of: folder)
                    try add(folder.trashedItems(checking: wish.check), to: &batch)
                } else {
                    try look(at: place, &batch, &vanished)
                }
            }
            let found = Set(batch.updated.map(\.itemIdentifier))
            batch.deleted = Array(vanished.subtracting(found))
            return batch
        }
    }

    private func add(_ items: [FileProviderItem], to batch: inout ChangeBatch) {
        let identifiers = Set(items.map(\.itemIdentifier))
        batch.updated.removeAll { identifiers.contains($0.itemIdentifier) }
        batch.updated += items
    }

    /// What has a name among the trashed files now, against what was known to have it.
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

    /// What is in a place now, against what was known to be there.
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
            // The directory itself is gone: whoever holds it tells.
        } catch let error as Errno {
            throw folder.failure(error, of: place.directory)
        }
    }
}

extension Folder {
    func item(at place: borrowing Place) -> FileProviderItem? {
        guard let name = place.name else { return items.root(status: place.status) }
        return items.item(
            place.identifier, named: name, in: place.directory, parent: place.parent, status: place.status)
    }

    /// What a failed system call means to the system.
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
