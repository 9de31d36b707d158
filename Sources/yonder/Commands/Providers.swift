import ArgumentParser
import Foundation
import ProviderDescriptors

extension Yonder {
    struct Providers: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the kinds of sources, or the options of one.",
            discussion: """
                An option is a flag of 'yonder mount', or a line 'OPTION = "VALUE"' below '[NAME]' in the configuration file \
                for all domains of the kind. A secret is asked for on the terminal, or read from standard input.
                """)

        @Argument(
            help: "The name of a kind or of a program, or a source.",
            completion: .list(ProviderDescriptor.all.map(\.name)))
        var name: String?

        @OptionGroup var output: OutputOptions

        func run() async throws {
            guard let name else {
                return try Output(output).print(ProviderDescriptor.all.map(ProviderReport.init)) {
                    Output.table(
                        ProviderDescriptor.all.map { [$0.name, $0.forms.joined(separator: ", "), $0.summary] })
                }
            }
            let named = ProviderDescriptor.all.first { $0.name == name } ?? ProviderDescriptor.serving(name)
            let program = ProgramSource(name + ":")?.program(in: ProcessInfo.processInfo.environment)
            guard let descriptor = named ?? (program == nil ? nil : ProviderDescriptor.program) else {
                throw Output.failure("\(name): no such kind of source; 'yonder providers' lists all")
            }
            try Output(output).print(ProviderReport(descriptor)) { Self.lines(descriptor) }
        }

        private static func lines(_ descriptor: ProviderDescriptor) -> [String] {
            var lines = ["\(descriptor.name): \(descriptor.summary)"] + descriptor.forms.map { "  \($0)" }
            if !descriptor.options.isEmpty {
                lines += ["", "Options:"]
                lines += Output.table(
                    descriptor.options.map { option in
                        let value = option.isSecret ? "" : " <\(option.valueName ?? option.name)>"
                        let variables = option.variables.isEmpty ? "" : " (\(option.variables.joined(separator: ", ")))"
                        return ["  --\(option.flag)\(value)", option.help + variables]
                    })
            }
            let variables = ProviderReport(descriptor).variables
            if !variables.isEmpty {
                lines += ["", "Environment variables that are stored with the domain:"]
                lines += variables.map { "  \($0)" }
            }
            return lines
        }
    }
}

/// A descriptor as JSON.
struct ProviderReport: Encodable {
    struct Option: Encodable {
        var name: String
        var flag: String
        /// `text`, `url`, `path`, `number`, `choice`, `secret` or `password`.
        var type: String
        var choices: [String]?
        var isSecret: Bool
        var help: String
        var variables: [String]
    }

    var name: String
    var summary: String
    var sources: [String]
    var options: [Option]
    var variables: [String]

    init(_ descriptor: ProviderDescriptor) {
        name = descriptor.name
        summary = descriptor.summary
        sources = descriptor.forms
        options = descriptor.options.map { option in
            var choices: [String]?
            let type: String
            switch option.kind {
            case .text: type = "text"
            case .url: type = "url"
            case .path: type = "path"
            case .number: type = "number"
            case .choice(let values): (type, choices) = ("choice", values)
            case .secret: type = "secret"
            case .password: type = "password"
            }
            return Option(
                name: option.name, flag: "--\(option.flag)", type: type, choices: choices, isSecret: option.isSecret,
                help: option.help, variables: option.variables)
        }
        variables = descriptor.variables + descriptor.pathVariables + (descriptor.identity?.groups.flatMap { $0 } ?? [])
    }
}
