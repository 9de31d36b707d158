import Syscalls
import SystemPackage

/// Asks a mount something that its daemon has to answer. A process of its own asks: one that hangs cannot be ended.
enum MountProbe {
    enum Answer {
        case answers
        /// The connection has ended with its daemon (ENOTCONN).
        case isDead
        case fails
        case hangs
    }

    private static let patience = Duration.seconds(10)

    static func ask(_ mountpoint: String) async -> Answer {
        let launch = ChildProcess.Launch(
            "stat", ["--file-system", "--", mountpoint], environment: ["LC_ALL": "C", "PATH": "/usr/bin:/bin"], in: nil)
        guard let (process, pipes) = try? await ChildProcess.startWithPipes(launch) else { return .fails }
        defer { pipes.closeAll() }
        guard let end = await process.end(within: patience) else { return .hangs }
        guard end != .exited(0) else { return .answers }
        // It has ended, and a line fits into the pipe.
        let bytes = pipes.errors.nextBytes(atMost: 4096)
        return String(decoding: bytes, as: UTF8.self).contains("not connected") ? .isDead : .fails
    }
}
