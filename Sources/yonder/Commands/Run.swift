import ArgumentParser
import Syscalls
import SystemPackage

extension Yonder {
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Run a command for which nothing is downloaded.",
            discussion: """
                The command, and all that it starts, can use everything that is here. What is not here fails at once \
                with EREMOTE, "Object is remote".
                """)

        @Flag(help: "Download nothing. (There is no other way to run a command yet.)")
        var noMaterialize = false

        @Argument(parsing: .captureForPassthrough, help: "The command and its arguments, after '--'.")
        var command: [String] = []

        func validate() throws {
            // Options before `--` belong to yonder.
            if ["-h", "--help"].contains(command.first) { throw CleanExit.helpRequest(self) }
            guard noMaterialize else { throw ValidationError("say how: 'yonder run --no-materialize -- COMMAND ...'") }
            guard !words.isEmpty else {
                throw ValidationError("say which command: 'yonder run --no-materialize -- COMMAND ...'")
            }
        }

        private var words: [String] { command.first == "--" ? Array(command.dropFirst()) : command }

        func run() async throws {
            do {
                try Machine.markAgainstMaterialization()
            } catch {
                Output.complain("the command cannot be marked: \(error)")
                throw ExitCode(1)
            }
            let error = Machine.become(words)
            Output.complain("\(words.first ?? ""): \(error)")
            throw ExitCode(error == .noSuchFileOrDirectory ? 127 : 126)
        }
    }
}
