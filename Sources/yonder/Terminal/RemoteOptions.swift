import ArgumentParser
import Control
import Foundation
import ProviderDescriptors

/// The options of all kinds of remote, for commands that name a source. They come from the descriptors: ArgumentParser finds the
/// properties of a type by reflection, and this type reflects a property for each option.
struct RemoteOptions: ParsableArguments, CustomReflectable {
    /// The given values by option, without secrets.
    private var given: [String: String] = [:]
    /// The secrets that are to be read from standard input, in the order of the descriptors.
    private var secrets: [ProviderOption] = []
    /// A value of `--option` that is not NAME=VALUE.
    private var malformed: String?

    /// The options by name. An option of several kinds of remote is one flag.
    private static let all: [(option: ProviderOption, help: String)] = {
        var found: [(option: ProviderOption, help: String)] = []
        for descriptor in ProviderDescriptor.all {
            for option in descriptor.options {
                let help = "\(descriptor.name): \(option.help)"
                if let index = found.firstIndex(where: { $0.option.name == option.name }) {
                    found[index].help += " \(help)"
                } else {
                    found.append((option, help))
                }
            }
        }
        return found
    }()

    private struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init() {}

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: Key.self)
        for (option, _) in Self.all {
            let key = Key(stringValue: option.flag)
            if option.isSecret {
                if try values.decode(Flag<Bool>.self, forKey: key).wrappedValue { secrets.append(option) }
            } else {
                given[option.name] = try values.decode(Option<String?>.self, forKey: key).wrappedValue
            }
        }
        for text in try values.decode(Option<[String]>.self, forKey: Self.option).wrappedValue {
            guard let equals = text.firstIndex(of: "="), equals > text.startIndex else {
                malformed = malformed ?? text
                continue
            }
            given[String(text[..<equals])] = String(text[text.index(after: equals)...])
        }
        for name in try values.decode(Option<[String]>.self, forKey: Self.secret).wrappedValue {
            secrets.append(ProviderOption(name, .secret, ""))
        }
    }

    // An error of the decoder would be shown as an internal one.
    func validate() throws {
        guard let malformed else { return }
        throw ValidationError(
            "--option (-o) takes NAME=VALUE of the source, and '\(malformed)' is not; mount options are --read-only and so on"
        )
    }

    private static let option = Key(stringValue: "option")
    private static let secret = Key(stringValue: "secret")

    /// For programs, whose options only they know.
    private static var general: [Mirror.Child] {
        [
            (
                option.stringValue,
                Option<[String]>(
                    wrappedValue: [],
                    name: [.customShort("o"), .customLong("option")], parsing: .singleValue,
                    help: ArgumentHelp(
                        "An option of the source, above all of one that a program serves. May be repeated.",
                        valueName: "name=value"))
            ),
            (
                secret.stringValue,
                Option<[String]>(
                    wrappedValue: [],
                    name: .customLong("secret"), parsing: .singleValue,
                    help: ArgumentHelp(
                        "Read a secret of the source from standard input, one line each. May be repeated.",
                        valueName: "name"))
            ),
        ]
    }

    var customMirror: Mirror {
        Mirror(
            self,
            children: Self.all.map { option, help -> Mirror.Child in
                if option.isSecret {
                    return (option.flag, Flag(wrappedValue: false, name: .customLong(option.flag), help: "\(help)"))
                }
                return (
                    option.flag,
                    Option<String?>(
                        name: .customLong(option.flag), help: ArgumentHelp("\(help)", valueName: option.valueName),
                        completion: option.completion)
                )
            } + Self.general)
    }

    /// - Throws: `ValidationError` for options that do not apply to the source.
    func check(for source: String) throws {
        if let mistake = SourcePath.descriptor(of: source)?.mistake(in: given) { throw ValidationError(mistake) }
    }

    /// Adds the options and credentials from the flags and from the environment for the source of the arguments, if there is one.
    /// Reads secrets from standard input if requested.
    ///
    /// - Throws: `ExitCode` after a diagnostic, before anything is read if the source takes no such secret; as ``SecretPrompt/read(_:)``.
    func add(to arguments: inout MountArguments, for source: String) throws {
        var credentials = GivenCredentials()
        var options = given
        let descriptor = arguments.source.flatMap(ProviderDescriptor.serving)
        if let mistake = descriptor?.mistake(inSecrets: secrets.map(\.name)) { throw Output.failure(mistake) }
        for secret in secrets { credentials.secrets.merge(try read(secret, for: source)) { $1 } }
        if let descriptor {
            let environment = ShellEnvironment(
                ProcessInfo.processInfo.environment, for: descriptor, given: given, absolute: AbsolutePath.resolving)
            options.merge(environment.options) { given, _ in given }
            if !environment.variables.isEmpty { credentials.variables = environment.variables }
        }
        arguments.credentials = credentials == GivenCredentials() ? nil : credentials
        arguments.remote = options.isEmpty ? nil : options
    }

    /// The arguments of a mount command, with a secret that the remote requires and that was not given: it is asked for on the
    /// terminal.
    ///
    /// - Parameter error: of the command. The provider names the flag of the secret that it requires.
    /// - Returns: nil if no secret is required, or it cannot be asked for.
    /// - Throws: `ExitCode` if the user enters none.
    func completed(_ arguments: MountArguments, after error: ControlError) throws -> MountArguments? {
        guard let source = arguments.source ?? error.path, let descriptor = ProviderDescriptor.serving(source),
            let secret = descriptor.options.first(where: { option in
                option.isSecret && !secrets.contains { $0.name == option.name }
                    && error.message.contains("--\(option.flag)")
            }), let prompt = SecretPrompt()
        else { return nil }
        let user = Self.user(in: source)
        // Without a user, USER:PASSWORD would have to be typed blindly.
        if secret.kind == .password, user == nil { return nil }
        var subject = user.map { "'\($0)'" } ?? source
        if let key = arguments.remote?["access-key"] { subject = "'\(key)'" }
        let line = try prompt.ask("\(secret.name.replacing("-", with: " ")) of \(subject)")
        var completed = arguments
        var credentials = arguments.credentials ?? GivenCredentials()
        credentials.secrets[secret.name] = line
        if secret.kind == .password { credentials.secrets[ProviderOption.userName] = user }
        completed.credentials = credentials
        return completed
    }

    /// - Returns: the secret under its name, and the name of its user.
    /// - Throws: as ``SecretPrompt/read(_:)``.
    private func read(_ secret: ProviderOption, for source: String) throws -> [String: String] {
        let line = try SecretPrompt.read(secret.name)
        guard secret.kind == .password else { return [secret.name: line] }
        if let user = Self.user(in: source) { return [secret.name: line, ProviderOption.userName: user] }
        guard let colon = line.firstIndex(of: ":") else {
            return [secret.name: line, ProviderOption.userName: NSUserName()]
        }
        return [
            secret.name: String(line[line.index(after: colon)...]), ProviderOption.userName: String(line[..<colon]),
        ]
    }

    private static func user(in source: String) -> String? {
        guard let scheme = source.range(of: "://") else { return nil }
        let authority = source[scheme.upperBound...].prefix { $0 != "/" }
        return authority.lastIndex(of: "@").flatMap { String(authority[..<$0]).removingPercentEncoding }
    }
}

extension ProviderOption {
    fileprivate var completion: CompletionKind? {
        switch kind {
        case .path: .file()
        case .choice(let values): .list(values)
        case .text, .url, .number, .secret, .password: nil
        }
    }
}
