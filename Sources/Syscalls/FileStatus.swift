import CSyscalls
import Glibc
import SystemPackage

/// A timestamp of the kernel.
package struct FileMoment: Hashable, Sendable {
    package var seconds: Int64
    package var nanoseconds: Int64

    package init(seconds: Int64, nanoseconds: Int64) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }
}

/// The result of `statx(2)`.
package struct FileStatus: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case regular
        case directory
        case symbolicLink
        /// A FIFO, socket or device.
        case special
    }

    package var kind: Kind
    /// Whether the file is a socket, a case of ``Kind/special``.
    package var isSocket: Bool
    /// The lower twelve bits of the mode.
    package var permissions: UInt16
    package var owner: UInt32
    package var group: UInt32
    package var linkCount: UInt32
    package var inode: UInt64
    package var device: UInt64
    package var size: Int64
    /// The allocated space in bytes.
    package var allocated: Int64
    package var modified: FileMoment
    package var changed: FileMoment
    /// Nil if the file system has no birth times.
    package var birth: FileMoment?
    /// Whether it is the root of a mount; false where the kernel does not tell (before Linux 5.8).
    package var isMountRoot: Bool
    /// The number of its mount; nil where the kernel does not tell (before Linux 5.8).
    package var mount: UInt64?
    /// Whether no other mount gets the number of its mount until the machine is started again (Linux 6.8).
    package var isMountUnique: Bool

    /// The number of a device, as ``device`` has it. (makedev)
    package static func device(major: UInt32, minor: UInt32) -> UInt64 { yonder_device(major, minor) }

    /// Of a name in an open directory; never follows a link. (statx)
    ///
    /// - Parameter isFresh: whether a network file system has to ask its server. Its cache may be a minute old.
    package init(of name: String, in directory: FileDescriptor, isFresh: Bool = false) throws(Errno) {
        var status = yonder_status()
        // The directory first: the name may have been given to another file.
        if isFresh, !name.isEmpty, yonder_statx(directory.rawValue, "", 1, &status) != 0 { throw Errno.current }
        guard yonder_statx(directory.rawValue, cName(name), isFresh ? 1 : 0, &status) == 0 else { throw Errno.current }
        self.init(status)
    }

    /// Of an open file. (statx)
    package init(of descriptor: FileDescriptor, isFresh: Bool = false) throws(Errno) {
        try self.init(of: "", in: descriptor, isFresh: isFresh)
    }

    /// Of a path; never follows a link at its end. (statx)
    package init(at path: FilePath) throws(Errno) {
        var status = yonder_status()
        guard yonder_statx(AT_FDCWD, path.cPath, 0, &status) == 0 else { throw Errno.current }
        self.init(status)
    }

    /// Of a path, with a symbolic link at its end followed. (open with O_PATH, statx)
    package init(following path: FilePath) throws(Errno) {
        let descriptor = open(path.cPath, yonder_open_path | O_CLOEXEC)
        guard descriptor >= 0 else { throw Errno.current }
        defer { close(descriptor) }
        try self.init(of: FileDescriptor(rawValue: descriptor))
    }

    private init(_ status: yonder_status) {
        isMountRoot = status.is_mount_root != 0
        mount = status.mount != 0 ? status.mount : nil
        isMountUnique = status.is_mount_unique != 0
        isSocket = status.mode & 0o170000 == 0o140000
        kind =
            switch status.mode & 0o170000 {
            case 0o100000: .regular
            case 0o040000: .directory
            case 0o120000: .symbolicLink
            default: .special
            }
        permissions = UInt16(status.mode & 0o7777)
        owner = status.owner
        group = status.group
        linkCount = status.links
        inode = status.inode
        device = status.device
        size = status.size
        allocated = status.blocks * 512
        modified = FileMoment(seconds: status.modified_seconds, nanoseconds: Int64(status.modified_nanoseconds))
        changed = FileMoment(seconds: status.changed_seconds, nanoseconds: Int64(status.changed_nanoseconds))
        birth =
            status.has_birth != 0
            ? FileMoment(seconds: status.birth_seconds, nanoseconds: Int64(status.birth_nanoseconds)) : nil
    }
}
