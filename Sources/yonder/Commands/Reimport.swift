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
                and after a restart; 'yonder status' shows the progress. With --wait, the exit status is 1 if the domain is \
                paused: the reimport has begun, and goes on after 'yonder resume'. Where the item is being reimported \
                already, --wait waits for the end of that.
                """)

        @Flag(help: "Wait until it is complete.")
        var wait = false

        @OptionGroup var argument: ItemArgument

        func run() async throws {
            let path = argument.path.text
            let line = ProgressLine("reimported", options: argument.output)
            defer { line.clear() }
            let result = try await DaemonConnection().perform(
                .reimport(path: path, waits: wait),
                onEvent: { event in
                    guard event.kind == "offline" else { return line.show(event) }
                    line.clear()
                    Output.complain("\(path): the reimport waits for the remote: \(event.path)")
                })
            line.clear()
            guard case .reimported(let report) = result else { throw unexpected(result) }
            try Output(argument.output).print(report) {
                [
                    report.isFinished
                        ? "\(report.path) is reimported"
                        : "\(report.path) is being reimported; 'yonder status' shows the progress"
                ]
            }
            try Output.complain(about: report.refusals)
        }
    }
}
