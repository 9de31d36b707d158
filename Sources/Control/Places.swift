import SystemPackage

/// Where things lie, as the environment says.
package struct Places: Hashable, Sendable {
    /// Holds the domains, the daemon's log and its lock.
    package var stateDirectory: String
    package var socket: String
    package var configuration: String

    /// - Parameter environment: the process's, or a test's.
    package init(environment: [String: String]) {
        func value(_ name: String) -> String? {
            guard let text = environment[name], !text.isEmpty else { return nil }
            return text
        }
        let home = value("HOME") ?? "/root"
        stateDirectory =
            value("YONDER_STATE_DIR") ?? (value("XDG_STATE_HOME") ?? home + "/.local/state") + "/yonder"
        socket =
            value("YONDER_SOCKET") ?? value("XDG_RUNTIME_DIR").map { $0 + "/yonder/control.sock" }
            ?? stateDirectory + "/control.sock"
        configuration =
            value("YONDER_CONFIG") ?? (value("XDG_CONFIG_HOME") ?? home + "/.config") + "/yonder/config.toml"
    }

    /// Holds the credentials that the daemon keeps, a file for each domain.
    package var credentials: String { Self.directory(of: configuration) + "/credentials" }

    /// The directory that a path lies in.
    static func directory(of path: String) -> String {
        let directory = FilePath(path).removingLastComponent().string
        return directory.isEmpty ? "." : directory
    }

    /// Where the daemon's log goes when it runs in the background.
    package var log: String { stateDirectory + "/yonderd.log" }

    /// The longest path that a Unix socket can have, in bytes.
    package static let longestSocketPath = 107
}
