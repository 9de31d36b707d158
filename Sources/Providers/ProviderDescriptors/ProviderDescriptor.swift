/// Describes a kind of remote: how its sources begin, and what can be given for them.
///
/// A descriptor is data alone, so that the command line can parse, complete and explain options without the provider's code
/// and without a daemon. ``ProviderFactory`` adds the code.
package struct ProviderDescriptor: Hashable, Sendable {
    /// The name in `yonder providers` and in the configuration file.
    package var name: String
    /// One sentence for the user.
    package var summary: String
    /// How sources of this kind look like, for the user: `s3://BUCKET/PREFIX`.
    package var forms: [String]
    /// How sources of this kind begin: `s3://`, or `/` for absolute paths.
    package var prefixes: [String]
    /// What stands before the absolute path of a folder of this machine in sources of this kind.
    package var folderPrefixes: [String] = []
    package var options: [ProviderOption] = []
    /// Whether options and secrets that the descriptor does not list are passed on unverified.
    package var takesAnyOption = false
    /// Whether the provider communicates with another machine; false if it reads files by their paths.
    package var usesNetwork = true
    /// Environment variables that are sent with a mount command and stored with the domain.
    package var variables: [String] = []
    /// As ``variables``, and the value is a path, which is made absolute.
    package var pathVariables: [String] = []
    /// Environment variables with credentials; nil if there are none.
    package var identity: IdentityVariables?

    package func serves(_ source: String) -> Bool { prefixes.contains { source.utf8.starts(with: $0.utf8) } }

    package func option(_ name: String) -> ProviderOption? { options.first { $0.name == name } }

    /// The prefixes, as a diagnostic names them.
    package var sources: String { prefixes.joined(separator: " and ") }

    /// Verifies values of options.
    ///
    /// - Returns: what is wrong, in words for the user; nil if nothing is.
    package func mistake(in values: [String: String]) -> String? {
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            guard let option = option(name), !option.isSecret else {
                if takesAnyOption { continue }
                return Self.misplaced(name, self)
            }
            if let mistake = option.mistake(in: value) { return mistake }
        }
        return nil
    }

    /// Verifies the names of secrets, as ``mistake(in:)`` does.
    package func mistake(inSecrets names: some Sequence<String>) -> String? {
        if takesAnyOption { return nil }
        for name in names.sorted() where name != ProviderOption.userName && option(name)?.isSecret != true {
            // Only what some kind of remote takes has a flag of its own.
            guard Self.all.contains(where: { $0.option(name)?.isSecret == true }) else {
                let list = options.isEmpty ? "" : "; 'yonder providers \(self.name)' lists its options"
                return "--secret \(name): the source takes no such secret\(list)"
            }
            return "the source takes no \(name): \(Self.misplaced(name, self, flag: "--\(name)-stdin"))"
        }
        return nil
    }

    private static func misplaced(_ name: String, _ descriptor: ProviderDescriptor, flag: String? = nil) -> String {
        let flag = flag ?? "--\(name)"
        let owners = all.filter { $0.option(name) != nil }.map(\.sources)
        guard !owners.isEmpty else {
            // No flag of this name exists: it was given with --option, with 'yonder set' or in the configuration.
            let mistake = "'\(name)' is no option of such a source"
            return descriptor.options.isEmpty ? mistake : "\(mistake); 'yonder providers \(descriptor.name)' lists them"
        }
        return "\(flag) is for \(owners.joined(separator: " and "))"
    }
}

/// Environment variables that identify the user to a remote.
package struct IdentityVariables: Hashable, Sendable {
    /// Variables that belong together. Of a shell's variables one group is used: the first whose first variable is set, else the
    /// last. All groups replace each other as a whole, because a key is useless with the secret of another.
    package var groups: [[String]]
    /// The variables whose values are paths, which are made absolute.
    package var paths: Set<String> = []
    /// The option that names stored credentials instead. With a value for it no variable is used.
    package var option: String?

    package var all: Set<String> { Set(groups.joined()) }
}
