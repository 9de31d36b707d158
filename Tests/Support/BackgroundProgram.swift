import Foundation
import Syscalls
import SystemPackage

/// A program that runs beside a test, until the test stops it.
package struct BackgroundProgram: Sendable {
    private let process: ChildProcess

    /// Starts a program.
    package init(_ arguments: String..., environment: [String: String] = [:]) async throws {
        try await self.init(arguments, environment: environment)
    }

    /// As the other.
    package init(_ arguments: [String], environment: [String: String] = [:]) async throws {
        process = try await ChildProcess.start(
            ChildProcess.Launch(
                arguments[0], Array(arguments.dropFirst()),
                environment: ProcessInfo.processInfo.environment.merging(environment) { $1 }, in: nil))
    }

    /// Starts a program that writes a file when it is ready: a server writes its port.
    ///
    /// - Returns: the program, and what the file says.
    /// - Throws: ``TestFailure``.
    package static func start(
        _ arguments: [String], until path: FilePath
    ) async throws -> (program: BackgroundProgram, text: String) {
        let program = try await BackgroundProgram(arguments)
        _ = await eventually(within: .seconds(60)) {
            FileManager.default.fileExists(atPath: path.string) || !program.isRunning
        }
        guard let text = try? String(contentsOfFile: path.string, encoding: .utf8) else {
            program.kill()
            throw TestFailure("not ready: \(arguments.joined(separator: " "))")
        }
        return (program, text)
    }

    /// Starts a program for each of some values.
    ///
    /// - Parameter arguments: the program and its arguments.
    package static func start<Value>(
        forEach values: some Sequence<Value>, _ arguments: (Value) -> [String]
    ) async throws -> [BackgroundProgram] {
        var programs: [BackgroundProgram] = []
        for value in values { programs.append(try await BackgroundProgram(arguments(value))) }
        return programs
    }

    package var processIdentifier: Int32 { process.processIdentifier }
    package var isRunning: Bool { process.isRunning }
    /// How it ended; nil while it runs. Of a signal its number.
    package var status: Int32? {
        switch process.end {
        case .exited(let status): status
        case .killed(let signal): signal
        case nil: nil
        }
    }

    /// As Ctrl-C does, or by another signal.
    package func interrupt(by signal: Int32 = SIGINT) { process.send(signal: signal) }

    /// Ends it at once. Returns without waiting for it.
    package func kill() { process.send(signal: SIGKILL) }

    /// Waits until it takes connections on a port of this machine.
    ///
    /// - Returns: false when it ended, or did not in time.
    package func answers(on port: Int) async -> Bool {
        let isOver = await eventually(within: .seconds(20)) {
            guard isRunning else { return true }
            return await Self.isListenedTo(port)
        }
        return isOver && isRunning
    }

    /// Whether a program takes connections on a port of this machine.
    package static func isListenedTo(_ port: Int) async -> Bool {
        (try? await Command.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/\(port)").status) == 0
    }

    /// Waits until it has ended.
    ///
    /// - Returns: whether it did.
    package func ends(within time: Duration = .seconds(5)) async -> Bool { await process.end(within: time) != nil }
}
