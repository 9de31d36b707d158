import CFUSEShim
import Syscalls
import SystemPackage

/// The reply to a request whose answer has the shape that `Answer` names; see `KernelReply+Answers.swift`.
///
/// While it lives it retains the connection, and with it libfuse's memory that the request points to.
// Unchecked: libfuse allows a request to be answered on any thread, and a noncopyable value has only one owner.
package struct KernelReply<Answer>: ~Copyable, Reply, @unchecked Sendable {
    private let request: OpaquePointer
    private let connection: Unmanaged<Connection>
    private let unique: UInt64
    private var isWatched = false
    /// The size of the kernel's buffer in bytes, for answers of variable length.
    let capacity: Int

    init(_ request: OpaquePointer, of connection: Connection, unique: UInt64, capacity: Int = 0) {
        self.request = request
        self.connection = Unmanaged.passRetained(connection)
        self.unique = unique
        self.capacity = capacity
    }

    deinit {
        if isWatched { connection.takeUnretainedValue().interrupts.remove(unique) }
        _ = fuseshim_reply_error(request, Errno.ioError.rawValue)
        connection.release()
    }

    /// Sends the answer that `body` makes from the request.
    ///
    /// - Returns: false when the kernel had already given up on the request, so that the answer was discarded.
    consuming func answer(_ body: (OpaquePointer) -> Int32) -> Bool {
        if isWatched { connection.takeUnretainedValue().interrupts.remove(unique) }
        let result = body(request)
        connection.release()
        discard self
        return result == 0
    }

    /// Tells the kernel that a file is longer than it knows, before it gets this answer of a read: its reader would take the old end for
    /// the end of the file. An invalidation is not enough: the kernel drops the answer to a GETATTR that another one overtakes.
    ///
    /// - Parameters:
    ///   - size: of the file.
    ///   - end: of all that the kernel may have requested of the file, until this returns.
    ///   - content: has the file's bytes, as far as they are here.
    package func tellSize(of node: NodeID, _ size: Int64, readingTo end: Int64, in content: OwnedDescriptor) {
        defer { withExtendedLifetime(content) {} }
        let device = fuseshim_session_descriptor(connection.takeUnretainedValue().shim)
        _ = fuseshim_notify_longer(device, node.rawValue, size, end, content.descriptor.rawValue)
    }

    /// Has the kernel ask for a node's attributes at their next use, before it gets this answer. What is queued in ``Notifications`` may
    /// come later. The cached pages stay, so that the kernel waits for no request.
    package func expireAttributes(of node: NodeID) {
        let device = fuseshim_session_descriptor(connection.takeUnretainedValue().shim)
        _ = fuseshim_notify_node(device, node.rawValue, -1, 0)
    }

    /// Answers with an error. A number outside the range that the kernel accepts becomes EIO.
    package consuming func fail(_ error: Errno) {
        let number = (1..<512).contains(error.rawValue) ? error.rawValue : Errno.ioError.rawValue
        _ = answer { fuseshim_reply_error($0, number) }
    }

    package mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) {
        isWatched = true
        let caller = fuseshim_request_caller(request)
        connection.takeUnretainedValue().interrupts.insert(unique, caller: Int32(caller.process), handler: handler)
        fuseshim_request_watch(request, unique)
    }
}
