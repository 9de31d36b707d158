/// Credentials of a domain: secrets, and environment variables with credentials, certificates and proxies, from the shell that
/// mounts it.
package struct GivenCredentials: Codable, Hashable, Sendable, CustomStringConvertible {
    /// Secrets by the names of the options that they were given for, such as `password`, with the user's name under `user`.
    package var secrets: [String: String]
    /// Environment variables. An empty one removes the stored one.
    package var variables: [String: String]?

    package init(secrets: [String: String] = [:], variables: [String: String]? = nil) {
        self.secrets = secrets
        self.variables = variables
    }

    package var hasSecrets: Bool { !secrets.isEmpty }

    package var description: String { "credentials of '\(secrets["user"] ?? "")'" }

    /// The stored credentials after a command: values that the command does not set stay.
    ///
    /// - Parameter exclusive: variables that replace each other as a whole, because a key is useless with the secret of
    ///   another.
    /// - Returns: nil if nothing is left.
    package func replacing(_ kept: GivenCredentials?, exclusive: Set<String> = []) -> GivenCredentials? {
        var result = hasSecrets ? self : kept ?? self
        var all = kept?.variables ?? [:]
        let given = variables ?? [:]
        if given.keys.contains(where: exclusive.contains) { all = all.filter { !exclusive.contains($0.key) } }
        all = all.merging(given) { $1 }.filter { !$0.value.isEmpty }
        result.variables = all.isEmpty ? nil : all
        return result.hasSecrets || !all.isEmpty ? result : nil
    }
}
