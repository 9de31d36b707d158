import Foundation
import Syscalls
import SystemPackage
import Testing

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

        /// Fails the test if the program failed.
        package func expectSuccess(sourceLocation: SourceLocation = #_sourceLocation) {
            #expect(status == 0, "\(output)\(errors)", sourceLocation: sourceLocation)
        }

        /// Fails the test unless the program failed with a status, and with a message that has certain words in it.
        package func expectFailure(
            _ status: Int32 = 1, saying words: String, sourceLocation: SourceLocation = #_sourceLocation
        ) {
            #expect(self.status == status, "\(output)\(errors)", sourceLocation: sourceLocation)
            #expect(errors.contains(words), "\(errors)", sourceLocation: sourceLocation)
        }
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
    /// - Throws: ``Stuck``; `ChildProcess.StartError`.
    package func run() async throws -> Outcome {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let outputPath = try scratch.makeFile("output", [])
        let errorPath = try scratch.makeFile("errors", [])

        var arguments = arguments
        let program = arguments.removeFirst()
        let output = try FileDescriptor.open(outputPath, .writeOnly, options: .closeOnExec)
        defer { try? output.close() }
        let errors = try FileDescriptor.open(errorPath, .writeOnly, options: .closeOnExec)
        defer { try? errors.close() }
        let clock = ContinuousClock()
        let start = clock.now
        let process = try await ChildProcess.start(
            ChildProcess.Launch(
                program, arguments, environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
                in: nil),
            output: output, errors: errors)
        let end = try await end(of: process)
        let duration = clock.now - start
        return Outcome(
            status: end.exitStatus, outputBytes: try outputPath.contents(),
            errors: String(decoding: try errorPath.contents(), as: UTF8.self), duration: duration)
    }

    private func end(of process: ChildProcess) async throws -> ChildProcess.End {
        if let end = await process.end(within: .seconds(seconds)) { return end }
        // With whatever it has started.
        process.killGroup()
        if let end = await process.end(within: .seconds(3)) { return end }
        throw Stuck(arguments: arguments)
    }
}
