import ArgumentParser
import Syscalls
import SystemPackage

extension Yonder {
    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Run a command that downloads nothing.",
            discussion: """
                The command and its descendants can use all local content. Access to content that is not local fails at \
                once with EREMOTE, "Object is remote".
                """)

        @Flag(help: "Download nothing. (Required.)")
        var noMaterialize = false

        @Argument(parsing: .captureForPassthrough, help: "The command and its arguments, after '--'.")
        var command: [String] = []

        func validate() throws {
            // Options before `--` belong to yonder.
            if ["-h", "--help"].contains(command.first) { throw CleanExit.helpRequest(self) }
            guard noMaterialize else { throw ValidationError("use 'yonder run --no-materialize -- COMMAND ...'") }
            guard !words.isEmpty else {
                throw ValidationError("give a command: 'yonder run --no-materialize -- COMMAND ...'")
            }
        }

        private var words: [String] { command.first == "--" ? Array(command.dropFirst()) : command }

        func run() async throws {
            do {
                try Machine.markAgainstMaterialization()
            } catch {
                throw Output.failure("the command cannot be marked: \(error)")
            }
            let error = Machine.become(words)
            throw Output.failure("\(words.first ?? ""): \(error)", exit: error == .noSuchFileOrDirectory ? 127 : 126)
        }
    }
}
