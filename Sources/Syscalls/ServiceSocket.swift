import CSyscalls
import Glibc
import SystemPackage

/// The socket on which a service manager receives the messages of a service. (sd_notify(3))
package struct ServiceSocket: Hashable, Sendable {
    /// A path, or `@` and an abstract name.
    package let address: String

    package init(at address: String) {
        self.address = address
    }

    /// Sends lines of the form `NAME=VALUE`. Waits at most 5 seconds for room.
    ///
    /// - Parameter descriptors: sent along; they stay open here.
    package func send(_ lines: [String], descriptors: [FileDescriptor] = []) throws(Errno) {
        let text = lines.joined(separator: "\n")
        guard
            yonder_notify_send(
                address, text, text.utf8.count, descriptors.map(\.rawValue), Int32(descriptors.count)) == 0
        else { throw Errno.current }
    }

    /// Returns when the service manager has handled all earlier messages, at most after five seconds. (sd_notify_barrier(3))
    ///
    /// - Returns: false if the time has passed.
    /// - Throws: errors of `pipe2`, `sendmsg` and `poll`.
    package func waitUntilHandled() throws(Errno) -> Bool {
        let (reading, writing) = try FileDescriptor.closeOnExecPipe()
        defer { try? reading.close() }
        do {
            defer { try? writing.close() }
            try send(["BARRIER=1"], descriptors: [writing])
        }
        var polled = [pollfd(fd: reading.rawValue, events: 0, revents: 0)]
        while true {
            let count = poll(&polled, 1, 5000)
            if count >= 0 { return count > 0 }
            guard errno == EINTR else { throw Errno.current }
        }
    }
}
