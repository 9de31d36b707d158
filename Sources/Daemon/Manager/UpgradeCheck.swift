import Control
import Foundation
import Syscalls
import Volume

/// Asks the installed daemon whether it could take over from this one (`yonderd --check-upgrade`). A program that does not start, or
/// that is older than a domain's database, would otherwise leave the mounts without a daemon; one that cannot read their tables of open
/// files would have to mount again.
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

    /// - Parameter hasMounts: whether there are mounts to take over, with tables of open files.
    /// - Throws: ``ControlError`` with the reason if the program could not take over.
    static func run(hasMounts: Bool) async throws {
        let program = program
        let layout = hasMounts ? ["--open-files-layout", String(HandleTable.layout)] : []
        let launch = ChildProcess.Launch(
            program, ["--check-upgrade"] + layout, environment: ProcessInfo.processInfo.environment, in: nil)
        do {
            let (end, errors) = try await ChildProcess.run(launch, reading: .errors, within: patience)
            guard end != .exited(0) else { return }
            let text = String(decoding: errors.prefix(2_000), as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            throw refusal(of: program, text.isEmpty ? "it ends with \(end)" : text)
        } catch let error as ChildProcess.RunError {
            switch error {
            case .notStarted(let reason): throw refusal(of: program, reason)
            case .tooMuchOutput: throw refusal(of: program, "it prints too much")
            case .timedOut: throw refusal(of: program, "it does not end within \(patience)")
            }
        }
    }

    private static func refusal(of program: String, _ reason: String) -> ControlError {
        ControlError(
            .failed, "the installed daemon cannot take over, and the running one goes on: \(reason)", path: program)
    }
}
