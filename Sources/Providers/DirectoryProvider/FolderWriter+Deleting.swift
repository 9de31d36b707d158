import FileProvider
import Syscalls
import SystemPackage

/// Permanent deletion.
extension FolderWriter {
    func delete(_ identifier: ItemIdentifier, base: ItemVersion, recursively: Bool) throws {
        guard identifier != .rootContainer else {
            throw FileProviderError(.deletionRejected, "the root stays", itemIdentifier: identifier)
        }
        guard let place = try folder.findIfThere(identifier), let name = place.name else { return }
        do {
            try folder.readOnlyDirectories.writing(to: [place.directory]) {
                if place.status.kind == .directory {
                    try deleteDirectory(name, place, recursively: recursively)
                } else {
                    try deleteFile(name, place, base)
                }
            }
        } catch Errno.noSuchFileOrDirectory {
            return
        }
        folder.noteGone(name, place.parent)
        if place.parent == .trashContainer { folder.giveUpTrashName(name, in: place.directory) }
        try place.directory.synchronize(asDirectory: true)
    }

    /// Renames a file before the final comparison, so that a write to its name from then on is safe.
    private func deleteFile(_ name: String, _ place: borrowing Folder.Place, _ base: ItemVersion) throws {
        guard isBase(place.status, base) else { throw rejection(of: name, place) }
        let aside = HiddenName.make()
        try place.directory.rename(name, to: aside, in: place.directory)
        let status: FileStatus
        do {
            status = try FileStatus(of: aside, in: place.directory)
            if status.isSameFile(as: place.status), isBase(status, base) {
                return try place.directory.unlink(named: aside)
            }
        } catch {
            folder.giveBack(aside, as: name, in: place.directory)
            throw error
        }
        folder.giveBack(aside, as: name, in: place.directory)
        // Another file with this name means that the item itself is gone.
        if status.isSameFile(as: place.status) { throw rejection(of: name, place) }
    }

    private func isBase(_ status: FileStatus, _ base: ItemVersion) -> Bool {
        status.kind != .regular || FolderItems.version(of: status).contentVersion == base.contentVersion
    }

    private func rejection(of name: String, _ place: borrowing Folder.Place) -> any Error {
        guard let item = try? folder.item(named: name, in: place.directory, parent: place.parent) else {
            return Errno.noSuchFileOrDirectory
        }
        return FileProviderError.deletionRejected(of: item)
    }

    private func deleteDirectory(_ name: String, _ place: borrowing Folder.Place, recursively: Bool) throws {
        do {
            return try place.directory.removeDirectory(named: name)
        } catch {
            // POSIX allows either error.
            guard error == .directoryNotEmpty || error == .fileExists else { throw error }
        }
        let directory = try place.directory.openDirectory(named: name)
        defer { try? directory.close() }
        guard try FileStatus(of: directory).isSameFile(as: place.status) else { return }
        if !recursively {
            // Hidden files of a crash do not count.
            let names = try directory.names()
            guard names.allSatisfy({ $0.starts(with: HiddenName.prefix.utf8) }) else {
                throw FileProviderError(.directoryNotEmpty, item: folder.item(at: place))
            }
        }
        try directory.removeContents(checking: cancellation.check)
        try place.directory.removeDirectory(named: name)
    }
}
