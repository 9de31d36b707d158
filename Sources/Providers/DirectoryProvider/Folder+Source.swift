import FileNames
import FileProvider
import Synchronization
import Syscalls
import SystemPackage

extension Folder {
    /// Opens the root.
    ///
    /// - Throws: `serverUnreachable` if it does not exist, or if another directory or a symbolic link has replaced it
    ///   while items of the old one are known. Nothing is then read, written or reported as deleted.
    func openRoot() throws -> FileDescriptor {
        let root: FileDescriptor
        do {
            root = try FileDescriptor.openDirectory(notFollowing: path)
        } catch {
            if error.isShortageHere { throw FileProviderError.shortageHere(error) }
            throw unreachable(error)
        }
        do {
            let found = try SourceIdentity(of: root)
            let isOther = found != source.withLock { $0.identity }
            if isOther || !isChecked.load(ordering: .relaxed) { try FolderFileSystem.check(path) }
            if isOther { try accept(found, root) }
            isChecked.store(true, ordering: .relaxed)
            reportIfWritable(root)
            if hasUnfinishedEdits.exchange(false, ordering: .relaxed) { finishWritingInPlace() }
            return root
        } catch {
            try? root.close()
            throw error
        }
    }

    /// The mount of a source that was never writable refuses changes until it is mounted again: the user is told once it could be
    /// written.
    private func reportIfWritable(_ root: FileDescriptor) {
        guard isReadOnly, !manager.domain.isReadOnly, !isReportedWritable.load(ordering: .relaxed),
            let statistics = try? root.fileSystemStatistics(), !statistics.isReadOnly,
            !isReportedWritable.exchange(true, ordering: .relaxed)
        else { return }
        let name = ShellWord.escaped(manager.domain.identifier)
        manager.report(
            "the source '\(path)' was read-only when it was mounted, and can be written now: changes are refused until it is "
                + "mounted again ('yonder unmount \(name)', then 'yonder mount \(name)')")
    }

    /// The provider error for a source that cannot be opened.
    func unreachable(_ error: Errno) -> FileProviderError {
        if (try? FileStatus(at: path))?.kind == .symbolicLink {
            return FileProviderError(
                .serverUnreachable,
                "the source '\(path)' has been replaced by a symbolic link, which is not followed: put the folder back, "
                    + "or run 'yonder remove' and mount the other folder")
        }
        return FileProviderError(.serverUnreachable, "the source '\(path)' cannot be opened: \(error)", errno: error)
    }

    /// Accepts another identity if it is the same directory, or if no items of the old one are known.
    private func accept(_ found: SourceIdentity, _ root: FileDescriptor) throws {
        let isSame = source.withLock { $0.identity.isSameDirectory(as: found) }
        guard isSame || !isAnythingKnown else {
            let isEmpty = try root.names().isEmpty
            throw FileProviderError(
                .serverUnreachable,
                isEmpty
                    ? "the source '\(path)' is another, empty folder now: is its disk mounted?"
                    : "the source '\(path)' has been replaced by another folder: put the old one back, or accept the new "
                        + "one by 'yonder reimport' of the mount")
        }
        let record = source.withLock { record in
            record.identity = found
            return record
        }
        forgetPlaces()
        keep(record)
    }

    /// Whether any item of the source is known. A reimport of the root removes all identifiers.
    private var isAnythingKnown: Bool {
        [.rootContainer, .trashContainer].contains { container in
            manager.knownItems(in: container).contains { FolderItems.isIdentifier($0.itemIdentifier) }
        } || manager.materializedDirectories().contains { $0 != .rootContainer }
    }

    func keep(_ record: SourceRecord) {
        do {
            try manager.store.put(record, at: SourceRecord.key, in: SourceRecord.namespace, durability: .synced)
        } catch {
            manager.report("the identity of the source cannot be stored: \(error)")
        }
    }
}
