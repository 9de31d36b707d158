import FileNames
import Glibc
import SystemPackage

extension FilePath {
    /// Removes a file, if it exists. (unlink)
    package func unlinkIfPresent() throws(Errno) {
        guard unlink(cPath) != 0, Errno.current != .noSuchFileOrDirectory else { return }
        throw Errno.current
    }

    /// Renames a file in its file system. (rename)
    package func move(to destination: FilePath) throws(Errno) {
        guard Glibc.rename(cPath, destination.cPath) == 0 else { throw Errno.current }
    }

    /// Replaces a file atomically; the new content and its name are durable when this returns. After an error the old
    /// file is unchanged. (open with O_EXCL, write, fsync, rename, fsync)
    ///
    /// - Parameter permissions: of the new file, masked by the umask.
    package func replaceDurably(with content: [UInt8], permissions: FilePermissions) throws {
        guard let name = lastComponent?.string else { throw Errno.invalidArgument }
        let folder = removingLastComponent()
        let new = folder.appending(".\(name).new")
        // A file of an interrupted attempt may have other permissions.
        try new.unlinkIfPresent()
        let file = try FileDescriptor.open(
            new, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec], permissions: permissions)
        do {
            try file.closeAfter {
                _ = try file.writeAll(content)
                try file.synchronize()
            }
            try new.move(to: self)
        } catch {
            try? new.unlinkIfPresent()
            throw error
        }
        try folder.synchronizeDirectory()
    }

    /// Makes the names in a directory durable. (fsync)
    package func synchronizeDirectory() throws {
        let directory = try FileDescriptor.open(self, .readOnly, options: [.directory, .closeOnExec])
        try directory.closeAfter { try directory.synchronize() }
    }

    /// Puts everything of the file system that a directory is in on its disk. (syncfs)
    package func syncFileSystem() throws {
        let directory = try FileDescriptor.open(self, .readOnly, options: [.directory, .closeOnExec])
        defer { try? directory.close() }
        try directory.syncFileSystem()
    }

    /// The content of a file, also of one in /proc. (open, pread)
    ///
    /// - Throws: ESPIPE for a FIFO; errors of `open` and `pread`.
    package func contents() throws(Errno) -> [UInt8] {
        let descriptor = open(cPath, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Errno.current }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        while true {
            let piece = try FileDescriptor(rawValue: descriptor).readBytes(at: Int64(contents.count), count: 1 << 16)
            contents += piece
            if piece.count < 1 << 16 { return contents }
        }
    }

    /// Creates a hard link. (link)
    package func link(as other: FilePath) throws(Errno) {
        guard Glibc.link(cPath, other.cPath) == 0 else { throw Errno.current }
    }

    /// The target of a symbolic link, encoded by ``FileNameText``. (readlink)
    package func linkTarget() throws(Errno) -> String {
        FileNameText.text(of: try FileDescriptor(rawValue: AT_FDCWD).linkTarget(named: fileNameText))
    }

    /// Creates a symbolic link. (symlink)
    package func makeLink(to target: String) throws(Errno) {
        guard symlink(cName(target), cPath) == 0 else { throw Errno.current }
    }

    /// Creates a FIFO for its owner. (mkfifo)
    package func makePipe() throws(Errno) {
        guard mkfifo(cPath, 0o600) == 0 else { throw Errno.current }
    }

    /// Removes an empty directory. (rmdir)
    package func removeDirectory() throws(Errno) {
        guard rmdir(cPath) == 0 else { throw Errno.current }
    }

    /// Sets the lower twelve bits of a file's mode. (chmod)
    package func setPermissions(_ permissions: UInt16) throws(Errno) {
        guard chmod(cPath, mode_t(permissions)) == 0 else { throw Errno.current }
    }

    /// Sets the modification time only. Does not follow a link in the last component. (utimensat)
    package func setModificationTime(to moment: FileMoment) throws(Errno) {
        guard utimensat(AT_FDCWD, cPath, Self.times(modified: moment), AT_SYMLINK_NOFOLLOW) == 0 else {
            throw Errno.current
        }
    }

    /// The times for `utimensat(2)` that set the modification time only.
    static func times(modified moment: FileMoment) -> [timespec] {
        [
            timespec(tv_sec: 0, tv_nsec: timeToLeave),
            timespec(tv_sec: Int(moment.seconds), tv_nsec: Int(moment.nanoseconds)),
        ]
    }

    /// UTIME_OMIT, which Glibc's module does not export.
    private static let timeToLeave = (1 << 30) - 2

    /// Creates a directory and its missing ancestors. (mkdir)
    package func makeDirectories(permissions: FilePermissions = .ownerReadWriteExecute) throws(Errno) {
        do throws(Errno) {
            try makeDirectory(permissions: permissions)
        } catch {
            let parent = removingLastComponent()
            guard error == .noSuchFileOrDirectory, !parent.isEmpty, parent != self else { throw error }
            try parent.makeDirectories(permissions: permissions)
            try makeDirectory(permissions: permissions)
        }
    }

    /// Creates a directory, unless it exists. (mkdir)
    package func makeDirectory(permissions: FilePermissions = .ownerReadWriteExecute) throws(Errno) {
        guard mkdir(cPath, permissions.rawValue) != 0, Errno.current != .fileExists else { return }
        throw Errno.current
    }
}
