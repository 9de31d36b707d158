import Control
import Foundation

/// Asks the installed daemon whether it could take over from this one (`yonderd --check-upgrade`). A program that does not start, or
/// that is older than a domain's database, would otherwise leave the mounts without a daemon.
enum UpgradeCheck {
    private static let patience = Duration.seconds(20)

    /// The program that a service manager would start: this process was started by the same path.
    private static var program: String {
        let path = CommandLine.arguments[0]
        guard !path.hasPrefix("/") else { return path }
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? path
        // The kernel's mark for a program that was replaced.
        let mark = " (deleted)"
        return own.hasSuffix(mark) ? String(own.dropLast(mark.count)) : own
    }

    /// - Throws: ``ControlError`` with the reason if the program could not take over.
    static func run() async throws {
        let program = program
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = ["--check-upgrade"]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        let errors = Pipe()
        process.standardError = errors
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in end.finish() }
        do {
            try process.run()
        } catch {
            throw refusal(of: program, error.localizedDescription)
        }
        let identifier = process.processIdentifier
        let deadline = Task {
            try await Task.sleep(for: patience)
            kill(identifier, SIGKILL)
        }
        for await _ in ends {}
        deadline.cancel()
        guard process.terminationReason != .exit || process.terminationStatus != 0 else { return }
        let text = String(decoding: errors.fileHandleForReading.availableData.prefix(2_000), as: UTF8.self)
            .trimmingCharacters(in: .whitespacesAndNewlines)
        let kind = process.terminationReason == .exit ? "exit status" : "signal"
        throw refusal(
            of: program,
            text.isEmpty ? "it ends with \(kind) \(process.terminationStatus)" : text)
    }

    private static func refusal(of program: String, _ reason: String) -> ControlError {
        ControlError(
            .failed, "the installed daemon cannot take over, and the running one goes on: \(reason)", path: program)
    }
}
