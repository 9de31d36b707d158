import Synchronization
import Syscalls
import SystemPackage

/// The database files that this process has open through SQLite.
///
/// When a process closes any descriptor of a file, it loses all its POSIX locks on the file. SQLite keeps its own descriptors open for
/// that; no other code may open and close the file meanwhile. (https://sqlite.org/howtocorrupt.html, section 2.2)
enum OpenDatabaseFiles {
    private struct File: Hashable {
        var device: UInt64
        var inode: UInt64

        init?(at path: FilePath) {
            guard let status = try? FileStatus(following: path) else { return nil }
            (device, inode) = (status.device, status.inode)
        }
    }

    /// Says that a file is open, as long as it lives.
    final class Registration: Sendable {
        private let file: Mutex<File?>

        /// - Parameter path: of a file that is about to be opened.
        init(_ path: FilePath) {
            file = Mutex(OpenDatabaseFiles.begin(path))
        }

        /// The file has been made, if it was not there before.
        func noteMade(_ path: FilePath) {
            file.withLock { $0 = $0 ?? OpenDatabaseFiles.begin(path) }
        }

        deinit {
            if let file = file.withLock({ $0 }) { OpenDatabaseFiles.end(file) }
        }
    }

    private static let counts = Mutex<[File: Int]>([:])

    private static func begin(_ path: FilePath) -> File? {
        counts.withLock { counts in
            guard let file = File(at: path) else { return nil }
            counts[file, default: 0] += 1
            return file
        }
    }

    private static func end(_ file: File) {
        counts.withLock { counts in
            counts[file, default: 1] -= 1
            if counts[file] == 0 { counts[file] = nil }
        }
    }

    /// Reads a file by other means, unless it is open. None is opened meanwhile.
    ///
    /// - Returns: nil when it is open, or does not exist.
    static func withClosed<Value>(_ path: FilePath, _ body: () -> Value?) -> Value? {
        counts.withLock { counts in
            guard let file = File(at: path), counts[file] == nil else { return nil }
            return body()
        }
    }
}
