/// What the environment of a shell says about a remote. The daemon's environment is another, so these values are sent with a mount
/// command and stored with the domain.
package struct ShellEnvironment: Hashable, Sendable {
    /// Values for options that were not given as flags.
    package private(set) var options: [String: String] = [:]
    /// Variables with credentials, certificates, proxies and paths of files. An empty one removes a stored one.
    package private(set) var variables: [String: String] = [:]

    /// - Parameters:
    ///   - given: the values of flags.
    ///   - absolute: makes a path absolute, because the daemon has another working directory.
    package init(
        _ environment: [String: String], for descriptor: ProviderDescriptor, given: [String: String],
        absolute: (String) -> String
    ) {
        let identity = descriptor.identity
        func isSet(_ name: String) -> Bool { environment[name].map { !$0.isEmpty } ?? false }
        let group = identity?.groups.dropLast().first { $0.first.map(isSet) ?? false }
        for option in descriptor.options where given[option.name] == nil {
            // Credentials of the shell come before stored credentials that it names.
            if option.name == identity?.option, group != nil { continue }
            if let name = option.variables.first(where: isSet) { options[option.name] = environment[name] }
        }
        variables = environment.filter {
            descriptor.variables.contains($0.key) || descriptor.pathVariables.contains($0.key)
        }
        for name in descriptor.pathVariables {
            if let path = variables[name], !path.isEmpty { variables[name] = absolute(path) }
        }
        let named = identity?.option.flatMap { given[$0] ?? options[$0] } ?? ""
        if let identity, named.isEmpty {
            for name in group ?? identity.groups.last ?? [] where isSet(name) {
                variables[name] = environment[name].map(identity.paths.contains(name) ? absolute : { $0 })
            }
        }
    }
}
