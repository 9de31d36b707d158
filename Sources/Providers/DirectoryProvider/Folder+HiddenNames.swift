import FileProvider
import Syscalls
import SystemPackage

extension Folder {
    /// Whether a name in a directory is not hidden. Removes what a crash has left: a temporary file, and in the trash a
    /// directory that was being deleted.
    func isShown(_ bytes: [UInt8], in directory: FileDescriptor, isTrash: Bool = false) -> Bool {
        guard bytes.starts(with: HiddenName.prefix.utf8) else { return true }
        if manager.domain.isReadOnly { return false }
        if let name = String(validating: bytes, as: UTF8.self),
            let status = try? FileStatus(of: name, in: directory), isOld(status, hiddenAs: name), !isNeeded(bytes)
        {
            switch status.kind {
            case .regular: try? directory.unlink(named: name)
            case .directory where isTrash: try? removeTree(name, in: directory)
            default: break
            }
        }
        return false
    }

    /// Whether a hidden file is so old that it is a leftover. A copy for a write in place may belong to another domain of the same folder,
    /// which renews its change time at each start.
    func isOld(_ status: FileStatus, hiddenAs name: String) -> Bool {
        // The change time, because the modification time is that of the uploaded item.
        let age = FileTimestamp.now.seconds - status.changed.seconds
        return age >= (InPlaceEdit.isCopyName(name) ? 30 * leftoverAge : leftoverAge)
    }

    /// Whether a hidden file is the only complete copy of the content of an interrupted write.
    func isNeeded(_ bytes: [UInt8]) -> Bool {
        guard let name = String(validating: bytes, as: UTF8.self) else { return false }
        do {
            return try manager.store.get(ProviderStoreKey(name), in: InPlaceEdit.namespace) != nil
        } catch {
            return true
        }
    }

    private func removeTree(_ name: String, in directory: FileDescriptor) throws {
        let tree = try directory.openDirectory(named: name)
        defer { try? tree.close() }
        try remove(tree.names(), in: tree, parent: .trashContainer) {}
        try directory.removeDirectory(named: name)
    }
}
