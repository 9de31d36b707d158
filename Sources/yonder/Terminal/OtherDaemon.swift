import Control
import Syscalls
import SystemPackage

/// A daemon that uses the state directory, and listens on another socket than YONDER_SOCKET says.
struct OtherDaemon {
    let text: String
    static let advice = "set YONDER_SOCKET to that socket, or YONDER_STATE_DIR to another directory"

    /// - Returns: nil if there is none.
    init?(on places: Places) {
        guard let socket = places.otherSocket, FilePath(socket).acceptsConnections else { return nil }
        text = "another daemon uses this state directory, and listens on '\(socket)'"
    }
}
