import CSyscalls
import Glibc
import SystemPackage

/// What a folder needs that is a remote: certainty which folder it is, and files that are written in place.
extension FileDescriptor {
    /// Opens a directory just to reach what is in it; a symbolic link as the last component is ENOTDIR. Links before
    /// that are followed. (open with O_PATH and O_NOFOLLOW)
    package static func openDirectory(notFollowing path: FilePath) throws(Errno) -> FileDescriptor {
        try openAt(AT_FDCWD, path.string, yonder_open_path | O_DIRECTORY | O_NOFOLLOW)
    }

    /// Opens a file of this directory for reading and writing, without following a link. (openat)
    package func openForWriting(named name: String) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK)
    }

    /// The identifier of the file system that holds this file; 0 where it has none. (fstatfs)
    package var fileSystemIdentifier: UInt64 { yonder_file_system_identifier(rawValue) }

    /// How full the file system is that holds this file. (statvfs)
    package func fileSystemStatistics() throws(Errno) -> FileSystemStatistics {
        try FileSystemStatistics(of: FilePath(processPath))
    }

    /// Takes a write lease: nobody else has the file open, and whoever opens it waits until the lease is given up, or for
    /// `/proc/sys/fs/lease-break-time` seconds. (fcntl with F_SETLEASE)
    ///
    /// - Throws: EAGAIN while somebody has it open; EINVAL where the file system has no leases; EACCES for a file of
    ///   another user.
    package func takeWriteLease() throws(Errno) {
        guard yonder_take_write_lease(rawValue) == 0 else { throw Errno.current }
    }

    /// Gives up a lease; that there is none is fine. (fcntl with F_SETLEASE)
    package func giveUpLease() {
        _ = yonder_give_up_lease(rawValue)
    }
}

extension FilePath {
    /// The path without symbolic links. (realpath)
    package func resolvingLinks() throws(Errno) -> FilePath {
        guard let resolved = realpath(string, nil) else { throw Errno.current }
        defer { free(resolved) }
        return FilePath(String(cString: resolved))
    }
}
