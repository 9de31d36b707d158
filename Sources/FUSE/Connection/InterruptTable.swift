import Synchronization

/// What to do when the caller of a request is interrupted, by the request's number, and the thread that does it.
///
/// libfuse tells of an interruption with its locks held, and the request may be answered at that very moment. So only
/// a number comes in, and what belongs to it, if it is still here, runs elsewhere.
final class InterruptTable: Sendable {
    typealias Handler = @Sendable () -> Void

    // Cold: only requests that wait are here.
    private let handlers = Mutex<[UInt64: Handler]>([:])
    private let runner = MessageThread<Handler>(name: "fuse-interrupt") { $0() }

    func insert(_ unique: UInt64, handler: @escaping Handler) {
        handlers.withLock { $0[unique] = handler }
    }

    func remove(_ unique: UInt64) {
        // What the handler holds may end here, and do anything: not under the lock.
        _ = handlers.withLock { $0.removeValue(forKey: unique) }
    }

    /// Has the handler run, if there is one. Takes no lock for long: libfuse calls this with its own held.
    func fire(_ unique: UInt64) {
        if let handler = handlers.withLock({ $0.removeValue(forKey: unique) }) { runner.send(handler) }
    }

    func start() { runner.start() }

    /// No handler runs any more that has not begun.
    func finish() { runner.finish() }
}
