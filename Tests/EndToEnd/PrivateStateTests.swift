import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// Where the daemon's files lie, and who else could read or write them.
    @Suite struct PrivateState {
        @Test("SOCKET-2: a directory or a file that YONDER_SOCKET names is not removed")
        func socketInTheWay() async throws {
            try await Installation.run { yonder in
                let place = try yonder.directory.makeDirectory("precious").string
                try Data("text".utf8).write(to: URL(fileURLWithPath: place + "/file"))
                for path in [place, place + "/file"] {
                    let outcome = try await yonder.with(["YONDER_SOCKET": path])
                        .yonder("mount", yonder.source.string, yonder.mount.string, seconds: 30)
                    #expect(outcome.status == 1, "\(outcome.errors)")
                    #expect(outcome.errors.contains("YONDER_SOCKET"), "\(outcome.errors)")
                    #expect(FileManager.default.contents(atPath: place + "/file") == Data("text".utf8))
                }
                // A daemon that is started by hand finds the same.
                let daemon = try await Command(
                    [Installation.program + "d"], environment: yonder.with(["YONDER_SOCKET": place]).environment,
                    seconds: 10
                ).run()
                #expect(daemon.status == 1, "\(daemon.errors)")
                #expect(FileManager.default.contents(atPath: place + "/file") == Data("text".utf8))
            }
        }

        @Test("SOCKET-5: a command with another socket says that a daemon uses the state directory, and its socket")
        func otherSocket() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let other = yonder.with(["YONDER_SOCKET": yonder.directory["other"].string])
                let refused = try await other.yonder(
                    "mount", yonder.source.string, yonder.directory["place"].string, seconds: 30)
                #expect(refused.status == 69, "\(refused.errors)")
                #expect(refused.errors.contains("another daemon uses this state directory"), "\(refused.errors)")
                #expect(refused.errors.contains("'\(yonder.directory["socket"].string)'"), "\(refused.errors)")
                for word in ["status", "domains"] {
                    let outcome = try await other.yonder(word)
                    #expect(outcome.status == 69, "\(outcome.errors)")
                    #expect(outcome.errors.contains("another daemon uses this state directory"), "\(outcome.errors)")
                }
                let doctor = try await other.yonder("doctor")
                #expect(doctor.status == 1, "\(doctor.output)")
                #expect(doctor.output.contains("another daemon uses this state directory"), "\(doctor.output)")
                #expect(!doctor.output.contains("none runs"), "\(doctor.output)")
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
            }
        }

        @Test(
            "ACCESS-1: no daemon starts on a directory that others can write, and the command says what to do",
            arguments: ["state", "config", "config/credentials", "run"])
        func laxDirectories(name: String) async throws {
            try await Installation.run { installation in
                let directory = installation.directory
                for name in ["state", "config", "run"] { _ = try directory.makeDirectory(name) }
                let yonder = installation.with([
                    "YONDER_CONFIG": directory["config/config.toml"].string,
                    "YONDER_SOCKET": directory["run/socket"].string,
                ])
                let place = try directory.makeDirectory(name).string
                #expect(try await Command.run("chmod", "777", place).status == 0)
                let mount = ["mount", yonder.source.string, yonder.mount.string]
                let outcome = try await yonder.yonder(mount[0], mount[1], mount[2], seconds: 30)
                #expect(outcome.status == 77, "\(outcome.status) \(outcome.errors)")
                #expect(outcome.errors.contains(place) && outcome.errors.contains("chmod"), "\(outcome.errors)")
                let daemon = try await Command(
                    [Installation.program + "d"], environment: yonder.environment, seconds: 10
                ).run()
                #expect(daemon.status == 77, "\(daemon.status) \(daemon.errors)")
                #expect(try await Command.run("find", directory["state"].string, "-mindepth", "1").output == "")
                #expect(try await Command.run("chmod", "go-w", place).status == 0)
                try await yonder.yonder(mount[0], mount[1], mount[2], seconds: 30).expectSuccess()
                #expect(try await Command.run("stat", "-c", "%a", directory["state"].string).line == "700")
                _ = try await yonder.yonder("shutdown")
            }
        }

        @Test("ACCESS-1: the set-up for debugging a mount works with umask 002, as CONTRIBUTING.md has it")
        func documentedSetUp() async throws {
            try await Installation.run { installation async throws in
                let root = FilePath(#filePath).removingLastComponent().appending("../..")
                let guide = try String(contentsOfFile: root.appending("CONTRIBUTING.md").string, encoding: .utf8)
                let section = try #require(guide.components(separatedBy: "## Debugging a mount\n").dropFirst().first)
                let lines = section.split(separator: "\n").drop(while: { !$0.hasPrefix("    ") })
                let block = lines.prefix(while: { $0.hasPrefix("    ") }).joined(separator: "\n")
                let programs = FilePath(Installation.program).removingLastComponent().string
                let commands = block.replacingOccurrences(of: "/tmp/try", with: installation.directory["try"].string)
                    .replacingOccurrences(of: "$PWD/.build/debug", with: programs)
                    .replacingOccurrences(of: " --foreground", with: "")
                try #require(commands.contains("yonder mount"))
                try await Command.shell(
                    "set -e; umask 002; trap 'yonder shutdown' EXIT\n" + commands, seconds: 40
                ).expectSuccess()
            }
        }

        @Test(
            "ACCESS-1: nor on a state directory of another user",
            .enabled("only root can make one") { FUSEAvailability.isRoot })
        func anotherUsersState() async throws {
            try await Installation.run { yonder in
                let state = try yonder.directory.makeDirectory("state").string
                #expect(try await Command.run("chown", "65534", state).status == 0)
                try await yonder.yonder("mount", yonder.source.string, yonder.mount.string, seconds: 30)
                    .expectFailure(77, saying: "65534")
                #expect(try await Command.run("find", state, "-mindepth", "1").output == "")
            }
        }

        @Test("a socket and a log that may not be opened are not reported as missing", .ordinaryUser)
        func deniedAccess() async throws {
            try await OrdinaryUser.run { user in
                let bind = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
                let status = try await user.shell(
                    """
                    python3 -c '\(bind)' "$YONDER_SOCKET" && chmod 0 "$YONDER_SOCKET" && yonder status
                    """)
                status.expectFailure(77, saying: "Permission denied")
                #expect(!status.errors.contains("no daemon answers"), "\(status.errors)")
                let log = try await user.shell(
                    """
                    mkdir "$YONDER_STATE_DIR" && chmod 0 "$YONDER_STATE_DIR" && yonder log
                    ended=$?; chmod 700 "$YONDER_STATE_DIR"; exit $ended
                    """)
                log.expectFailure(77, saying: "Permission denied")
                #expect(!log.errors.contains("there is no log"), "\(log.errors)")
            }
        }

        @Test(
            "ACCESS-1: nor on a state directory that its user may not enter", .ordinaryUser,
            arguments: ["closed", "closed/state"])
        func closedState(state: String) async throws {
            try await OrdinaryUser.run { user in
                let outcome = try await user.shell(
                    """
                    mkdir "$HOME/closed" && chmod 0 "$HOME/closed" && export YONDER_STATE_DIR="$HOME/\(state)" || exit
                    yonder mount "$SOURCE" "$MOUNT"; mounted=$?
                    '\(Installation.program)d'; served=$?
                    chmod 700 "$HOME/closed"; echo $mounted $served; ls -A "$HOME/closed"
                    """)
                #expect(outcome.output == "77 77\n", "\(outcome)")
                #expect(outcome.errors.contains("Permission denied"), "\(outcome.errors)")
            }
        }

        @Test(
            "ACCESS-1: nor on a state directory that is a file or below one, or that cannot be made",
            arguments: ["FILE", "FILE/below", "/proc/nope"])
        func unmadeState(state: String) async throws {
            try await Installation.run { yonder in
                let file = yonder.directory["file"].string
                try Data("text".utf8).write(to: URL(fileURLWithPath: file))
                let place = state.replacingOccurrences(of: "FILE", with: file)
                let other = yonder.with(["YONDER_STATE_DIR": place])
                let commands = [
                    ["mount", yonder.source.string, yonder.mount.string], ["check", "mount"], ["remove", "mount"],
                ]
                for words in commands {
                    let outcome = try await other.yonder(words: words)
                    #expect(outcome.status == 77, "\(outcome.status) \(outcome.errors)")
                    #expect(outcome.errors.contains(place), "\(outcome.errors)")
                }
                #expect(FileManager.default.contents(atPath: file) == Data("text".utf8))
            }
        }

        @Test("ACCESS-2: credentials that cannot be put on the disk are an error, and those of before stay")
        func durableCredentials() async throws {
            // A mount whose fsync waits for the remote, which is paused, is a disk that does not answer.
            try await Installation.mounted(options: ["--fsync", "remote"]) { yonder async throws in
                let store = CredentialStore(in: yonder.mount.appending("credentials"))
                let (first, second) = (
                    GivenCredentials(secrets: ["password": "one"]), GivenCredentials(secrets: ["password": "two"])
                )
                try await Task.detached { try store.keep(first, of: "name") }.value
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                await #expect(throws: Errno.noRouteToHost) {
                    try await Task.detached { try store.keep(second, of: "name") }.value
                }
                #expect(await Task.detached { store.credentials(of: "name") }.value == first)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await Task.detached { try store.keep(second, of: "name") }.value
                #expect(await Task.detached { store.credentials(of: "name") }.value == second)
                let kept = try await Command.shell("ls -A \"$1\"; stat -c %a \"$1/name\"", yonder["credentials"])
                #expect(kept.output == "name\n600\n", "\(kept.output)")
                // What was answered is there, not only on its way.
                #expect(yonder.sourceText("credentials/name")?.contains("two") == true)
            }
        }

        @Test(
            "ACCESS-3: the kernel makes no core dump of the daemon, and keeps its memory and environment even from its user",
            .enabled("only root can play another user") { FUSEAvailability.isRoot })
        func isNotDumpable() async throws {
            try await Installation.run { yonder in
                let home = yonder.directory.path.string
                #expect(try await Command.run("chown", "-R", "65534", home).status == 0)
                let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
                let other = try await BackgroundProgram(user + ["sleep", "60"])
                defer { other.kill() }
                let daemon = try await BackgroundProgram(
                    user + [Installation.program + "d"], environment: yonder.with(["HOME": home]).environment)
                defer { daemon.kill() }
                let socket = yonder.directory["socket"].string
                try #require(await eventually { FileManager.default.fileExists(atPath: socket) })
                // The kernel gives the files of what it may not dump to root: proc(5), PR_SET_DUMPABLE.
                for (program, owner) in [(other, "65534"), (daemon, "0")] {
                    let environ = "/proc/\(program.processIdentifier)/environ"
                    #expect(
                        try await eventually { try await Command.run("stat", "-c", "%u", environ).line == owner })
                    #expect(try await Command(user + ["cat", environ]).run().status == (owner == "0" ? 1 : 0))
                }
            }
        }

        @Test(
            "ACCESS-3: an ordinary user's daemon works with its /proc entries closed to that user",
            .ordinaryUser)
        func closedToTheUser() async throws {
            try await OrdinaryUser.run { user in
                #expect(try await user.shell("yonder mount \"$SOURCE\" \"$MOUNT\"").status == 0)
                let daemon = try #require(user.yonder.daemon)
                let peek = try await user.shell("cat /proc/\(daemon)/environ || ls /proc/\(daemon)/fd")
                #expect(peek.status != 0 && peek.output == "", "\(peek.output)")
                let used = try await user.shell(
                    """
                    cd "$MOUNT" && echo text > file && mkdir dir && mv file dir/file && cat dir/file && setfattr -n user.a -v b dir
                    yonder wait --timeout 20 && cat "$SOURCE/dir/file"
                    tail -f dir/file > /dev/null & holder=$!
                    until yonder why dir/file | grep -q tail; do :; done
                    yonder evict dir/file; kill $holder
                    """)
                #expect(used.output == "text\ntext\n", "\(used.output) \(used.errors)")
                #expect(used.errors.contains("tail"), "the holder is not named: \(used.errors)")
            }
        }
    }
}
