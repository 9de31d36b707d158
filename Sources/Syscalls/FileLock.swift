import Glibc
import SystemPackage

/// A lock file that one process at a time can hold. The kernel releases the lock when the process ends. (flock)
package final class FileLock: Sendable {
    private let file: FileDescriptor

    /// Takes the lock, creating the file if needed, and writes this process's number to it.
    ///
    /// - Throws: EWOULDBLOCK if another process holds it; errors of `open`.
    package init(at path: FilePath) throws(Errno) {
        file = try Self.open(path)
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
        guard flock(file.rawValue, LOCK_EX | LOCK_NB) == 0 else {
            let failure = Errno.current
            try? file.close()
            throw failure
        }
        // The number is for humans only.
        try? file.setLength(0)
        try? file.writeAll(Array("\(getpid())\n".utf8).span.bytes, at: 0)
        return file
    }
}
