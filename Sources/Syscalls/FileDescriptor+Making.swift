import CSyscalls
import Glibc
import SystemPackage

/// Creates, renames and removes names in an open directory. Names and link targets are encoded by ``FileNameText``.
/// No function follows a symbolic link in the last component.
extension FileDescriptor {
    /// Makes a pipe that programs do not inherit. (pipe2)
    package static func closeOnExecPipe() throws(Errno) -> (readEnd: FileDescriptor, writeEnd: FileDescriptor) {
        var ends: [Int32] = [-1, -1]
        guard yonder_pipe(&ends) == 0 else { throw Errno.current }
        return (FileDescriptor(rawValue: ends[0]), FileDescriptor(rawValue: ends[1]))
    }

    /// Opens a name of any kind, also a link itself, for use in other calls. (openat with O_PATH)
    package func openReference(named name: String) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, yonder_open_path | O_NOFOLLOW)
    }

    /// Opens a new file without a name in this directory, for reading and writing. (openat with O_TMPFILE)
    ///
    /// - Parameter permissions: masked by the umask.
    /// - Throws: EOPNOTSUPP if the file system does not support it; some return EINVAL, EISDIR or ENOENT.
    package func makeNamelessFile(permissions: UInt16) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, ".", O_RDWR | yonder_open_temporary, permissions)
    }

    /// Creates a file and opens it for reading and writing. (openat with O_EXCL)
    ///
    /// - Throws: EEXIST if the name exists.
    package func makeFile(named name: String, permissions: UInt16) throws(Errno) -> FileDescriptor {
        try Self.openAt(rawValue, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, permissions)
    }

    /// Links this open file, which may have no name yet. (linkat)
    ///
    /// - Throws: EEXIST if the name exists.
    package func link(as name: String, in directory: FileDescriptor) throws(Errno) {
        guard linkat(AT_FDCWD, processPath, directory.rawValue, cName(name), AT_SYMLINK_FOLLOW) == 0 else {
            throw Errno.current
        }
    }

    /// Creates a hard link to a name in this directory. (linkat)
    package func link(_ name: String, as newName: String, in directory: FileDescriptor) throws(Errno) {
        guard linkat(rawValue, cName(name), directory.rawValue, cName(newName), 0) == 0 else { throw Errno.current }
    }

    /// Creates a directory. (mkdirat)
    ///
    /// - Parameter permissions: masked by the umask.
    package func makeDirectory(named name: String, permissions: UInt16) throws(Errno) {
        guard mkdirat(rawValue, cName(name), mode_t(permissions)) == 0 else { throw Errno.current }
    }

    /// Creates a symbolic link. (symlinkat)
    package func makeLink(named name: String, to target: String) throws(Errno) {
        guard symlinkat(cName(target), rawValue, cName(name)) == 0 else { throw Errno.current }
    }

    /// Renames a name in this directory and replaces an existing one. (renameat)
    package func rename(_ name: String, to newName: String, in directory: FileDescriptor) throws(Errno) {
        guard renameat(rawValue, cName(name), directory.rawValue, cName(newName)) == 0 else { throw Errno.current }
    }

    /// Renames a name in this directory. (renameat2 with RENAME_NOREPLACE)
    ///
    /// - Throws: EEXIST if the new name exists; EINVAL if a directory would become its own descendant, and on file
    ///   systems that do not support it.
    package func renameNew(_ name: String, to newName: String, in directory: FileDescriptor) throws(Errno) {
        guard yonder_rename_new(rawValue, cName(name), directory.rawValue, cName(newName)) == 0 else {
            throw Errno.current
        }
    }

    /// Exchanges two names in this directory atomically. (renameat2 with RENAME_EXCHANGE)
    ///
    /// - Throws: EINVAL on file systems that do not support it.
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

    /// Removes names of a directory recursively. Stops at mounts.
    ///
    /// - Parameter prepare: called before each name, with its directory; its error ends the removal. It may move the name away.
    /// - Throws: EXDEV at a mount; names before it are removed. EBUSY as ``DirectoryDescent/leave()``.
    package func remove(
        _ names: [[UInt8]], preparing prepare: (_ name: [UInt8], _ directory: FileDescriptor) throws -> Void
    ) throws {
        var descent = try DirectoryDescent(from: self, names)
        while true {
            guard let name = descent.next() else {
                // All that was in it is removed.
                guard let left = try descent.leave() else { return }
                let text = left.map(CChar.init(bitPattern:)) + [0]
                let result = unlinkat(descent.directory.rawValue, text, AT_REMOVEDIR)
                guard result == 0 || Errno.current == .noSuchFileOrDirectory else { throw Errno.current }
                continue
            }
            try prepare(name, descent.directory)
            let text = name.map(CChar.init(bitPattern:)) + [0]
            let directory = descent.directory.rawValue
            if unlinkat(directory, text, 0) == 0 || Errno.current == .noSuchFileOrDirectory { continue }
            // Linux returns EISDIR for a directory, other systems EPERM.
            guard Errno.current == .isDirectory || Errno.current == .notPermitted else { throw Errno.current }
            let opened = openat(directory, text, yonder_open_path | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard opened >= 0 else { throw Errno.current }
            try descent.enter(name, FileDescriptor(rawValue: opened))
        }
    }

    /// Makes an open file durable, or the names of a directory opened with O_PATH. (fsync)
    package func synchronize(asDirectory: Bool = false) throws(Errno) {
        var file = self
        if asDirectory {
            do throws(Errno) {
                file = try Self.openAt(rawValue, ".", O_RDONLY | O_DIRECTORY)
            } catch {
                // A file without read permission cannot be synchronized.
                guard error == .permissionDenied else { throw error }
                return
            }
        }
        defer { if asDirectory { try? file.close() } }
        // EINVAL means that the file system has nothing to synchronize.
        guard fsync(file.rawValue) == 0 || Errno.current == .invalidArgument else { throw Errno.current }
    }

    /// Duplicates the descriptor. (fcntl with F_DUPFD_CLOEXEC)
    package func duplicateCloseOnExec() throws(Errno) -> FileDescriptor {
        let descriptor = fcntl(rawValue, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw Errno.current }
        return FileDescriptor(rawValue: descriptor)
    }

    /// A path by which this process can reach the open file, independent of its names.
    var processPath: String { "/proc/self/fd/\(rawValue)" }
}
