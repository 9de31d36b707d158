import Glibc
import SystemPackage

/// Whole files, by path.
extension FilePath {
    /// Removes a file's name; one that is not there is fine. (unlink)
    package func unlinkIfPresent() throws(Errno) {
        guard unlink(string) != 0, Errno.current != .noSuchFileOrDirectory else { return }
        throw Errno.current
    }

    /// Gives a file another name in the same file system. (rename)
    package func move(to destination: FilePath) throws(Errno) {
        guard Glibc.rename(string, destination.string) == 0 else { throw Errno.current }
    }

    /// Makes a directory; one that is there already is fine. (mkdir)
    package func makeDirectory(permissions: FilePermissions = .ownerReadWriteExecute) throws(Errno) {
        guard mkdir(string, permissions.rawValue) != 0, Errno.current != .fileExists else { return }
        throw Errno.current
    }
}
