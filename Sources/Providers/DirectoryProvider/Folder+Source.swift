import FileProvider
import Synchronization
import Syscalls
import SystemPackage

extension Folder {
    /// The root, open.
    ///
    /// - Throws: `serverUnreachable` when it is not there, and when another directory or a symbolic link is in its place
    ///   while anything of the old one is known: nothing is read or written there, and nothing is believed removed.
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
            if found != source.withLock({ $0.identity }) { try accept(found, root) }
            return root
        } catch {
            try? root.close()
            throw error
        }
    }

    /// What a source that cannot be opened means.
    func unreachable(_ error: Errno) -> FileProviderError {
        if (try? FileStatus(at: path))?.kind == .symbolicLink {
            return FileProviderError(
                .serverUnreachable,
                "the source '\(path)' has been replaced by a symbolic link, which is not followed: put the folder back, "
                    + "or run 'yonder remove' and mount the other folder")
        }
        return FileProviderError(.serverUnreachable, "the source '\(path)' cannot be opened: \(error)", errno: error)
    }

    /// Takes another identity over, when it is the same directory or nothing is known of the old one.
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

    /// Whether any item of the source has an identifier here. A reimport of the root takes them all away.
    private var isAnythingKnown: Bool {
        [.rootContainer, .trashContainer].contains { container in
            manager.knownItems(in: container).contains { FolderItems.isIdentifier($0.itemIdentifier) }
        } || manager.materializedDirectories().contains { $0 != .rootContainer }
    }

    func keep(_ record: SourceRecord) {
        do {
            try stateFiles.write(record, SourceRecord.name)
        } catch {
            manager.report("which folder the source is could not be kept: \(error)")
        }
    }
}
