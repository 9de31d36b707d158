import CSyscalls
import Glibc
import SystemPackage

/// Calls for a folder that is a remote: its identity, and writes in place.
extension FileDescriptor {
    /// Opens a directory as a base for other calls; ENOTDIR if the last component is a symbolic link. Earlier links
    /// are followed. (open with O_PATH and O_NOFOLLOW)
    package static func openDirectory(notFollowing path: FilePath) throws(Errno) -> FileDescriptor {
        try openAt(AT_FDCWD, path.fileNameText, yonder_open_path | O_DIRECTORY | O_NOFOLLOW)
    }

    /// Opens a file of this directory for reading and writing, without following a link. (openat)
    package func openForWriting(named name: String) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
    }

    /// The identifier of the file system of this file; 0 if it has none. (fstatfs)
    package var fileSystemIdentifier: UInt64 { yonder_file_system_identifier(rawValue) }

    /// The space of the file system of this file. (statvfs)
    package func fileSystemStatistics() throws(Errno) -> FileSystemStatistics {
        try FileSystemStatistics(of: FilePath(processPath))
    }

    /// Takes a write lease: no other process has the file open, and an open by another process waits until the lease
    /// is released, or for `/proc/sys/fs/lease-break-time` seconds. (fcntl with F_SETLEASE)
    ///
    /// - Throws: EAGAIN while another process has the file open; EINVAL if the file system has no leases; EACCES for
    ///   a file of another user.
    package func takeWriteLease() throws(Errno) {
        guard yonder_take_write_lease(rawValue) == 0 else { throw Errno.current }
    }

    /// Whether a process has the file open for writing, or mapped so. False for a file of another user, and on a file system that
    /// has no leases. (fcntl with F_SETLEASE)
    package var isOpenForWriting: Bool {
        guard yonder_take_read_lease(rawValue) != 0 else {
            giveUpLease()
            return false
        }
        return Errno.current == .resourceTemporarilyUnavailable
    }

    /// Releases a lease, if there is one. (fcntl with F_SETLEASE)
    package func giveUpLease() {
        _ = yonder_give_up_lease(rawValue)
    }
}

extension FilePath {
    /// The path without symbolic links. (realpath)
    package func resolvingLinks() throws(Errno) -> FilePath {
        guard let resolved = realpath(cPath, nil) else { throw Errno.current }
        defer { free(resolved) }
        return FilePath(platformString: resolved)
    }
}
