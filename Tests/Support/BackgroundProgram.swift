import Foundation

/// A program that runs beside a test, until the test stops it.
package struct BackgroundProgram: Sendable {
    private let process: Process

    /// Starts a program. The threads that run tasks block all signals, which it would inherit: they are unblocked.
    package init(_ arguments: String..., environment: [String: String] = [:]) throws {
        try self.init(arguments, environment: environment)
    }

    /// As the other.
    package init(_ arguments: [String], environment: [String: String] = [:]) throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["--default-signal"] + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    package var processIdentifier: Int32 { process.processIdentifier }
    package var isRunning: Bool { process.isRunning }
    /// How it ended; nil while it runs.
    package var status: Int32? { process.isRunning ? nil : process.terminationStatus }

    /// As Ctrl-C does.
    package func interrupt() { process.interrupt() }

    /// Ends it at once. Returns without waiting for it.
    package func kill() {
        guard process.isRunning else { return }
        _ = try? Process.run(
            URL(fileURLWithPath: "/usr/bin/env"), arguments: ["kill", "-9", String(process.processIdentifier)])
    }

    /// Waits until it has ended.
    ///
    /// - Returns: whether it did.
    package func ends(within time: Duration = .seconds(5)) async -> Bool {
        await eventually(within: time) { !process.isRunning }
    }
}
