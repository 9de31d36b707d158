import Foundation
import NIOCore

/// The process at the other end of the socket, as reported by the kernel (SO_PEERCRED).
package struct ControlPeer: Hashable, Sendable {
    package var processIdentifier: Int32
    package var userIdentifier: UInt32

    init(of channel: any Channel) async throws {
        /// `struct ucred`, the result of SO_PEERCRED.
        struct Credentials: Sendable {
            var process: Int32 = 0
            var user: UInt32 = 0
            var group: UInt32 = 0
        }
        guard let provider = channel as? any SocketOptionProvider else {
            throw ControlError(.notPermitted, "the kernel does not report the user at the other end of the socket")
        }
        let credentials: Credentials = try await provider.unsafeGetSocketOption(
            level: .socket, name: .init(rawValue: SO_PEERCRED)
        ).get()
        (processIdentifier, userIdentifier) = (credentials.process, credentials.user)
    }
}
