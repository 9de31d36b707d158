import ArgumentParser
import Control

extension Yonder {
    struct Reimport: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Match the items below a path with the remote again.",
            discussion: """
                For a remote whose identifiers are no longer valid, because it was restored, moved or rebuilt. Every \
                item below PATH is offered to it again. A recognized item keeps its inode and its content, local changes \
                stay and are uploaded, and an item that only exists here is created again. Continues in the background \
                and after a restart; 'yonder status' shows the progress.
                """)

        @Argument(help: "A path in a mount.", completion: .file())
        var path: String

        @Flag(help: "Wait until it is complete.")
        var wait = false

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let line = ProgressLine("reimported", options: output)
            let result: ControlResult
            do {
                result = try await DaemonConnection().perform(
                    .reimport(path: AbsolutePath.resolving(path), waits: wait), onEvent: line.show)
                line.clear()
            } catch {
                line.clear()
                throw error
            }
            guard case .reimported(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) {
                [
                    report.isFinished
                        ? "\(Output.shown(report.path)) is reimported"
                        : "\(Output.shown(report.path)) is being reimported; 'yonder status' shows the progress"
                ]
            }
            for refusal in report.refusals { Output.complain("\(refusal.path): \(refusal.reason)") }
            if !report.refusals.isEmpty { throw ExitCode(1) }
        }
    }
}
