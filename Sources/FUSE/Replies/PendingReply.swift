import CFUSEShim
import SystemPackage

/// A request that waits for its answer: what all kinds of replies are made of.
///
/// It is answered exactly once, by a consuming function or, when forgotten, with EIO by its end. Any thread may. While
/// it lives it keeps the connection alive, and with it the memory of libfuse that the request points to.
// Unchecked: libfuse lets a request be answered on any thread, and being noncopyable there is only one to do it.
struct PendingReply: ~Copyable, @unchecked Sendable {
    private let request: OpaquePointer
    private let connection: Unmanaged<Connection>
    private let unique: UInt64
    private var isWatched = false

    init(_ request: OpaquePointer, of connection: Connection, unique: UInt64) {
        self.request = request
        self.connection = Unmanaged.passRetained(connection)
        self.unique = unique
    }

    deinit {
        if isWatched { connection.takeUnretainedValue().interrupts.remove(unique) }
        _ = fuseshim_reply_error(request, Errno.ioError.rawValue)
        connection.release()
    }

    /// Answers by what `body` does with the request.
    ///
    /// - Returns: false when the kernel had given up on the request, so that nobody will get the answer.
    consuming func answer(_ body: (OpaquePointer) -> Int32) -> Bool {
        if isWatched { connection.takeUnretainedValue().interrupts.remove(unique) }
        let result = body(request)
        connection.release()
        discard self
        return result == 0
    }

    /// Answers with an error; a number that is none becomes EIO, because the kernel would not take it.
    consuming func fail(_ error: Errno) {
        let number = (1..<512).contains(error.rawValue) ? error.rawValue : Errno.ioError.rawValue
        _ = answer { fuseshim_reply_error($0, number) }
    }

    mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) {
        isWatched = true
        let caller = fuseshim_request_caller(request)
        connection.takeUnretainedValue().interrupts.insert(unique, caller: Int32(caller.process), handler: handler)
        fuseshim_request_watch(request, unique)
    }
}
