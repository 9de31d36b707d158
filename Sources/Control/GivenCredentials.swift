/// Credentials of a domain: user and password, and environment variables with credentials, certificates and proxies,
/// from the shell that mounts it. They may be secret.
package struct GivenCredentials: Codable, Hashable, Sendable, CustomStringConvertible {
    package var user: String
    /// Empty if none was given.
    package var password: String
    /// Environment variables. An empty one removes the stored one.
    package var variables: [String: String]?

    package init(user: String, password: String, variables: [String: String]? = nil) {
        (self.user, self.password) = (user, password)
        self.variables = variables
    }

    package init(variables: [String: String]) {
        self.init(user: "", password: "", variables: variables)
    }

    /// Whether user and password are set.
    package var hasPassword: Bool { !password.isEmpty }

    /// A description without secrets.
    package var description: String { "credentials of '\(user)'" }

    /// The stored credentials after a command: values that the command does not set stay. Access keys and the address
    /// of container credentials replace each other as a whole, because a key is useless with the secret of another.
    ///
    /// - Returns: nil if nothing is left.
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
