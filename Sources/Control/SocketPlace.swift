import Syscalls
import SystemPackage

/// The path of the daemon's socket. What lies there is removed only when it is a socket of this user's on which nobody
/// listens any more.
package struct SocketPlace: Sendable {
    package let path: String

    package init(_ path: String) {
        self.path = path
    }

    /// Verifies that a daemon can listen there. Removes nothing.
    ///
    /// - Returns: the dead socket that lies there; nil where there is nothing.
    /// - Throws: ``ControlError``: `alreadyRunning` when somebody listens; `usage` for a path that is too long; what is in
    ///   the way.
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
        // What is no socket refuses connections, too.
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

    /// Makes room for a new socket: the directory is made, a dead socket is removed.
    ///
    /// - Throws: as ``check()``.
    func prepare() async throws(ControlError) {
        let dead = try await check()
        do {
            try FilePath(Places.directory(of: path)).makeDirectories()
            guard let dead else { return }
            try remove(dead)
        } catch {
            throw ControlError(.failed, "no socket can be made there: \(error)", path: path)
        }
    }

    /// Removes a socket, unless something else has its name by now.
    func remove(_ socket: FileStatus) throws(Errno) {
        guard let now = try? FileStatus(at: FilePath(path)), now.isSocket, now.inode == socket.inode,
            now.device == socket.device
        else { return }
        try FilePath(path).unlinkIfPresent()
    }

    /// What has this name; nil for nothing. A link is not followed.
    func status() throws(ControlError) -> FileStatus? {
        do throws(Errno) {
            return try FileStatus(at: FilePath(path))
        } catch {
            guard error != .noSuchFileOrDirectory else { return nil }
            throw ControlError(.failed, "it cannot be looked at: \(error)", path: path)
        }
    }
}
