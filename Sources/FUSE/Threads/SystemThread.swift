import CFUSEShim
import Glibc
import SystemPackage

/// A pthread with all signals blocked, so that the process's signals are delivered to the threads that expect them.
struct SystemThread: Sendable {
    private let handle: pthread_t

    /// Starts a thread that runs `body`.
    ///
    /// - Parameter name: at most 15 bytes, for `ps` and debuggers.
    static func start(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) -> SystemThread {
        var handle = pthread_t()
        let failure = create(&handle, Start(name: name, body: body))
        guard failure == 0 else { throw Errno(rawValue: failure) }
        return SystemThread(handle: handle)
    }

    /// Waits until the thread has ended. Call this or ``detach()``, once.
    func join() { pthread_join(handle, nil) }

    func detach() { pthread_detach(handle) }

    fileprivate final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    private static func create(_ handle: inout pthread_t, _ start: Start) -> Int32 {
        var blocked = sigset_t()
        var previous = sigset_t()
        sigfillset(&blocked)
        // A thread inherits the signal mask of its creator.
        pthread_sigmask(SIG_SETMASK, &blocked, &previous)
        let argument = Unmanaged.passRetained(start)
        let failure = pthread_create(&handle, nil, runThread, argument.toOpaque())
        if failure != 0 { argument.release() }
        pthread_sigmask(SIG_SETMASK, &previous, nil)
        return failure
    }
}

private func runThread(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    let start = Unmanaged<SystemThread.Start>.fromOpaque(argument).takeRetainedValue()
    fuseshim_name_thread(start.name)
    start.body()
    return nil
}
