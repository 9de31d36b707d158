/// The environment variables that the daemon runs with. It outlives the shell that starts it and serves mounts of others,
/// so credentials, certificates and proxies come from the shell that mounts a domain (``GivenCredentials``), and no other
/// variable of the first shell may take their place.
package enum DaemonEnvironment {
    /// The variables that say who the user is, where programs and the daemon's files are, and in which language and time
    /// zone messages are.
    private static let names: Set<String> = [
        "HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    ]

    /// Whether the daemon keeps a variable.
    package static func keeps(_ name: String) -> Bool {
        names.contains(name) || name.hasPrefix("LC_") || name.hasPrefix("YONDER_")
    }

    /// The variables of an environment that the daemon keeps.
    package static func of(_ environment: [String: String]) -> [String: String] {
        environment.filter { keeps($0.key) }
    }
}
