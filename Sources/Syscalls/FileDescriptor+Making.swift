import CSyscalls
import Glibc
import SystemPackage

/// Making, renaming and removing names in an open directory, as ``FileNameText`` has them, and so have it the targets of
/// symbolic links. No function follows a symbolic link in the last place.
extension FileDescriptor {
    /// Opens whatever has this name, a link itself too, just to name it in other calls. (openat with O_PATH)
    package func openReference(named name: String) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, yonder_open_path | O_NOFOLLOW)
    }

    /// Opens a new file in this directory that has no name yet, for reading and writing. (openat with O_TMPFILE)
    ///
    /// - Parameter permissions: less what the umask takes away.
    /// - Throws: EOPNOTSUPP where the file system has no such thing; some say EINVAL, EISDIR or ENOENT.
    package func makeNamelessFile(permissions: UInt16) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, ".", O_RDWR | yonder_open_temporary, permissions)
    }

    /// Makes a file and opens it for reading and writing. (openat with O_EXCL)
    ///
    /// - Throws: EEXIST when the name is taken.
    package func makeFile(named name: String, permissions: UInt16) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, permissions)
    }

    /// Gives this open file, which may have none yet, a name. (linkat)
    ///
    /// - Throws: EEXIST when the name is taken.
    package func link(as name: String, in directory: FileDescriptor) throws(Errno) {
        guard linkat(AT_FDCWD, processPath, directory.rawValue, cName(name), AT_SYMLINK_FOLLOW) == 0 else {
            throw Errno.current
        }
    }

    /// Gives what has a name in this directory one more name. (linkat)
    package func link(_ name: String, as newName: String, in directory: FileDescriptor) throws(Errno) {
        guard linkat(rawValue, cName(name), directory.rawValue, cName(newName), 0) == 0 else { throw Errno.current }
    }

    /// Makes a directory. (mkdirat)
    ///
    /// - Parameter permissions: less what the umask takes away.
    package func makeDirectory(named name: String, permissions: UInt16) throws(Errno) {
        guard mkdirat(rawValue, cName(name), mode_t(permissions)) == 0 else { throw Errno.current }
    }

    /// Makes a symbolic link. (symlinkat)
    package func makeLink(named name: String, to target: String) throws(Errno) {
        guard symlinkat(cName(target), rawValue, cName(name)) == 0 else { throw Errno.current }
    }

    /// Gives what has a name in this directory another name, in the place of what has it. (renameat)
    package func rename(_ name: String, to newName: String, in directory: FileDescriptor) throws(Errno) {
        guard renameat(rawValue, cName(name), directory.rawValue, cName(newName)) == 0 else { throw Errno.current }
    }

    /// Gives what has a name in this directory another name that nothing has. (renameat2 with RENAME_NOREPLACE)
    ///
    /// - Throws: EEXIST when the name is taken; EINVAL when a directory would come below itself, and on file systems
    ///   that cannot do it.
    package func renameNew(_ name: String, to newName: String, in directory: FileDescriptor) throws(Errno) {
        guard yonder_rename_new(rawValue, cName(name), directory.rawValue, cName(newName)) == 0 else {
            throw Errno.current
        }
    }

    /// Lets two names in this directory change places, in one step. (renameat2 with RENAME_EXCHANGE)
    ///
    /// - Throws: EINVAL on file systems that cannot do it.
    package func exchange(_ name: String, with other: String) throws(Errno) {
        guard yonder_exchange(rawValue, cName(name), rawValue, cName(other)) == 0 else { throw Errno.current }
    }

    /// Removes the name of anything but a directory. (unlinkat)
    package func unlink(named name: String) throws(Errno) {
        guard unlinkat(rawValue, cName(name), 0) == 0 else { throw Errno.current }
    }

    /// Removes an empty directory. (unlinkat with AT_REMOVEDIR)
    package func removeDirectory(named name: String) throws(Errno) {
        guard unlinkat(rawValue, cName(name), AT_REMOVEDIR) == 0 else { throw Errno.current }
    }

    /// Removes all that a directory holds, whatever its names are made of. What is mounted in it stays.
    ///
    /// - Parameter check: called before each name; what it throws ends it.
    /// - Throws: EXDEV at a mount, with what was removed before gone.
    package func removeContents(checking check: () throws -> Void) throws {
        let device = try FileStatus(of: self).device
        for name in try names() {
            try check()
            let text = name.map(CChar.init(bitPattern:)) + [0]
            if unlinkat(rawValue, text, 0) == 0 || Errno.current == .noSuchFileOrDirectory { continue }
            // Linux says EISDIR for a directory, others EPERM.
            guard Errno.current == .isDirectory || Errno.current == .notPermitted else { throw Errno.current }
            let inner = openat(rawValue, text, yonder_open_path | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard inner >= 0 else { throw Errno.current }
            let directory = FileDescriptor(rawValue: inner)
            defer { try? directory.close() }
            guard try FileStatus(of: directory).device == device else { throw Errno.improperLink }
            try directory.removeContents(checking: check)
            guard unlinkat(rawValue, text, AT_REMOVEDIR) == 0 || Errno.current == .noSuchFileOrDirectory else {
                throw Errno.current
            }
        }
    }

    /// Puts an open file, or the names of a directory that is open just to be reached, on the disk. (fsync)
    package func synchronize(asDirectory: Bool = false) throws(Errno) {
        var file = self
        if asDirectory {
            do throws(Errno) {
                file = try Self.openAt(rawValue, ".", O_RDONLY | O_DIRECTORY)
            } catch {
                // What may be written and not read has to wait for the disk's own time.
                guard error == .permissionDenied else { throw error }
                return
            }
        }
        defer { if asDirectory { try? file.close() } }
        // Some file systems have nothing to do, and say EINVAL.
        guard fsync(file.rawValue) == 0 || Errno.current == .invalidArgument else { throw Errno.current }
    }

    /// The same open file under one more number, which is to be closed for itself. (fcntl with F_DUPFD_CLOEXEC)
    package func duplicateCloseOnExec() throws(Errno) -> FileDescriptor {
        let descriptor = fcntl(rawValue, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw Errno.current }
        return FileDescriptor(rawValue: descriptor)
    }

    /// What this process can call an open file whatever becomes of its names.
    var processPath: String { "/proc/self/fd/\(rawValue)" }
}
