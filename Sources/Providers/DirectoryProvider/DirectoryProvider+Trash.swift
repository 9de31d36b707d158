import FileProvider
import SystemPackage

extension DirectoryProvider {
    func trashEnumerator() -> ReadOnceEnumerator {
        ReadOnceEnumerator { [folder, watcher] in
            try await folder.reading(.trashContainer) { folder, cancellation in
                // The trash may be made later.
                if let watcher, let root = try? folder.openRoot() {
                    watcher.watch(root, as: .rootContainer)
                    try? root.close()
                }
                watcher?.watchTrash(of: folder)
                return try folder.trashedItems(checking: cancellation.check)
            }
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
