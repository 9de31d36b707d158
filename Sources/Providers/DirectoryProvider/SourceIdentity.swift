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

    static let name = "source"
}
