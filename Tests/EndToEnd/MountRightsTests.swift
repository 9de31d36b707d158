import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Who may use a mount, and what files in it may do.
    @Suite struct MountRightsTests {
        private static var isRoot: Bool { FUSEAvailability.isRoot }

        /// Runs a line of shell as user 65534, in the mount.
        private func asNobody(_ yonder: Installation, _ line: String) async throws -> Command.Outcome {
            try await Command(
                [
                    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", "bash", "-c",
                    "cd \"$1\" && " + line, "bash", yonder.mount.string,
                ]
            ).run()
        }

        private func mountOptions(_ yonder: Installation) async throws -> [Substring] {
            let line = try await Command.shell("grep -F \" $1 \" /proc/mounts", yonder.mount.string).line
            return line.split(separator: " ").dropFirst(3).first?.split(separator: ",") ?? []
        }

        @Test(
            "ACCESS-4: a mount by root is its owner's alone, unless --allow-other is said; then modes and owners decide",
            .enabled("only root can play another user") { isRoot })
        func ownersAlone() async throws {
            try await Installation.run { yonder in
                try yonder.write("open", to: "open")
                try yonder.write("closed", to: "closed")
                #expect(try await Command.run("chmod", "600", yonder.source.appending("closed").string).status == 0)
                try await yonder.mountSource()
                let refused = try await asNobody(yonder, "cat open")
                #expect(refused.status != 0 && refused.errors.contains("Permission denied"), "\(refused.errors)")
                #expect(try await mountOptions(yonder).contains("default_permissions"))
                try await yonder.yonder("mount", "mount", "--allow-other").expectFailure(saying: "yonder unmount mount")
                #expect(try await asNobody(yonder, "cat open").status != 0)

                for options in [["--allow-other"], []] {
                    #expect(try await yonder.yonder("unmount", "mount").status == 0)
                    try await Command(
                        [Installation.program, "mount", "mount"] + options, environment: yonder.environment
                    ).run().expectSuccess()
                    #expect(try await asNobody(yonder, "cat open").output == "open")
                    let closed = try await asNobody(yonder, "cat closed")
                    #expect(closed.status != 0 && closed.errors.contains("Permission denied"), "\(closed.errors)")
                    #expect(try await asNobody(yonder, "touch new").status != 0)
                    #expect(try await mountOptions(yonder).contains("default_permissions"))
                }
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount", "--no-allow-other").status == 0)
                #expect(try await asNobody(yonder, "cat open").status != 0)
            }
        }

        @Test(
            "ACCESS-9: --uid, --gid and --umask say what the remote does not, also after a restart",
            .enabled("only root can play another user") { isRoot },
            .enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed"))
        func givenOwners() async throws {
            let server = try await DAVServer.start(.apache)
            try await withCleanUp({ await server.stop() }) { try await checkGivenOwners(server) }
        }

        private func checkGivenOwners(_ server: DAVServer) async throws {
            let folder = server.root.appending("d").string
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try Data("far".utf8).write(to: URL(fileURLWithPath: folder + "/file"))
            try await Installation.run { yonder in
                func modes(_ words: String...) async throws -> String {
                    let outcome = try await Command(
                        [Installation.program, "mount"] + (words.isEmpty ? ["cloud"] : words),
                        environment: yonder.environment
                    ).run()
                    try #require(outcome.status == 0, "\(outcome.errors)")
                    return try await Command.shell(
                        "ls \"$1\" >/dev/null; stat -c '%u:%g %a' \"$1\" \"$1\"/file", yonder["d"]
                    )
                    .output
                }
                let place = [server.source, yonder.mount.string, "--name", "cloud"]
                #expect(
                    try await modes(
                        place[0], place[1], place[2], place[3], "--uid", "nobody", "--gid", "65534", "--umask", "027",
                        "--allow-other") == "65534:65534 750\n65534:65534 640\n")
                // They decide who may do what, and what is made here has its maker's.
                #expect(
                    try await asNobody(yonder, "cat d/file; echo mine > d/mine; stat -c %u d/mine").output
                        == "far65534\n")
                #expect(
                    try await Command.shell("umask 077; echo x > \"$1\"; stat -c '%u %a' \"$1\"", yonder["d/root"]).line
                        == "0 600")
                try await yonder.yonder("set", "cloud", "umask=none").expectFailure(saying: "yonder unmount cloud")
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(try await modes() == "65534:65534 750\n65534:65534 640\n")
                #expect(try await yonder.yonder("unmount", "cloud").status == 0)
                #expect(try await yonder.yonder("set", "cloud", "umask=none", "gid=none", "uid=1").status == 0)
                #expect(try await modes() == "1:0 755\n1:0 644\n")
            }
        }

        @Test(
            "ACCESS-4: an ordinary user's mount is not even root's; --allow-other, --dev and --suid are refused with the reason",
            .ordinaryUser)
        func ordinaryUser() async throws {
            try await OrdinaryUser.run { user in
                for (flag, words) in [
                    ("--allow-other", "user_allow_other"), ("--dev", "root"), ("--suid", "root"),
                ] {
                    if flag == "--allow-other", Self.fuseConfigurationAllowsOthers { continue }
                    let refused = try await user.shell("yonder mount \"$SOURCE\" \"$MOUNT\" \(flag)")
                    #expect(refused.status == 77 && refused.errors.contains(words), "\(refused.errors)")
                    #expect(!FileManager.default.fileExists(atPath: user.yonder.mount.string))
                    #expect(try await user.shell("yonder domains").output == "")
                }
                let mounted = try await user.shell("yonder mount \"$SOURCE\" \"$MOUNT\" && echo text > \"$MOUNT/file\"")
                #expect(mounted.status == 0, "\(mounted.errors)")
                let root = try await Command.run("cat", user.yonder["file"])
                #expect(root.status != 0 && root.errors.contains("Permission denied"), "\(root.output)\(root.errors)")
            }
        }

        private static var fuseConfigurationAllowsOthers: Bool {
            let text = (try? String(contentsOfFile: "/etc/fuse.conf", encoding: .utf8)) ?? ""
            return text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
                .contains("user_allow_other")
        }

        @Test(
            "ACCESS-5: device files work with --dev alone, set-user-ID programs with --suid alone, and both are kept",
            .enabled("only root can do that") { isRoot })
        func devicesAndSetID() async throws {
            try await Installation.mounted(options: ["--allow-other"]) { yonder async throws in
                try await yonder.shell(
                    "mknod null c 1 3 && chmod 666 null && cp \"$(command -v id)\" id && chmod 4755 id")
                let (write, run) = ("echo text > null", "./id -u")
                #expect(try await asNobody(yonder, write).status != 0)
                #expect(try await asNobody(yonder, run).line == "65534")
                for (options, device, program) in [
                    (["--dev"], true, false), (["--no-dev", "--suid"], false, true), ([], false, true),
                    (["--dev"], true, true), (["--no-dev", "--no-suid"], false, false),
                ] {
                    #expect(try await yonder.yonder("unmount", "mount").status == 0)
                    try await Command(
                        [Installation.program, "mount", "mount"] + options, environment: yonder.environment
                    ).run().expectSuccess()
                    let written = try await asNobody(yonder, write)
                    #expect((written.status == 0) == device, "\(options): \(written.errors)")
                    #expect(try await asNobody(yonder, run).line == (program ? "0" : "65534"), "\(options)")
                }
                for flag in ["--dev", "--suid"] {
                    let refused = try await yonder.yonder("mount", "mount", flag)
                    #expect(refused.status == 1 && refused.errors.contains(flag), "\(refused.errors)")
                }
            }
        }
    }
}
