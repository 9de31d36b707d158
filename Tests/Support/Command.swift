import Foundation
import Synchronization
import SystemPackage

/// Programs that a test runs. Whatever happens, the test goes on: a program that does not end in time is killed, and
/// one that cannot be killed, because a file system does not answer it, is left behind.
package struct Command: Sendable {
    /// What a program left.
    package struct Outcome: Sendable {
        /// As the shell says it: 128 and the signal's number when a signal ended it.
        package var status: Int32
        package var outputBytes: [UInt8]
        package var errors: String
        package var duration: Duration

        package var output: String { String(decoding: outputBytes, as: UTF8.self) }
        /// The output without the newline at its end.
        package var line: String { output.hasSuffix("\n") ? String(output.dropLast()) : output }
    }

    /// A program that neither ended nor could be killed.
    package struct Stuck: Error, CustomStringConvertible {
        package var arguments: [String]
        package var description: String { "not even killed in time: \(arguments.joined(separator: " "))" }
    }

    package var arguments: [String]
    package var environment: [String: String] = [:]
    package var seconds = 20

    /// - Parameter arguments: the program, looked for in PATH, and what it is given.
    package init(_ arguments: [String], environment: [String: String] = [:], seconds: Int = 20) {
        self.arguments = arguments
        self.environment = environment
        self.seconds = seconds
    }

    /// Runs a program to its end.
    package static func run(_ arguments: String..., seconds: Int = 20) async throws -> Outcome {
        try await Command(arguments, seconds: seconds).run()
    }

    /// Runs a line of shell. The words after it are its `$1`, `$2` and so on.
    package static func shell(_ line: String, _ words: String..., seconds: Int = 20) async throws -> Outcome {
        try await Command(["sh", "-c", line, "sh"] + words, seconds: seconds).run()
    }

    /// Runs some Python. The words after it are its `sys.argv[1:]`.
    package static func python(_ program: String, _ words: String..., seconds: Int = 20) async throws -> Outcome {
        try await Command(["python3", "-c", program] + words, seconds: seconds).run()
    }

    /// Runs it to its end.
    ///
    /// - Throws: ``Stuck``; what Foundation says when it cannot be started.
    package func run() async throws -> Outcome {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let outputPath = try scratch.makeFile("output", [])
        let errorPath = try scratch.makeFile("errors", [])

        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        // `timeout` kills whatever the program has started too. The threads that run tasks block all signals, and
        // programs would inherit that.
        process.arguments = ["--default-signal", "timeout", "-s", "KILL", String(seconds)] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let output = try FileHandle(forWritingTo: URL(fileURLWithPath: outputPath.string))
        let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: errorPath.string))
        // Foundation keeps them open for as long as it likes, and cannot start programs with very many open.
        defer {
            try? output.close()
            try? errors.close()
        }
        process.standardOutput = output
        process.standardError = errors

        let clock = ContinuousClock()
        let start = clock.now
        let status = try await end(of: process)
        let duration = clock.now - start
        return Outcome(
            status: status, outputBytes: Array(try Data(contentsOf: URL(fileURLWithPath: outputPath.string))),
            errors: String(decoding: try Data(contentsOf: URL(fileURLWithPath: errorPath.string)), as: UTF8.self),
            duration: duration)
    }

    private func end(of process: Process) async throws -> Int32 {
        let once = Once()
        let deadline = Task {
            try await Task.sleep(for: .seconds(seconds + 3))
            once.resume(throwing: Stuck(arguments: arguments))
        }
        defer { deadline.cancel() }
        return try await withCheckedThrowingContinuation { continuation in
            once.set(continuation)
            process.terminationHandler = { process in
                let status = process.terminationStatus
                once.resume(returning: process.terminationReason == .uncaughtSignal ? 128 + status : status)
            }
            do { try process.run() } catch { once.resume(throwing: error) }
        }
    }

    /// A continuation that the first of several resumes.
    private final class Once: Sendable {
        private let continuation = Mutex<CheckedContinuation<Int32, any Error>?>(nil)

        func set(_ value: CheckedContinuation<Int32, any Error>) {
            continuation.withLock { $0 = value }
        }

        func resume(returning status: Int32) { take()?.resume(returning: status) }

        func resume(throwing error: any Error) { take()?.resume(throwing: error) }

        private func take() -> CheckedContinuation<Int32, any Error>? {
            continuation.withLock { $0.take() }
        }
    }
}
