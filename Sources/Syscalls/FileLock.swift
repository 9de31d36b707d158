import Glibc
import SystemPackage

/// A lock file that one process at a time can hold. The kernel releases the lock when the last descriptor of it is closed, at the
/// latest with the process. (flock)
package final class FileLock: Sendable {
    /// Holds the lock: a process that inherits it has the lock, too.
    package let file: FileDescriptor

    /// Takes the lock, creating the file if needed, and writes this process's number to it.
    ///
    /// - Throws: EWOULDBLOCK if another process holds it; errors of `open`.
    package init(at path: FilePath) throws(Errno) {
        file = try Self.open(path)
    }

    /// Takes over a lock that this process has inherited, and writes its number to the file.
    ///
    /// - Parameter file: is owned by the lock from now on, also after an error.
    /// - Throws: EWOULDBLOCK if it does not hold the lock, and another process does.
    package init(inherited file: FileDescriptor) throws(Errno) {
        self.file = file
        try Self.lock(file)
    }

    deinit {
        try? file.close()
    }

    private static func open(_ path: FilePath) throws(Errno) -> FileDescriptor {
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(
                path, .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        } catch {
            throw error as? Errno ?? .ioError
        }
        do throws(Errno) {
            try lock(file)
        } catch {
            try? file.close()
            throw error
        }
        return file
    }

    private static func lock(_ file: FileDescriptor) throws(Errno) {
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else { throw Errno.current }
        // For users, and for the command that waits for the end of the process. It decides nothing about the lock.
        try? file.setLength(0)
        try? file.writeAll(Array("\(getpid())\n".utf8).span.bytes, at: 0)
    }
}
