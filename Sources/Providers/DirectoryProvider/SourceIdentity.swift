import FileProvider
import Synchronization
import Syscalls
import SystemPackage

/// Which directory the source is, kept with the domain: another directory in its place is not a remote whose files have
/// all been replaced.
struct SourceIdentity: Codable, Hashable, Sendable {
    var inode: UInt64
    var device: UInt64
    /// 0 where the file system has none.
    var fileSystem: UInt64
    /// Seconds and nanoseconds; nil where the file system keeps none.
    var birth: [Int64]?
    var isOnNetwork: Bool

    init(of root: FileDescriptor) throws(Errno) {
        let status = try FileStatus(of: root)
        inode = status.inode
        device = status.device
        fileSystem = root.fileSystemIdentifier
        birth = status.birth.map { [$0.seconds, $0.nanoseconds] }
        isOnNetwork = root.isOnNetworkFileSystem
    }

    /// Whether both are one directory. The kernel may give a file system another device number each time it is mounted;
    /// its identifier stays, or else it is a network mount, which has neither for certain.
    func isSameDirectory(as other: SourceIdentity) -> Bool {
        guard inode == other.inode, birth == nil || other.birth == nil || birth == other.birth else { return false }
        return device == other.device || (fileSystem != 0 && fileSystem == other.fileSystem)
            || (isOnNetwork && other.isOnNetwork)
    }
}

/// What is kept of the source.
struct SourceRecord: Codable, Sendable {
    /// As the domain names it.
    var source: String
    /// The source without symbolic links, as it was resolved at the first mount.
    var path: String
    var identity: SourceIdentity

    static let namespace = ProviderStoreNamespace<SourceRecord>("folder.source")
    static let key: ProviderStoreKey = "root"
}

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
            try manager.store.put(record, at: SourceRecord.key, in: SourceRecord.namespace, durability: .synced)
        } catch {
            manager.report("which folder the source is could not be kept: \(error)")
        }
    }
}
