/// The environment variables of the daemon. The daemon outlives the shell that starts it and serves the mounts of
/// other shells. Credentials, certificates and proxies therefore come from the shell that mounts a domain
/// (``GivenCredentials``).
package enum DaemonEnvironment {
    /// Variables for the user, the paths of programs and of the daemon's files, the system bus, language and time zone.
    private static let names: Set<String> = [
        "DBUS_SYSTEM_BUS_ADDRESS", "HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ",
        "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
        "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    ]

    package static func keeps(_ name: String) -> Bool {
        names.contains(name) || name.hasPrefix("LC_") || name.hasPrefix("YONDER_")
    }

    package static func of(_ environment: [String: String]) -> [String: String] {
        environment.filter { keeps($0.key) }
    }
}
