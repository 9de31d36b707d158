import ArgumentParser
import Control

extension Yonder {
    struct Reimport: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Have what lies below a path recognized by the remote again.",
            discussion: """
                For a remote whose identifiers are not to be trusted any more: one that was restored, moved or rebuilt. \
                Everything below PATH is offered to it again. What it recognizes keeps its inode and its content, what \
                was written here stays and is sent, what the remote has lost and is here is made there again. Goes on \
                by itself, also after a restart; 'yonder status' shows how far it is.
                """)

        @Argument(help: "A path in a mount.", completion: .file())
        var path: String

        @Flag(help: "Return when it is complete.")
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
                        : "\(Output.shown(report.path)) is being reimported; 'yonder status' shows how far it is"
                ]
            }
            for refusal in report.refusals { Output.complain("\(refusal.path): \(refusal.reason)") }
            if !report.refusals.isEmpty { throw ExitCode(1) }
        }
    }
}
