import Glibc
import SystemPackage

/// Whole files, by path.
extension FilePath {
    /// Removes a file's name; one that is not there is fine. (unlink)
    package func unlinkIfPresent() throws(Errno) {
        guard unlink(cPath) != 0, Errno.current != .noSuchFileOrDirectory else { return }
        throw Errno.current
    }

    /// Gives a file another name in the same file system. (rename)
    package func move(to destination: FilePath) throws(Errno) {
        guard Glibc.rename(cPath, destination.cPath) == 0 else { throw Errno.current }
    }

    /// Gives a file one more name in the same file system. (link)
    package func link(as other: FilePath) throws(Errno) {
        guard Glibc.link(cPath, other.cPath) == 0 else { throw Errno.current }
    }

    /// Makes a symbolic link with this name. (symlink)
    package func makeLink(to target: String) throws(Errno) {
        guard symlink(cName(target), cPath) == 0 else { throw Errno.current }
    }

    /// Removes an empty directory. (rmdir)
    package func removeDirectory() throws(Errno) {
        guard rmdir(cPath) == 0 else { throw Errno.current }
    }

    /// Sets the lower twelve bits of a file's mode. (chmod)
    package func setPermissions(_ permissions: UInt16) throws(Errno) {
        guard chmod(cPath, mode_t(permissions)) == 0 else { throw Errno.current }
    }

    /// Sets the modification time and leaves the other; never follows a link at the end. (utimensat)
    package func setModificationTime(to moment: FileMoment) throws(Errno) {
        let times = [
            timespec(tv_sec: 0, tv_nsec: Self.timeToLeave),
            timespec(tv_sec: Int(moment.seconds), tv_nsec: Int(moment.nanoseconds)),
        ]
        guard utimensat(AT_FDCWD, cPath, times, AT_SYMLINK_NOFOLLOW) == 0 else { throw Errno.current }
    }

    /// UTIME_OMIT, which Glibc does not show.
    private static let timeToLeave = (1 << 30) - 2

    /// Makes a directory; one that is there already is fine. (mkdir)
    package func makeDirectory(permissions: FilePermissions = .ownerReadWriteExecute) throws(Errno) {
        guard mkdir(cPath, permissions.rawValue) != 0, Errno.current != .fileExists else { return }
        throw Errno.current
    }
}
