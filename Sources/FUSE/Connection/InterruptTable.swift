import CFUSEShim
import Dispatch
import Glibc
import Synchronization

/// Maps the number of a waiting request to its interrupt handler, and runs handlers on a thread of its own.
///
/// libfuse reports an interrupt with its locks held, possibly while the request is being answered. It therefore passes
/// only the number; the handler, if it is still registered, runs on another thread.
///
/// The kernel reports an interrupt once, for any signal. A program that is only stopped (Ctrl-Z) or traced, or whose child
/// has ended, does not expect EINTR from a regular file. Its request continues to wait, and its pending signals are polled
/// until one of them is of another kind.
final class InterruptTable: Sendable {
    typealias Handler = @Sendable () -> Void

    private struct Watch: Sendable {
        /// The number of the thread that waits for the answer.
        var caller: Int32
        var handler: Handler
    }

    // Uncontended: only parked requests are registered.
    private let watches = Mutex<[UInt64: Watch]>([:])
    private let runner = MessageThread<@Sendable () -> Void>(name: "fuse-interrupt")
    private static let pause = DispatchTimeInterval.milliseconds(100)

    func insert(_ unique: UInt64, caller: Int32, handler: @escaping Handler) {
        watches.withLock { $0[unique] = Watch(caller: caller, handler: handler) }
    }

    func remove(_ unique: UInt64) {
        // The handler is released outside the lock, because the objects that it captures may run any code.
        _ = watches.withLock { $0.removeValue(forKey: unique) }
    }

    /// Schedules the handler of a request. Takes no lock for long, because libfuse calls this with its own locks held.
    func fire(_ unique: UInt64) {
        let wake: @Sendable () -> Void = { [weak self] in self?.wake(unique) }
        runner.send(wake)
    }

    private func wake(_ unique: UInt64) {
        guard let caller = watches.withLock({ $0[unique]?.caller }) else { return }
        if Self.canWait(caller) {
            DispatchQueue.global().asyncAfter(deadline: .now() + Self.pause) { [weak self] in self?.fire(unique) }
        } else if let watch = watches.withLock({ $0.removeValue(forKey: unique) }) {
            watch.handler()
        }
    }

    /// Whether all pending signals of a thread are of the kinds that do not interrupt a request.
    private static func canWait(_ caller: Int32) -> Bool {
        var signals: UInt64 = 0
        guard caller > 0, fuseshim_thread_signals(caller, &signals) == 0 else { return false }
        let mild = [SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH]
        return mild.reduce(signals) { $0 & ~(1 << UInt64($1 - 1)) } == 0
    }

    func start() { runner.start { $0() } }

    /// After this no further handler starts.
    func finish() { runner.finish() }
}
