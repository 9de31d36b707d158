/// What the shell that mounts knows of the way to a remote: a user and a password, and the environment variables that hold
/// credentials, certificates and proxies. All of it belongs to the domain, and may be secret.
package struct GivenCredentials: Codable, Hashable, Sendable, CustomStringConvertible {
    package var user: String
    /// Empty where none was given.
    package var password: String
    /// Environment variables; one that is empty takes back what was kept.
    package var variables: [String: String]?

    package init(user: String, password: String, variables: [String: String]? = nil) {
        (self.user, self.password) = (user, password)
        self.variables = variables
    }

    package init(variables: [String: String]) {
        self.init(user: "", password: "", variables: variables)
    }

    /// Whether a user and a password were given.
    package var hasPassword: Bool { !password.isEmpty }

    /// Nothing secret, whoever prints it.
    package var description: String { "credentials of '\(user)'" }

    /// What a domain has when these are given: what these do not mention stays as it was kept. Access keys and the address
    /// of a container's credentials replace each other as a whole, since a key without its own secret is of no use.
    ///
    /// - Returns: nil when nothing is left.
    package func replacing(_ kept: GivenCredentials?) -> GivenCredentials? {
        var result = hasPassword ? self : kept ?? self
        var all = kept?.variables ?? [:]
        let given = variables ?? [:]
        if given.keys.contains(where: Self.isIdentity) { all = all.filter { !Self.isIdentity($0.key) } }
        all = all.merging(given) { $1 }.filter { !$0.value.isEmpty }
        result.variables = all.isEmpty ? nil : all
        return result.hasPassword || !all.isEmpty ? result : nil
    }

    private static func isIdentity(_ name: String) -> Bool {
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"].contains(name)
            || name.hasPrefix("AWS_CONTAINER_")
    }
}
