import Syscalls
import SystemPackage

/// The path of the daemon's socket. An existing file is removed only if it is a dead socket of this user.
package struct SocketPlace: Sendable {
    package let path: String

    package init(_ path: String) {
        self.path = path
    }

    /// Verifies that a daemon can listen on the path. Removes nothing.
    ///
    /// - Returns: the dead socket at the path; nil if there is none.
    /// - Throws: ``ControlError``: `alreadyRunning` if a process listens; `usage` for a path that is too long; an
    ///   error for another file.
    @discardableResult
    package func check() async throws(ControlError) -> FileStatus? {
        guard path.utf8.count <= Places.longestSocketPath else {
            throw ControlError(
                .usage,
                "the socket's path is longer than \(Places.longestSocketPath) bytes; set YONDER_SOCKET to a "
                    + "shorter one", path: path)
        }
        try TrustedDirectory.check(Places.directory(of: path), for: .file)
        guard let status = try status() else { return nil }
        // A file that is not a socket also refuses connections.
        let refusal = await ControlClient.refusal(at: path)
        guard let refusal else { throw ControlError(.alreadyRunning, "a daemon listens already", path: path) }
        guard status.isSocket else {
            throw ControlError(
                .failed, "it is not a socket, and stays as it is; set YONDER_SOCKET to another path", path: path)
        }
        guard status.owner == Machine.userIdentifier else {
            throw ControlError(
                .notPermitted, "this socket belongs to user \(status.owner); set YONDER_SOCKET to another path",
                path: path)
        }
        guard refusal == .connectionRefused else {
            throw ControlError(
                .failed,
                "this socket may be in use (\(refusal)), and stays as it is; set YONDER_SOCKET to another path",
                path: path)
        }
        return status
    }

    /// Creates the directory and removes a dead socket.
    ///
    /// - Throws: as ``check()``.
    func prepare() async throws(ControlError) {
        let dead = try await check()
        do {
            try FilePath(Places.directory(of: path)).makeDirectories()
            guard let dead else { return }
            try remove(dead)
        } catch {
            throw ControlError(.failed, "cannot create a socket there: \(error)", path: path)
        }
    }

    /// Removes a socket, unless it has been replaced.
    func remove(_ socket: FileStatus) throws(Errno) {
        guard let now = try? FileStatus(at: FilePath(path)), now.isSocket, now.inode == socket.inode,
            now.device == socket.device
        else { return }
        try FilePath(path).unlinkIfPresent()
    }

    /// The status of the file at the path; nil if there is none. Does not follow a link.
    func status() throws(ControlError) -> FileStatus? {
        try TrustedDirectory.status(of: path, followsLink: false)
    }
}
