import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What a daemon leaves that was killed.
    @Suite struct DeadMounts {
        private func isInTable(_ path: String) throws -> Bool {
            try String(contentsOfFile: "/proc/self/mounts", encoding: .utf8).contains(" \(path) ")
        }

        /// Mounts, leaves a change that is not sent, and kills the daemon.
        private func withDeadMount(_ test: (Installation) async throws -> Void) async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await Command.run("ls", yonder.mount.string).output == "file\n")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo here > new")
                try await yonder.killDaemon()
                #expect(try await Command.run("ls", yonder.mount.string).errors.contains("not connected"))
                try await test(yonder)
                #expect(try !isInTable(yonder.mount.string))
                #expect(try await Command.run("ls", "-A", yonder.mount.string).output == "")
            }
        }

        @Test("MOUNT-1: a mount that was detached while a program has a file open is mounted again")
        func detached() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let program = try await BackgroundProgram(
                    "sh", "-c", "exec 9>>\"$1\"; printf y >&9; exec sleep 100", "sh", yonder["file"])
                defer { program.kill() }
                #expect(try await eventually { try await yonder.shell("cat file") == "xy" })
                #expect(try await Command.run("umount", "-l", yonder.mount.string).status == 0)
                #expect(try !isInTable(yonder.mount.string))
                try await yonder.yonder("mount", "mount").expectSuccess()
                #expect(try isInTable(yonder.mount.string))
                try await yonder.shell("echo z > new")
                try await yonder.expectSent()
                #expect(yonder.sourceText("new") == "z\n" && yonder.sourceText("file") == "xy")
            }
        }

        @Test(
            "MOUNT-2: a mount that another one covers stays, also over a crash, and is unmounted when it can be",
            .enabled(if: FUSEAvailability.isRoot && canContinueMounts, "only root mounts on it, on Linux 6.9 or newer"))
        func covered() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let program = try await BackgroundProgram("tail", "-f", yonder["file"])
                defer { program.kill() }
                try await yonder.shell("cat file")
                #expect(try await Command.run("mount", "-t", "tmpfs", "cover", yonder.mount.string).status == 0)
                func expectRefusals() async throws {
                    for command in ["mount", "unmount", "remove"] {
                        let refused = try await yonder.yonder(command, "mount")
                        #expect(refused.status == 1 && refused.errors.contains("another file system is mounted on it"))
                    }
                }
                try await expectRefusals()
                #expect(try await Command.run("kill", "-9", String(try #require(yonder.daemon))).status == 0)
                try await expectRefusals()
                #expect(try await Command.run("umount", yonder.mount.string).status == 0)
                #expect(try await yonder.shell("cat file") == "x")
                program.kill()
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try !isInTable(yonder.mount.string))
            }
        }

        @Test("MOUNT-3: yonder remove detaches the dead mount of a daemon that was killed, and keeps what was not sent")
        func remove() async throws {
            try await withDeadMount { yonder in
                let kept = yonder.directory["kept"].string
                try await yonder.yonder("remove", "mount", "--to", kept).expectSuccess()
                #expect(try await yonder.yonder("domains").output == "")
                #expect(try await Command.shell("cat \"$1\"/*/new \"$1\"/new 2> /dev/null", kept).output == "here\n")
            }
        }

        @Test("MOUNT-3: yonder unmount detaches it, by name and by a path in it", arguments: [true, false])
        func unmount(byName: Bool) async throws {
            try await withDeadMount { yonder in
                let unmounted = try await yonder.yonder("unmount", byName ? "mount" : yonder["some/where"])
                #expect(unmounted.status == 0, "\(unmounted.errors)")
                #expect(unmounted.output.contains("pending"), "\(unmounted.output)")
                #expect(!unmounted.output.contains("nothing is pending"), "\(unmounted.output)")
                let again = try await yonder.yonder("unmount", "mount")
                #expect(again.status == 69, "\(again.output)")
            }
        }

        @Test("MOUNT-3: yonder mount on another directory detaches it where it was") func mountElsewhere() async throws
        {
            try await withDeadMount { yonder in
                let other = yonder.directory["other"].string
                try await yonder.yonder("mount", yonder.source.string, other, "--name", "mount").expectSuccess()
                #expect(try await Command.run("cat", other + "/new").output == "here\n")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
            }
        }

        @Test("MOUNT-3: the name of a domain is not taken for a path in the mount that the command runs in")
        func namesBeforePaths() async throws {
            try await Installation.mounted(["other/file": "x"]) { yonder async throws in
                let directory = yonder.directory["second"].string
                let source = yonder.source.appending("other").string
                try await yonder.yonder("mount", source, directory, "--name", "other").expectSuccess()
                #expect(try await yonder.yonder("unmount", "other").status == 0)
                for command in ["unmount", "pause", "remove"] {
                    let outcome = try await yonder.run("cd \"$1\" && yonder $2 other", yonder.mount.string, command)
                    #expect(outcome.status == (command == "unmount" ? 69 : 0), "\(outcome.errors)")
                    #expect(try isInTable(yonder.mount.string), "\(command)")
                    #expect(try await yonder.status().connection == .online, "\(command)")
                }
                #expect(try await yonder.json([DomainSummary].self, "domains").map(\.name) == ["mount"])
            }
        }

        @Test("MOUNT-3: dead mounts that lie on each other go together, and a mount that is served stays")
        func stacked() async throws {
            try await withDeadMount { yonder in
                // Another daemon serves a domain of the same name, and is not this one's to unmount.
                try await Installation.mounted(["theirs": "theirs"]) { other async throws in
                    let moved = try await Command.run("mount", "--bind", other.mount.string, yonder.mount.string)
                    // Only where the kernel lets mounts lie on a dead one.
                    guard moved.status == 0 else { return }
                    let unmounted = try await yonder.yonder("unmount", "mount")
                    #expect(unmounted.status == 69, "\(unmounted.output)")
                    #expect(try await Command.run("cat", yonder["theirs"]).output == "theirs")
                    #expect(try await Command.run("umount", yonder.mount.string).status == 0)
                }
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
            }
        }
    }
}
