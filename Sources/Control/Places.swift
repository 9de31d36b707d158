import Syscalls
import SystemPackage

/// The paths of the daemon's files, from the environment.
package struct Places: Hashable, Sendable {
    /// Contains the domains, the daemon's log and its lock.
    package var stateDirectory: String
    package var socket: String
    package var configuration: String
    /// Whether the environment names the socket.
    private let isSocketGiven: Bool

    /// - Parameter environment: that of the process, or of a test, without ``relativePaths(in:)``. Relative paths in variables of XDG
    ///   are ignored. (XDG Base Directory Specification)
    package init(environment: [String: String]) {
        func given(_ name: String) -> String? {
            guard let path = environment[name], !path.isEmpty else { return nil }
            return path
        }
        func base(_ name: String) -> String? { given(name).flatMap { Self.isAbsolute($0) ? $0 : nil } }
        let home = base("HOME") ?? Machine.homeDirectory ?? "/"
        stateDirectory =
            given("YONDER_STATE_DIR") ?? (base("XDG_STATE_HOME") ?? home + "/.local/state") + "/yonder"
        isSocketGiven = given("YONDER_SOCKET") != nil
        socket =
            given("YONDER_SOCKET") ?? base("XDG_RUNTIME_DIR").map { $0 + "/yonder/control.sock" }
            ?? Self.socket(in: stateDirectory)
        configuration =
            given("YONDER_CONFIG") ?? (base("XDG_CONFIG_HOME") ?? home + "/.config") + "/yonder/config.toml"
    }

    /// The variables of Yonder that have a relative path, with these paths. A command makes them absolute: the daemon has another
    /// working directory.
    package static func relativePaths(in environment: [String: String]) -> [String: String] {
        environment.filter { name, path in
            ["YONDER_STATE_DIR", "YONDER_SOCKET", "YONDER_CONFIG"].contains(name) && !path.isEmpty && !isAbsolute(path)
        }
    }

    private static func isAbsolute(_ path: String) -> Bool { path.utf8.first == UInt8(ascii: "/") }

    private static func socket(in stateDirectory: String) -> String { stateDirectory + "/control.sock" }

    /// The same, with the socket of the daemon that runs: one that the system or another session has started may have another
    /// XDG_RUNTIME_DIR, or none. A socket in the state directory comes first, because systemd listens on the other one for a daemon
    /// that does not run.
    package var ofRunningDaemon: Places {
        if isSocketGiven { return self }
        func accepts(_ path: String) -> Bool { FilePath(path).acceptsConnections }
        let inState = Self.socket(in: stateDirectory)
        var found = socket
        if inState != socket, accepts(inState) {
            found = inState
        } else if let used = otherSocket, !accepts(socket), accepts(used) {
            found = used
        }
        var places = self
        places.socket = found
        return places
    }

    /// The last text of the configuration file that had no mistake.
    package var configurationCopy: String { stateDirectory + "/configuration.last" }

    /// Has the path of the socket of the daemon that was started last.
    package var socketNote: String { stateDirectory + "/control.path" }

    /// The socket of the daemon that was started last on this state directory; nil if it is ``socket``.
    package var otherSocket: String? {
        let used = (try? FilePath(socketNote).contents()).flatMap { String(validating: $0, as: UTF8.self) }
        return used == socket ? nil : used
    }

    /// The directory of stored credentials, one file per domain.
    package var credentials: String { Self.directory(of: configuration) + "/credentials" }

    static func directory(of path: String) -> String {
        let directory = FilePath(path).removingLastComponent().string
        return directory.isEmpty ? "." : directory
    }

    /// The directory of the domains, one directory per domain, under its name.
    package var domains: String { stateDirectory + "/domains" }

    /// The log of a daemon in the background.
    package var log: String { stateDirectory + "/yonderd.log" }

    package var crashes: String { stateDirectory + "/crashes" }

    /// Tells of a daemon that crashes in a loop. The keeper writes it.
    package var crashLoop: String { stateDirectory + "/crash-loop" }

    /// The value of SWIFT_BACKTRACE for the daemon: crash reports in files. Nil for a path that the format cannot hold.
    package var backtraceSettings: String? {
        guard !crashes.contains(",") else { return nil }
        return "enable=yes,interactive=no,color=no,symbolicate=fast,warnings=suppressed,output-to=\(crashes)"
    }

    /// The maximum length of the path of a Unix socket in bytes.
    package static let longestSocketPath = 107
}
