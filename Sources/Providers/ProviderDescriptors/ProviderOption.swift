/// An option of a kind of remote. `NAME` is the flag `--NAME` of `yonder mount`, the key in the configuration file and in
/// `domain.json`; a secret is the flag `--NAME-stdin` and is stored with the credentials.
package struct ProviderOption: Hashable, Sendable {
    package enum Kind: Hashable, Sendable {
        case text
        /// An address, with or without a scheme.
        case url
        case path
        case number
        case choice([String])
        /// A secret that is read from standard input.
        case secret
        /// The secret of a user, whose name is in the source, in the input (`USER:PASSWORD`), or the login name.
        case password
    }

    /// The key of the user's name beside a ``Kind/password``.
    package static let userName = "user"

    package var name: String
    package var kind: Kind
    /// One sentence for the user.
    package var help: String
    /// What stands for the value in the help; nil for the name.
    package var valueName: String?
    /// Environment variables of the shell, the first of which that is set gives the value if the option is not given.
    package var variables: [String] = []

    package init(_ name: String, _ help: String, variables: [String] = []) {
        self.init(name, .text, help, variables: variables)
    }

    package init(
        _ name: String, _ kind: Kind, _ help: String, valueName: String? = nil, variables: [String] = []
    ) {
        self.name = name
        self.kind = kind
        self.help = help
        self.valueName = valueName
        self.variables = variables
    }

    package var isSecret: Bool { kind == .secret || kind == .password }

    package var flag: String { isSecret ? "\(name)-stdin" : name }

    /// What is wrong with a value; nil if nothing is. An empty value is none.
    func mistake(in value: String) -> String? {
        if value.isEmpty { return nil }
        if kind == .url, AddressPassword.isIn(value) { return "--\(name) takes an address without a password" }
        let isRight =
            switch kind {
            case .text, .path, .secret, .password: true
            case .url: !value.utf8.contains { $0 <= 0x20 || $0 == 0x7F }
            case .number: Int64(value) != nil
            case .choice(let values): values.contains(value)
            }
        if isRight { return nil }
        let wanted =
            switch kind {
            case .number: "a whole number"
            case .choice(let values): values.joined(separator: " or ")
            default: "an address"
            }
        return "--\(name) takes \(wanted), and '\(value)' is not"
    }
}
