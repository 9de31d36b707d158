import Foundation
import NIOCore
import Syscalls

/// Who is at the other end of the socket, as the kernel says (SO_PEERCRED): for the daemon, who connected; for a client,
/// who listens.
package struct ControlPeer: Hashable, Sendable {
    package var processIdentifier: Int32
    package var userIdentifier: UInt32

    init(of channel: any Channel) async throws {
        /// `struct ucred`, as SO_PEERCRED fills it.
        struct Credentials: Sendable {
            var process: Int32 = 0
            var user: UInt32 = 0
            var group: UInt32 = 0
        }
        guard let provider = channel as? any SocketOptionProvider else {
            throw ControlError(.notPermitted, "the socket does not tell who is there")
        }
        let credentials: Credentials = try await provider.unsafeGetSocketOption(
            level: .socket, name: .init(rawValue: SO_PEERCRED)
        ).get()
        (processIdentifier, userIdentifier) = (credentials.process, credentials.user)
    }
}
