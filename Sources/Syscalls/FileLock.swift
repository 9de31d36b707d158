import Glibc
import SystemPackage

/// A lock on a file that one process at a time can hold. It goes with the process, however that ends. (flock)
package final class FileLock: Sendable {
    private let file: FileDescriptor

    /// Takes the lock, making the file if it is missing, and writes this process's number into it for whoever looks.
    ///
    /// - Throws: EWOULDBLOCK when another process holds it; what `open` says.
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
        // Nobody depends on what stands there.
        try? file.setLength(0)
        try? file.writeAll(Array("\(getpid())\n".utf8).span.bytes, at: 0)
        return file
    }
}
