import CSyscalls
import Glibc

struct Worker {
    let process: Int32
    /// The time at which it was ready, in milliseconds.
    var readySince: Int?
    /// The time of its last sign of life after it was ready.
    var lastSignOfLife: Int?
    /// Whether it has announced its end; the watchdog does not apply any more.
    var isStopping = false
    /// Whether no worker is to follow it.
    var isLast = false
    /// The time of SIGABRT after a missed watchdog.
    var abortedAt: Int?
    /// Whether it did not end after that either, and SIGKILL was sent.
    var wasKilled = false
    /// The time at which its main thread was found to have ended while others had not.
    var mainThreadEndedAt: Int?

    /// Whether its main thread has ended. Then waitpid(2) succeeds as soon as the others have, too.
    var hasEndedMainThread: Bool {
        let file = open("/proc/\(process)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        // "NUMBER (NAME) STATE ...": the name has at most 15 bytes.
        var text = [UInt8](repeating: 0, count: 64)
        let length = read(file, &text, text.count)
        guard length > 0, let end = text.prefix(length).lastIndex(of: UInt8(ascii: ")")), end + 2 < length else {
            return false
        }
        return text[end + 2] == UInt8(ascii: "Z")
    }

    /// Whether every thread that is left may wait in the kernel for an answer of the next worker. Any other one, that the disk holds up,
    /// may still change the contents, and ends by itself. (`Notifications` and `ChangeEvents` of the worker name the threads.)
    var isHeldUpByItsMount: Bool { yonder_threads_are_named(process, "fuse-notify", "fuse-events") == 1 }

    /// The exit status with which the worker asks to be started again (`ExitStatus.restart` of the daemon).
    static let restartStatus: Int32 = 133

    /// Starts a worker with the stored descriptors. Sets variables of this process, which the worker inherits.
    ///
    /// - Returns: nil if no process can be made.
    static func start(_ arguments: [String], descriptors: [StoredDescriptor], watchdog: Int) -> Worker? {
        setenv("LISTEN_FDS", "\(descriptors.count)", 1)
        setenv("LISTEN_FDNAMES", descriptors.map(\.name).joined(separator: ":"), 1)
        if watchdog > 0 { setenv("WATCHDOG_USEC", "\(watchdog * 1000)", 1) }
        let words: [CChar] = arguments.flatMap { $0.utf8.map(CChar.init(bitPattern:)) + [0] }
        let process = yonder_start(
            words, words.count, descriptors.map(\.descriptor), Int32(descriptors.count), watchdog > 0 ? 1 : 0)
        return process > 0 ? Worker(process: process) : nil
    }
}

/// How a process has ended. (wait(2))
enum ProcessEnd: Hashable, CustomStringConvertible {
    case exit(Int32)
    case signal(Int32)

    init(waitStatus: Int32) {
        let signal = waitStatus & 0x7F
        self = signal == 0 ? .exit((waitStatus >> 8) & 0xFF) : .signal(signal)
    }

    var description: String {
        switch self {
        case .exit(let status): "exit status \(status)"
        case .signal(let number): "signal \(number)"
        }
    }

    /// As a shell reports it.
    var exitStatus: Int32 {
        switch self {
        case .exit(let status): status
        case .signal(let number): 128 + number
        }
    }
}
