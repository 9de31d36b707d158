import FileNames
import FileProvider
import Syscalls
import SystemPackage

extension FolderWriter {
    func delete(_ identifier: ItemIdentifier, base: ItemVersion, _ options: DeleteItemOptions) throws {
        guard identifier != .rootContainer else {
            throw FileProviderError(.deletionRejected, "the root stays", itemIdentifier: identifier)
        }
        guard let place = try folder.findIfThere(identifier), let name = place.name else { return }
        if options.contains(.onlyFromTrash) { try checkIsTrashed(place) }
        do {
            try folder.readOnlyDirectories.writing(to: [place.directory]) {
                if place.status.kind == .directory {
                    try deleteDirectory(name, place, recursively: options.contains(.recursive))
                } else {
                    try deleteFile(name, place, base)
                }
            }
        } catch Errno.notPermitted {
            // A sticky bit or an attribute of the file. Modes that deny it (EACCES) are waited for, as with any change.
            throw FileProviderError(
                .deletionRejected, "deleting '\(name)' is not permitted on the source", itemIdentifier: identifier,
                item: folder.item(at: place))
        } catch Errno.noSuchFileOrDirectory {
            if options.contains(.onlyFromTrash), let place = try folder.findIfThere(identifier) {
                try checkIsTrashed(place)
            }
            return
        }
        folder.noteGone(name, place.parent)
        if place.parent == .trashContainer { folder.giveUpTrashName(name, in: place.directory) }
        try place.directory.synchronize(asDirectory: true)
    }

    private func checkIsTrashed(_ place: borrowing Folder.Place) throws {
        if !place.isTrashed { throw FileProviderError.wasRestored(place.identifier, item: folder.item(at: place)) }
    }

    /// Renames a file before the final comparison, so that a write to its name from then on is safe.
    private func deleteFile(_ name: String, _ place: borrowing Folder.Place, _ base: ItemVersion) throws {
        guard isBase(place.status, base) else { throw rejection(of: name, place) }
        if mayBeRewritten(place, since: base) {
            throw FileProviderError(
                .deletionRejected, "it may have been written on the source since",
                itemIdentifier: place.identifier, item: folder.item(at: place))
        }
        let aside = HiddenName.make()
        try place.directory.rename(name, to: aside, in: place.directory)
        let status: FileStatus
        do {
            status = try FileStatus(of: aside, in: place.directory, isFresh: true)
            if status.isSameFile(as: place.status), isBase(status, base) {
                try place.directory.unlink(named: aside)
                if status.kind == .regular, status.linkCount < 2 { folder.forgetEdits(of: folder.items.file(status)) }
                return
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

    /// Whether a file may have been written in place and given its old time. Another change time alone does not show that: a change of its
    /// name, mode or owner, a change by this provider before the daemon was killed, or a hard link that was made and removed elsewhere must
    /// not bring the file back. The system may know the write, and not have compared the content yet.
    private func mayBeRewritten(_ place: borrowing Folder.Place, since base: ItemVersion) -> Bool {
        guard mayBeRewritten(place.status, since: base, in: place.directory), let name = place.name else {
            return false
        }
        // Of what is in the trash no place is known.
        guard folder.knownPlace(of: place.identifier) != nil else { return false }
        // What the system has noticed itself the log may have forgotten. A clock that was set back says nothing.
        guard let known = FolderItems.changeTime(of: base), known <= FileTimestamp(place.status.changed) else {
            return true
        }
        return folder.log.isWritten(ChangeLog.Place(name, in: place.parent), since: known)
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
        // It may hold the new content of a file that has other links elsewhere.
        folder.finishWritingInPlace()
        if recursively { return try deleteTree(name, place) }
        let directory = try place.directory.openDirectory(named: name)
        defer { try? directory.close() }
        guard try FileStatus(of: directory).isSameFile(as: place.status) else { return }
        // Hidden files of a crash do not count.
        let names = try directory.names()
        let left = names.filter { !$0.starts(with: HiddenName.prefix.utf8) }
        guard left.isEmpty else {
            throw FileProviderError(
                .directoryNotEmpty,
                "the directory is not empty on the remote: it contains \(Self.description(of: left, in: directory))",
                item: folder.item(at: place))
        }
        // These alone: another program may have made a file since.
        try folder.remove(names, in: directory, parent: place.parent, checking: cancellation.check)
        try place.directory.removeDirectory(named: name)
    }

    /// Some names in a directory, and how many more there are. Special files are not shown in the mount, so they are named as such.
    private static func description(of names: [[UInt8]], in directory: FileDescriptor) -> String {
        let texts = names.map { FileNameText.text(of: $0) }.sorted()
        let shown = texts.prefix(3).map { name in
            let isSpecial = (try? FileStatus(of: name, in: directory))?.kind == .special
            return isSpecial ? "'\(name)' (a FIFO, socket or device, which is not shown)" : "'\(name)'"
        }
        return shown.joined(separator: ", ") + (texts.count > 3 ? " and \(texts.count - 3) more" : "")
    }

    /// Renames a directory before its contents are removed, so that another client restores all of it from the trash, or
    /// nothing. What cannot be removed gets its name back.
    private func deleteTree(_ name: String, _ place: borrowing Folder.Place) throws {
        let aside = HiddenName.make()
        try place.directory.rename(name, to: aside, in: place.directory)
        do {
            let directory = try place.directory.openDirectory(named: aside)
            defer { try? directory.close() }
            // Another directory with this name means that the item itself is gone from here.
            guard try FileStatus(of: directory).isSameFile(as: place.status) else { throw Errno.noSuchFileOrDirectory }
            try folder.remove(directory.names(), in: directory, parent: place.parent, checking: cancellation.check)
            try place.directory.removeDirectory(named: aside)
        } catch {
            folder.giveBack(aside, as: name, in: place.directory)
            throw error
        }
    }
}
