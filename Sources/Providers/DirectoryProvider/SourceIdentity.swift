import FileProvider
import Syscalls
import SystemPackage

/// The identity of the source directory, stored with the domain. Another directory in its place is an error, not a
/// remote whose files have all been replaced.
struct SourceIdentity: Codable, Hashable, Sendable {
    var inode: UInt64
    var device: UInt64
    /// 0 if the file system has none.
    var fileSystem: UInt64
    /// Seconds and nanoseconds; nil if the file system has none.
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

    /// The identifier of the file system; nil if it has none, or only the number of its device, as XFS.
    private var ownFileSystem: UInt64? { fileSystem == 0 || fileSystem == device ? nil : fileSystem }

    /// The birth time; nil if there is none, or only one to the second, which a tool that makes file systems has written.
    private var preciseBirth: [Int64]? { birth?.last == 0 ? nil : birth }

    /// Whether it can be known again after another mount, though the device has another number.
    var isLasting: Bool { ownFileSystem != nil || preciseBirth != nil }

    /// Whether a file has these numbers.
    func isSameFile(as status: FileStatus) -> Bool {
        inode == status.inode && device == status.device && birth == status.birth.map { [$0.seconds, $0.nanoseconds] }
    }

    /// Whether both are the same directory. The kernel may assign another device number at each mount, and the number of a file system
    /// that is gone to another one; the file system's identifier stays, except on XFS, where it is that number: there a birth time to
    /// the nanosecond says as much. A network mount may have neither.
    func isSameDirectory(as other: SourceIdentity) -> Bool {
        guard hasNumbers(of: other) else { return false }
        if let ownFileSystem, let others = other.ownFileSystem { return ownFileSystem == others }
        if let preciseBirth, preciseBirth == other.birth, fileSystem == device, other.fileSystem == other.device {
            return true
        }
        return device == other.device || (fileSystem != 0 && fileSystem == other.fileSystem)
            || (isOnNetwork && other.isOnNetwork)
    }

    /// Whether both are the same directory, by nothing that another file system can have as well; nil if that is not known. The number
    /// of a device says nothing: the next file system that is mounted gets it.
    func isProvenSame(as other: SourceIdentity) -> Bool? {
        guard hasNumbers(of: other) else { return false }
        if let ownFileSystem, let others = other.ownFileSystem { return ownFileSystem == others }
        if let preciseBirth, preciseBirth == other.birth { return true }
        return nil
    }

    private func hasNumbers(of other: SourceIdentity) -> Bool {
        inode == other.inode && (birth == nil || other.birth == nil || birth == other.birth)
    }
}

struct SourceRecord: Codable, Sendable {
    /// The path in the domain's source.
    var source: String
    /// The source with its symbolic links resolved at the first mount.
    var path: String
    var identity: SourceIdentity
    /// Whether the file system was mounted read-only whenever the domain was mounted; nil when that is not known.
    var isReadOnly: Bool?

    static let namespace = ProviderStoreNamespace<SourceRecord>("folder.source")
    static let key: ProviderStoreKey = "root"
}
