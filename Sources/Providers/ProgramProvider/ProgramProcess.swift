import FileProvider
import Foundation
import Logging
import Synchronization
import SystemPackage

/// A running program: lines to its standard input, lines from its standard output, and its standard error in the log.
package final class ProgramProcess: Sendable {
    /// How the output ended.
    package enum End: Sendable {
        case exited(String)
        /// The line is longer than ``ProgramProtocol/longestLine``.
        case lineTooLong
    }

    private let process: Process
    private let input: FileHandle
    /// Writes block while the program does not read; the queue belongs to this program alone.
    private let writing = DispatchQueue(label: "yonder.program.writing")
    private let isClosed = Mutex(false)

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: of the program.
    ///   - onLine: called with each line of the output, one after the other on a thread of this process.
    ///   - onEnd: called after the last line, and again when the process has ended.
    package init(
        _ program: String, arguments: [String] = [], environment: [String: String], logger: Logger,
        onLine: @escaping @Sendable ([UInt8]) -> Void, onEnd: @escaping @Sendable (End) -> Void
    ) throws {
        process = Process()
        process.setProgram(program, arguments: arguments)
        process.environment = environment
        process.currentDirectoryURL = URL(fileURLWithPath: "/")
        let (input, output, errors) = (Pipe(), Pipe(), Pipe())
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        self.input = input.fileHandleForWriting
        // A process that the program has left behind may keep the output open.
        process.terminationHandler = { process in
            DispatchQueue.global().asyncAfter(deadline: .now() + 1) { onEnd(.exited(Self.status(of: process))) }
        }
        try process.run()
        let process = process
        let rate = LogRate(limit: 100)
        Self.readLines(of: errors, limit: 1000, cutting: true) { line in
            rate.log(String(decoding: line, as: UTF8.self), in: logger)
        } onEnd: { _ in
        }
        Self.readLines(of: output, limit: ProgramProtocol.longestLine, cutting: false, onLine: onLine) { isTooLong in
            if isTooLong { return onEnd(.lineTooLong) }
            Self.waitForEnd(of: process.processIdentifier)
            // A program that has closed its output and goes on is of no use; what it has left behind would keep Foundation from
            // noticing its end.
            if process.isRunning { Self.kill(process.processIdentifier) }
            process.waitUntilExit()
            onEnd(.exited(Self.status(of: process)))
        }
    }

    /// Returns when a process has ended, which may be a moment after the end of its output, or after a second.
    private static func waitForEnd(of process: Int32) {
        for _ in 0..<200 {
            var information = siginfo_t()
            // The status stays for Foundation.
            let result = waitid(P_PID, id_t(process), &information, WEXITED | WNOHANG | WNOWAIT)
            if result != 0 || information.si_signo != 0 { return }
            usleep(5_000)
        }
    }

    private static func status(of process: Process) -> String {
        "\(process.terminationReason == .exit ? "exit status" : "signal") \(process.terminationStatus)"
    }

    package var isRunning: Bool { process.isRunning }

    /// Sends a line. Returns at once; a program that has ended gets nothing.
    func send(_ line: Data) {
        writing.async { [self] in
            if isClosed.withLock({ $0 }) { return }
            try? input.write(contentsOf: line + Data([UInt8(ascii: "\n")]))
        }
    }

    /// Closes the program's standard input, on which it ends.
    package func close() {
        writing.async { [self] in
            let wasClosed = isClosed.withLock { isClosed in
                defer { isClosed = true }
                return isClosed
            }
            if !wasClosed { try? input.close() }
        }
    }

    /// Ends the program and those that it has started at once.
    package func kill() {
        if process.isRunning { Self.kill(process.processIdentifier) }
        close()
    }

    /// Foundation makes each process the leader of a process group.
    private static func kill(_ process: Int32) {
        if Foundation.kill(-process, SIGKILL) != 0 { _ = Foundation.kill(process, SIGKILL) }
    }

    /// Reads lines on a thread until the end of a pipe.
    ///
    /// - Parameters:
    ///   - limit: the longest line in bytes.
    ///   - cutting: whether the rest of a longer line is dropped; else it ends the reading.
    private static func readLines(
        of pipe: Pipe, limit: Int, cutting: Bool, onLine: @escaping @Sendable ([UInt8]) -> Void,
        onEnd: @escaping @Sendable (_ isTooLong: Bool) -> Void
    ) {
        let handle = pipe.fileHandleForReading
        let thread = Thread {
            var lines = LineBuffer(limit: limit, cutting: cutting)
            let descriptor = FileDescriptor(rawValue: handle.fileDescriptor)
            while true {
                let bytes = try? [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, filled in
                    filled = try descriptor.read(into: .init(buffer))
                }
                guard let bytes, !bytes.isEmpty else { break }
                guard lines.take(bytes, onLine) else {
                    onEnd(true)
                    try? handle.close()
                    return
                }
            }
            onEnd(false)
            try? handle.close()
        }
        thread.stackSize = 1 << 20
        thread.start()
    }
}

/// Limits the lines of a program in the log to a number per minute.
package final class LogRate: Sendable {
    private struct State {
        var minute: Int64 = 0
        var count = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    package init(limit: Int) {
        self.limit = limit
    }

    package func log(_ line: String, in logger: Logger) {
        let minute = Int64(Date.now.timeIntervalSince1970 / 60)
        let (count, dropped) = state.withLock { state in
            let dropped = state.minute == minute ? 0 : max(0, state.count - limit)
            if state.minute != minute { state = State(minute: minute) }
            state.count += 1
            return (state.count, dropped)
        }
        if dropped > 0 { logger.notice("\(dropped) lines of the program were left out") }
        if count <= limit { logger.notice("\(line)") }
    }
}

/// Splits bytes into lines.
struct LineBuffer {
    let limit: Int
    let cutting: Bool
    private var line: [UInt8] = []

    init(limit: Int, cutting: Bool) {
        self.limit = limit
        self.cutting = cutting
    }

    /// Takes bytes, and calls a closure with each complete line.
    ///
    /// - Returns: false for a line that is too long and is not cut.
    mutating func take(_ bytes: [UInt8], _ onLine: ([UInt8]) -> Void) -> Bool {
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            guard append(rest[..<end]) else { return false }
            onLine(line)
            line.removeAll(keepingCapacity: line.count < 1 << 16)
            rest = rest[(end + 1)...]
        }
        return append(rest)
    }

    private mutating func append(_ part: ArraySlice<UInt8>) -> Bool {
        guard line.count + part.count > limit else {
            line += part
            return true
        }
        line += part.prefix(limit - line.count)
        return cutting
    }
}
