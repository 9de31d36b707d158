import ArgumentParser
import Control
import ProviderDescriptors

extension Yonder {
    struct ShowOptions: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show all options of a domain.",
            discussion: """
                Prints a line OPTION=VALUE each, as 'yonder set' takes them. An option of the source that is not set \
                has no value. Passwords and keys are not shown.
                """)

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let result = try await DaemonConnection().perform(.show(name))
            guard case .options(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) { Yonder.lines(of: report) }
        }
    }

    struct SetOptions: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "set", abstract: "Change options of a domain.",
            usage: "yonder set NAME OPTION=VALUE... [--json]",
            discussion: """
                'yonder show NAME' shows the options with their values, and 'yonder mount --help' explains them. An \
                empty value removes an option of the source; ignore= removes the stored patterns. All of the changes \
                are made, or none. They take effect at once, except that read-only, allow-other, dev, suid, \
                uid, gid, umask and the options of the source are refused while the domain is mounted.
                """)

        @Argument(help: "The domain's name, or a path in its mount.")
        var name: DomainReference

        @Argument(help: ArgumentHelp("Options with their new values.", valueName: "option=value"))
        var options: [String]

        @OptionGroup var output: OutputOptions

        /// An error of `run` would show the usage of `yonder` instead of that of this command.
        func validate() throws {
            _ = try options.flatMap(Self.flag)
            for option in Self.switches where options.filter({ $0.hasPrefix("\(option)=") }).count > 1 {
                throw ValidationError("\(option) is given twice")
            }
        }

        func run() async throws {
            let flags = try options.flatMap(Self.flag)
            let arguments: MountArguments
            do {
                arguments = try Mount.parse(flags + ["--", name.text]).arguments()
            } catch {
                // In the words of this command.
                throw Output.failure(Self.message(for: error).replacing("--", with: ""), exit: 64)
            }
            let result = try await DaemonConnection().perform(.set(name, arguments))
            guard case .options(let report) = result else { throw unexpected(result) }
            try Output(output).print(report) { Yonder.lines(of: report) }
        }

        /// The message of `yonder mount`. With a wrong value that is none of a few words comes the help of its option, which has an
        /// example.
        private static func message(for error: any Error) -> String {
            let message = Mount.message(for: error)
            let help = Mount.fullMessage(for: error).split(separator: "\n").first { $0.hasPrefix("Help:") }
            guard message.hasSuffix(">'"), let words = help?.split(separator: ">", maxSplits: 1).last else {
                return message
            }
            return "\(message): \(words.drop(while: { $0 == " " }))"
        }

        private static let switches: Swift.Set = ["read-only", "allow-other", "dev", "suid"]
        private static let values: Swift.Set = [
            "cache-limit", "cache-time", "limit-up", "limit-down", "metered", "poll", "fsync", "ignore", "uid", "gid",
            "umask",
        ]

        /// The flag of `yonder mount` for an option.
        ///
        /// - Throws: `ValidationError` for a text that is no option.
        private static func flag(for text: String) throws -> [String] {
            guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
                throw ValidationError("'\(text)' is not OPTION=VALUE; 'yonder show' shows the options")
            }
            let (option, value) = (String(text[..<equals]), String(text[text.index(after: equals)...]))
            if switches.contains(option) {
                switch value {
                case "yes", "true", "on": return ["--\(option)"]
                case "no", "false", "off": return ["--no-\(option)"]
                default: throw ValidationError("\(option) takes yes or no, and '\(value)' is neither")
                }
            }
            // In one word a value may begin with a dash; an empty one needs a word of its own.
            if values.contains(option) { return value.isEmpty ? ["--\(option)", ""] : ["--\(option)=\(value)"] }
            let secret = ProviderDescriptor.all.lazy.flatMap(\.options)
                .first { $0.isSecret && ($0.name == option || $0.flag == option) }
            if let secret {
                throw ValidationError(
                    "other users can see a command line: 'yonder mount NAME --\(secret.flag)' reads the \(secret.name)")
            }
            return ["--option=\(text)"]
        }
    }

    fileprivate static func lines(of report: OptionsReport) -> [String] {
        report.options.map { "\($0.name)=\($0.value ?? "")" }
    }
}
