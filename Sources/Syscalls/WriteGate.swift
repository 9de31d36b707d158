import Synchronization
import SystemPackage

/// Lets writes to a file pass until it is closed.
package final class WriteGate: Sendable {
    private let isClosed = Mutex(false)

    /// An open gate.
    package init() {}

    /// Refuses all writes from now on. Waits for one that is in progress.
    package func close() { isClosed.withLock { $0 = true } }

    /// Writes, one caller after the other.
    ///
    /// - Parameter body: blocks on the local disk only, because ``close()`` waits for it.
    /// - Throws: ECANCELED when the gate is closed; errors of `body`.
    package func pass<Value: Sendable>(_ body: () throws(Errno) -> Value) throws(Errno) -> Value {
        try isClosed.withLock { isClosed throws(Errno) in
            if isClosed { throw Errno.canceled }
            return try body()
        }
    }
}
