import CSyscalls
import SystemPackage

extension FilePath {
    /// Whether a process listens on the Unix socket at the path. (socket, connect)
    package var acceptsConnections: Bool { yonder_connects(string) != 0 }
}

extension FileDescriptor {
    /// Listens on a path that does not exist; only this user can connect. (socket, fchmod, bind, listen)
    package static func listening(at path: FilePath) throws(Errno) -> FileDescriptor {
        let socket = yonder_listen(path.string)
        guard socket >= 0 else { throw Errno.current }
        return FileDescriptor(rawValue: socket)
    }

    /// Whether this is a listening socket that was bound to a path. (getsockopt, getsockname)
    package func isListening(at path: FilePath) -> Bool { yonder_listens(rawValue, path.string) != 0 }
}
