import Foundation
import Logging
import Synchronization
import Syscalls
import SystemPackage

/// A running program: lines to its standard input, lines from its standard output, and its standard error in the log.
package final class ProgramProcess: Sendable {
    /// How the output ended.
    package enum End: Sendable {
        case exited(String)
        /// The line is longer than ``ProgramProtocol/longestLine``.
        case lineTooLong
    }

    private let process: ChildProcess
    private let input: FileDescriptor
    /// Writes block while the program does not read; the queue belongs to this program alone.
    private let writing = DispatchQueue(label: "yonder.program.writing")
    private let isClosed = Mutex(false)

    private init(_ process: ChildProcess, input: FileDescriptor) {
        (self.process, self.input) = (process, input)
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - arguments: of the program.
    ///   - onLine: called with each line of the output, one after the other on a thread of this process.
    ///   - onEnd: called after the last line, and again when the process has ended.
    /// - Throws: `ChildProcess.StartError`.
    package static func start(
        _ program: String, arguments: [String] = [], environment: [String: String], logger: Logger,
        onLine: @escaping @Sendable ([UInt8]) -> Void, onEnd: @escaping @Sendable (End) -> Void
    ) async throws -> ProgramProcess {
        let (process, pipes) = try await ChildProcess.startWithPipes(
            ChildProcess.Launch(program, arguments, environment: environment))
        Task {
            let end = await process.waitForEnd()
            // What it has left behind could make a change after newer ones.
            process.killRestOfGroup()
            // In another process group it may keep the output open.
            try? await Task.sleep(for: .seconds(1))
            onEnd(.exited("\(end)"))
        }
        let rate = LogRate()
        readLines(of: pipes.errors, limit: 1000, cutting: true) { line in
            rate.log(String(decoding: line, as: UTF8.self), in: logger)
        } onEnd: { _ in
            rate.report(in: logger)
        }
        readLines(of: pipes.output, limit: ProgramProtocol.longestLine, cutting: false, onLine: onLine) { isTooLong in
            if isTooLong { return onEnd(.lineTooLong) }
            Task {
                // A program that has closed its output and goes on is of no use.
                let killing = Task {
                    try await Task.sleep(for: .seconds(1))
                    process.killGroup()
                }
                let end = await process.waitForEnd()
                killing.cancel()
                onEnd(.exited("\(end)"))
            }
        }
        return ProgramProcess(process, input: pipes.input)
    }

    deinit {
        if !isClosed.withLock({ $0 }) { try? input.close() }
    }

    package var isRunning: Bool { process.isRunning }

    /// Sends a line. Returns at once; a program that has ended gets nothing.
    func send(_ line: Data) {
        writing.async { [self] in
            if isClosed.withLock({ $0 }) { return }
            _ = try? input.writeAll(line + Data([UInt8(ascii: "\n")]))
        }
    }

    /// Closes the program's standard input, on which it ends.
    package func close() {
        writing.async { [self] in
            if !isClosed.withLock({ exchange(&$0, with: true) }) { try? input.close() }
        }
    }

    /// Ends the program and those that it has started at once.
    package func kill() {
        process.killGroup()
        close()
    }

    /// Reads lines on a thread until the end of a pipe.
    ///
    /// - Parameters:
    ///   - limit: the longest line in bytes.
    ///   - cutting: whether the rest of a longer line is dropped; else it ends the reading.
    private static func readLines(
        of descriptor: FileDescriptor, limit: Int, cutting: Bool, onLine: @escaping @Sendable ([UInt8]) -> Void,
        onEnd: @escaping @Sendable (_ isTooLong: Bool) -> Void
    ) {
        let thread = Thread {
            defer { try? descriptor.close() }
            var lines = LineBuffer(limit: limit, cutting: cutting)
            while case let bytes = descriptor.nextBytes(atMost: 1 << 16), !bytes.isEmpty {
                guard lines.take(bytes, onLine) else {
                    onEnd(true)
                    return
                }
            }
            onEnd(false)
        }
        thread.stackSize = 1 << 20
        thread.start()
    }
}

/// Limits the lines of a program in the log to a number per minute.
package final class LogRate: Sendable {
    private struct State {
        var end = ContinuousClock.now
        var count = 0
        /// Lines that were left out and are not reported yet.
        var leftOut = 0
    }

    static let limit = 100
    private let interval: Duration
    private let state = Mutex(State())

    /// - Parameter interval: another one than a minute, for tests.
    package init(interval: Duration = .seconds(60)) {
        self.interval = interval
    }

    /// Logs a line. Of lines beyond the limit, only the number is logged when the minute has passed.
    package func log(_ line: String, in logger: Logger) {
        let (isLogged, reportTime) = state.withLock { state -> (Bool, ContinuousClock.Instant?) in
            let now = ContinuousClock.now
            if state.end <= now { (state.end, state.count) = (now + interval, 0) }
            state.count += 1
            guard state.count > Self.limit else { return (true, nil) }
            state.leftOut += 1
            return (false, state.leftOut == 1 ? state.end : nil)
        }
        if isLogged { logger.notice("\(line)") }
        guard let reportTime else { return }
        Task {
            try? await Task.sleep(until: reportTime, clock: .continuous)
            report(in: logger)
        }
    }

    /// Logs how many lines were left out since the last report, if any.
    func report(in logger: Logger) {
        let leftOut = state.withLock { exchange(&$0.leftOut, with: 0) }
        guard leftOut > 0 else { return }
        logger.notice("lines of the program left out here, because only \(Self.limit) a minute are logged: \(leftOut)")
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
