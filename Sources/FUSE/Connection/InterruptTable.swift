import CFUSEShim
import Dispatch
import Glibc
import Synchronization

/// What to do when the caller of a request is interrupted, by the request's number, and the thread that does it.
///
/// libfuse tells of an interruption with its locks held, and the request may be answered at that very moment. So only
/// a number comes in, and what belongs to it, if it is still here, runs elsewhere.
///
/// The kernel tells of it once, whatever the reason. Who is only stopped (Ctrl-Z), is traced, or hears of a child's end
/// expects no EINTR of a file for it, and most programs would take that for a broken file: his request waits on, and
/// he is looked at again and again until there is another signal for him.
final class InterruptTable: Sendable {
    typealias Handler = @Sendable () -> Void

    private struct Watch: Sendable {
        /// The thread that waits for the answer.
        var caller: Int32
        var handler: Handler
    }

    // Cold: only requests that wait are here.
    private let watches = Mutex<[UInt64: Watch]>([:])
    private let runner = MessageThread<@Sendable () -> Void>(name: "fuse-interrupt") { $0() }
    private static let pause = DispatchTimeInterval.milliseconds(100)

    func insert(_ unique: UInt64, caller: Int32, handler: @escaping Handler) {
        watches.withLock { $0[unique] = Watch(caller: caller, handler: handler) }
    }

    func remove(_ unique: UInt64) {
        // What the handler holds may end here, and do anything: not under the lock.
        _ = watches.withLock { $0.removeValue(forKey: unique) }
    }

    /// Has the handler run, if there is one and the caller is to be woken. Takes no lock for long: libfuse calls this
    /// with its own held.
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

    /// Whether there is no signal for a thread that it would want to be woken for.
    private static func canWait(_ caller: Int32) -> Bool {
        var signals: UInt64 = 0
        guard caller > 0, fuseshim_thread_signals(caller, &signals) == 0 else { return false }
        let mild = [SIGCHLD, SIGCONT, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGURG, SIGWINCH]
        return mild.reduce(signals) { $0 & ~(1 << UInt64($1 - 1)) } == 0
    }

    func start() { runner.start() }

    /// No handler runs any more that has not begun.
    func finish() { runner.finish() }
}
