import FileProvider
import Synchronization
import SystemPackage

/// Lists the trash. It is read once and returned page by page.
final class FolderTrashEnumerator: FileProviderEnumerator {
    private let folder: Folder
    private let watcher: FolderWatcher?
    private let items = Mutex<[FileProviderItem]>([])

    init(folder: Folder, watcher: FolderWatcher?) {
        self.folder = folder
        self.watcher = watcher
    }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        if page == .initial { try await read() }
        return try ItemPage(of: items.withLock { $0 }, startingAt: page, size: suggestedPageSize)
    }

    private func read() async throws {
        try await folder.reading(.trashContainer) { [self] folder, cancellation in
            // The trash may be made later.
            if let watcher, let root = try? folder.openRoot() {
                watcher.watch(root, as: .rootContainer)
                try? root.close()
            }
            watcher?.watchTrash(of: folder)
            let found = try folder.trashedItems(checking: cancellation.check)
            items.withLock { $0 = found }
        }
    }
}

extension FolderWatcher {
    /// Watches the trash directories.
    ///
    /// - Returns: whether one was not watched before.
    @discardableResult
    func watchTrash(of folder: Folder) -> Bool {
        var isAnyNew = false
        for trash in (try? folder.openTrashes()) ?? [] {
            if watch(trash, as: .trashContainer) { isAnyNew = true }
            try? trash.close()
        }
        return isAnyNew
    }
}
