import ArgumentParser
import FileProvider
import Foundation
import Logging
import ProgramConformance
import ProviderDescriptors

extension Yonder {
    struct Provider: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Check a program that provides a source.", subcommands: [CheckProgram.self])
    }
}

extension Yonder.Provider {
    struct CheckProgram: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check", abstract: "Run the conformance suite against a program.",
            discussion: """
                PROGRAM is NAME:LOCATION, or the path of an executable, whose location is then the OPTION 'location'. The \
                location must be empty: the checks make items and delete all of them. Prints a line for each requirement \
                that is not met, and exits with 1 if there is any.
                """)

        @Argument(help: "The program.", completion: .file())
        var program: String

        @Argument(help: ArgumentHelp("Options of the program.", valueName: "option=value"))
        var options: [String] = []

        @Option(
            help: ArgumentHelp(
                "Ask for a secret, or read it from standard input, one line each. May be repeated.", valueName: "name"))
        var secret: [String] = []

        @Option(
            name: .customLong("only"),
            help: ArgumentHelp("Run this check alone. May be repeated.", valueName: "check"),
            completion: .list(ProgramCheck.names))
        var chosen: [String] = []

        @OptionGroup var output: OutputOptions

        func validate() throws {
            if program.hasSuffix(":") {
                throw ValidationError(
                    "'\(program)' has no location, and the checks delete everything at it: give NAME:LOCATION")
            }
            if isPath, !options.contains(where: { $0.hasPrefix("location=") && $0 != "location=" }) {
                throw ValidationError(
                    "'\(program)' has no location, and the checks delete everything at it: give location=LOCATION")
            }
            if let kind = ProviderDescriptor.serving(program), kind != .program, kind != .folder {
                throw ValidationError(
                    "'\(program)' is a source of the kind '\(kind.name)', and the check is for programs only: give NAME:LOCATION, "
                        + "or the path of an executable")
            }
            if let unknown = chosen.first(where: { !ProgramCheck.names.contains($0) }) {
                throw ValidationError(
                    "there is no check '\(unknown)'; there are: \(ProgramCheck.names.joined(separator: ", "))")
            }
            if let text = options.first(where: { !$0.contains("=") }) {
                throw ValidationError("'\(text)' is not OPTION=VALUE")
            }
        }

        /// Whether the program is named by its path, and not as a source.
        private var isPath: Bool { program.contains("/") && FileManager.default.isExecutableFile(atPath: program) }

        func run() async throws {
            var values: [String: String] = [:]
            for text in options {
                guard let equals = text.firstIndex(of: "=") else { continue }
                values[String(text[..<equals])] = String(text[text.index(after: equals)...])
            }
            let location = values.removeValue(forKey: "location")
            let secrets = try Dictionary(secret.map { ($0, try SecretPrompt.read($0)) }) { $1 }
            let settings = ProviderSettings(
                options: values, secrets: { secrets }, environment: { ProcessInfo.processInfo.environment },
                logger: Logger(label: "yonder"))
            let check = ProgramCheck(
                isPath ? "check:\(location ?? "")" : program, program: isPath ? AbsolutePath.resolving(program) : nil,
                settings)
            let output = Output(output)
            var failures = 0
            var count = 0
            do {
                try await check.run(only: chosen.isEmpty ? nil : Set(chosen)) { result in
                    count += 1
                    if result.failure != nil { failures += 1 }
                    if output.isJSON {
                        try output.printLine(result) { "" }
                    } else if let failure = result.failure {
                        Output.complain("\(result.check): \(failure)")
                    }
                }
            } catch let error as FileProviderError {
                throw Output.failure("\(program): \(error.message)")
            }
            if !output.isJSON { Output.write("\(count - failures) of \(count) checks passed\n", to: .standardOutput) }
            if failures > 0 { throw ExitCode(1) }
        }
    }
}
