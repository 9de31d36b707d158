import Foundation
import SystemPackage

/// A real SSH server on loopback with keys, configuration and a folder of its own, for one test, and an `ssh` that knows
/// nothing else: it reads neither the user's configuration nor the machine's.
package struct SSHServer: Sendable {
    package enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        /// OpenSSH, as the user that runs the test.
        case openSSH
        /// OpenSSH, and the login of user 65534, which root alone can let in.
        case ordinaryUser
        /// AsyncSSH with the extensions that it has.
        case asyncSSH
        /// AsyncSSH without any extension.
        case plain

        package var description: String { rawValue }

        /// What starts it; nil where it is not installed.
        package var program: String? {
            switch self {
            case .openSSH: Self.executable("/usr/sbin/sshd")
            case .ordinaryUser: FUSEAvailability.isRoot ? Self.executable("/usr/sbin/sshd") : nil
            case .asyncSSH, .plain:
                Self.executable(
                    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
                        .deletingLastPathComponent().appendingPathComponent(".build/sftp/bin/python3").path)
            }
        }

        private static func executable(_ path: String) -> String? {
            FileManager.default.isExecutableFile(atPath: path) ? path : nil
        }

        package static var installed: [Kind] { allCases.filter { $0.program != nil } }
    }

    package let kind: Kind
    package let directory: TemporaryDirectory
    /// The folder that is mounted; its name has a space.
    package let root: FilePath
    package let port: Int
    private let arguments: [String]
    private let program: BackgroundProgram

    /// Starts a server on a free port. Returns when it listens.
    ///
    /// - Parameters:
    ///   - subsystem: the command line of OpenSSH's SFTP server.
    ///   - hasBareListings: whether listings of AsyncSSH have names without attributes.
    package static func start(
        _ kind: Kind = .openSSH, subsystem: String = "internal-sftp", hasBareListings: Bool = false
    ) async throws -> SSHServer {
        guard let path = kind.program else { throw TestFailure("\(kind) is not installed") }
        if FUSEAvailability.isRoot {
            // Debian's init script makes it; without it sshd does not start as root.
            try FileManager.default.createDirectory(
                atPath: "/run/sshd", withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        }
        let directory = try TemporaryDirectory()
        do {
            let root = try directory.makeDirectory("a folder")
            try await run(
                """
                cd "$1" && for key in host other user; do ssh-keygen -q -t ed25519 -N '' -f $key-key; done &&
                cp user-key.pub authorized && { printf 'server '; cat host-key.pub; } > known
                """, directory.path.string)
            if kind == .ordinaryUser { try await run("chown -R 65534:65534 \"$1\"", directory.path.string) }
            for _ in 0..<5 {
                let port = Int.random(in: 20_000...32_000)
                // Another test's server would be taken for this one.
                guard await !BackgroundProgram.isListenedTo(port) else { continue }
                // A program that closes the descriptors that it inherits, as sshd does, counts as ended: `timeout` keeps them.
                let arguments =
                    ["timeout", "900"] + (try arguments(kind, path, subsystem, port, in: directory))
                    + (hasBareListings ? ["--bare"] : [])
                let program = try await BackgroundProgram(arguments)
                guard await program.answers(on: port) else { continue }
                let server = SSHServer(
                    kind: kind, directory: directory, root: root, port: port, arguments: arguments, program: program)
                try server.connect(to: port)
                return server
            }
            throw TestFailure("\(kind) does not start: \(log(in: directory))")
        } catch {
            directory.remove()
            throw error
        }
    }

    private static func arguments(
        _ kind: Kind, _ path: String, _ subsystem: String, _ port: Int, in directory: TemporaryDirectory
    ) throws -> [String] {
        guard kind == .openSSH || kind == .ordinaryUser else {
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("Programs/sftp_server.py").path
            return [path, script, directory.path.string, String(port)] + (kind == .plain ? ["--plain"] : [])
        }
        let configuration = try directory.makeFile(
            "sshd_config",
            """
            ListenAddress 127.0.0.1
            Port \(port)
            HostKey \(directory["host-key"])
            AuthorizedKeysFile \(directory["authorized"])
            PidFile none
            StrictModes no
            UsePAM \(FUSEAvailability.isRoot ? "no" : "yes")
            PasswordAuthentication no
            KbdInteractiveAuthentication no
            PermitRootLogin yes
            MaxStartups 100
            Subsystem sftp \(subsystem)

            """.utf8)
        return [path, "-D", "-f", configuration.string, "-E", directory["log"].string]
    }

    private var user: String { kind == .ordinaryUser ? "nobody" : NSUserName() }

    /// As a source, with a host that only ``environment`` knows.
    package var source: String { "sftp://server" + root.string }

    /// What makes Yonder use the `ssh` of this server.
    package var environment: [String: String] { ["YONDER_SSH": directory["ssh"].string] }

    /// Lets `ssh` connect to a port from now on: the server's own, or that of a relay.
    package func connect(to port: Int) throws {
        let configuration = try directory.makeFile(
            "ssh_config",
            """
            Host server
              HostName 127.0.0.1
              HostKeyAlias server
              Port \(port)
              User \(user)
              IdentityFile \(directory["user-key"])
              IdentitiesOnly yes
              IdentityAgent none
              UserKnownHostsFile \(directory["known"])
              GlobalKnownHostsFile /dev/null
              StrictHostKeyChecking yes

            """.utf8)
        // The first value of an option is the one that counts: a dead line is noticed after seconds instead of half a minute.
        let ssh = try directory.makeFile(
            "ssh",
            "#!/bin/sh\nexec ssh -F '\(configuration)' -o ServerAliveInterval=2 -o ConnectTimeout=3 \"$@\"\n".utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: ssh.string)
    }

    // MARK: - Trouble

    /// Ends the server and its sessions; all files stay.
    package func halt() async {
        try? await signal("KILL", isForServer: true)
        program.kill()
        _ = await program.ends(within: .seconds(15))
    }

    /// The server as it was, started again.
    package func again() async throws -> SSHServer {
        let program = try await BackgroundProgram(arguments)
        guard await program.answers(on: port) else { throw TestFailure("it does not start again") }
        return SSHServer(
            kind: kind, directory: directory, root: root, port: port, arguments: arguments, program: program)
    }

    /// Ends the server and removes its folder.
    package func stop() async {
        await halt()
        directory.remove()
    }

    /// Sends a signal to each session of OpenSSH's server: with STOP, they are silent until CONT.
    package func signalSessions(_ signal: String) async throws {
        try await self.signal(signal, isForServer: false)
    }

    private func signal(_ signal: String, isForServer: Bool) async throws {
        try await Self.run(
            """
            below() { for child in $(cat "/proc/$1/task/$1/children"); do echo "$child"; below "$child"; done; }
            { for server in $(cat "/proc/$1/task/$1/children"); do
                if [ "$3" = true ]; then kill -s STOP "$server"; fi
                # All of them first: those below one that has been killed are not found any more.
                for session in $(below "$server"); do kill -s "$2" "$session"; done
                if [ "$3" = true ]; then kill -s "$2" "$server"; fi
            done; } 2> /dev/null; true
            """, String(program.processIdentifier), signal, String(isForServer))
    }

    /// Gives the server another host key, or its own again, at its next start.
    package func exchangeHostKeys() async throws {
        try await Self.run(
            "cd \"$1\" && mv host-key key && mv other-key host-key && mv key other-key", directory.path.string)
    }

    /// Lets the user's key in, or not.
    package func authorize(_ isAuthorized: Bool) async throws {
        try await Self.run(
            "cd \"$1\" && cat \(isAuthorized ? "user-key.pub" : "other-key.pub") > authorized", directory.path.string)
    }

    private static func run(_ line: String, _ words: String...) async throws {
        let outcome = try await Command(["sh", "-c", line, "sh"] + words).run()
        guard outcome.status == 0 else { throw TestFailure(outcome.errors) }
    }

    private static func log(in directory: TemporaryDirectory) -> String {
        (try? String(contentsOfFile: directory["log"].string, encoding: .utf8)) ?? ""
    }
}
