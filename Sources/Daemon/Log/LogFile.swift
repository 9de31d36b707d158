import Foundation
import Synchronization
import Syscalls
import SystemPackage

/// The log of a daemon in the background, which does not grow without end: when it is long enough, its content moves to
/// another file, whose content before is lost.
///
/// The content is copied, and the file truncated: the keeper has the file open as well. A line that the keeper writes in that moment
/// is lost.
package final class LogFile: Sendable {
    private let path: FilePath
    private let log: FileDescriptor
    private let limit: Int64
    private let length: Mutex<Int64>

    /// The content before the last rotation.
    package static func older(_ path: String) -> String { path + ".1" }

    /// - Parameters:
    ///   - path: of the log.
    ///   - log: to which the processes append.
    ///   - limit: the length in bytes after which the content moves.
    /// - Returns: nil if the descriptor is not the file at the path, or does not append: a writer would leave a hole.
    package init?(at path: String, openAs log: FileDescriptor = .standardError, limit: Int64 = 10 << 20) {
        let path = FilePath(path)
        guard let own = try? FileStatus(of: log), let there = try? FileStatus(at: path), own.kind == .regular,
            own.inode == there.inode, own.device == there.device, log.appends
        else { return nil }
        self.path = path
        self.log = log
        self.limit = limit
        length = Mutex(own.size)
    }

    /// Writes about so many bytes.
    package func append(_ count: Int, _ write: () -> Void) {
        length.withLock { length in
            write()
            length += Int64(count)
            guard length >= limit else { return }
            rotate()
            length = (try? log.lengths().size) ?? 0
        }
    }

    private func rotate() {
        let older = Self.older(path.string)
        try? FileManager.default.removeItem(atPath: older)
        // What cannot be copied, because the disk is full, is lost: a log that grows would make it worse.
        try? FileManager.default.copyItem(atPath: path.string, toPath: older)
        try? log.setLength(0)
    }
}
