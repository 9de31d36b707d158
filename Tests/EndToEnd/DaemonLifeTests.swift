import Control
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// How mounts and the daemon come and go.
    @Suite struct DaemonLife {
        @Test("umount ends a mount as cleanly as unmount does") func umountEndsTheDomain() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                #expect(try await Command.run("umount", yonder.mount.string).status == 0)
                #expect(
                    try await eventually {
                        try await yonder.json([DomainSummary].self, "domains").first?.isMounted == false
                    })
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.info("").content == "materialized")
            }
        }

        @Test("CRASH-1: after SIGKILL the next mount takes away the dead one, and all is as it was")
        func survivesSIGKILL() async throws {
            try await Installation.run { yonder in
                for number in 0..<50 { try yonder.write("text \(number)", to: "dir/\(number)") }
                // Without holes, which are not transferred.
                try await yonder.expectDone(
                    "yes | head -c 64M > \"$1\"", yonder.source.appending("big").string)
                try await yonder.mountSource("--limit-down", "4M")
                let look = "cd \"$1\" && find . -printf '%i %p %s %T@\\n' | sort"
                let before = try await Command.shell(look, yonder.mount.string).output
                #expect(try await Command.shell("cat \"$1\"/dir/* > /dev/null", yonder.mount.string).status == 0)
                // In the middle of a transfer, which the limit keeps going.
                let reader = try await BackgroundProgram("cat", yonder["big"])
                defer { reader.kill() }
                #expect(try await eventually { try await !yonder.status().transfers.isEmpty })
                _ = try await yonder.killDaemonAndKeeper()
                #expect(await reader.ends())
                #expect(reader.status != 0)

                let status = try await yonder.yonder("status")
                #expect(status.status == 69)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.shell(look, yonder.mount.string).output == before)
                let big = try await yonder.info("big")
                #expect(big.content != "materialized")
                #expect(try await yonder.yonder("set", "mount", "limit-down=none").status == 0)
                let sums = "cd \"$1\" && sha256sum dir/* | sort"
                #expect(
                    try await Command.shell(sums, yonder.mount.string).output
                        == Command.shell(sums, yonder.source.string).output)
                #expect(
                    try await Command.run("cmp", yonder["big"], yonder.source.appending("big").string, seconds: 60)
                        .status
                        == 0)
                #expect(try await yonder.status().warnings == [])
            }
        }

        @Test("shutdown takes the mounts and the processes away; the next mount starts a daemon at once")
        func shutsDown() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                for _ in 0..<3 {
                    let processes = try [#require(yonder.daemon), #require(yonder.keeper)]
                    #expect(try await yonder.yonder("shutdown").status == 0)
                    for process in processes {
                        let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
                        #expect(status?.contains("State:\tZ") ?? true)
                    }
                    let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                    #expect(!table.contains(yonder.mount.string))
                    #expect(try await yonder.yonder("mount", "mount").status == 0)
                    #expect(try await Command.run("cat", yonder["file"]).output == "x")
                }
            }
        }

        @Test(
            "MOUNT-7: the next daemon mounts what was mounted; yonder unmount ends that, also of a domain that is not mounted"
        )
        func mountsAgain() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let other = yonder.directory["other"].string
                func mountOther() async throws {
                    try await yonder.yonder("mount", yonder.source.string, other, "--name", "other").expectSuccess()
                }
                func isMounted(_ name: String) async throws -> Bool {
                    try await yonder.json([DomainSummary].self, "domains").first { $0.name == name }?.isMounted == true
                }
                try await mountOther()
                #expect(try await yonder.yonder("unmount", "other").status == 0)
                #expect(try await yonder.yonder("shutdown").status == 0)
                // It starts the daemon.
                try await mountOther()
                #expect(try await eventually { try await isMounted("mount") })
                #expect(try await Command.run("cat", yonder["file"]).output == "x")

                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("shutdown").status == 0)
                try await yonder.yonder("mount", yonder.source.string, other + " 2", "--name", "third").expectSuccess()
                #expect(try await eventually { try await isMounted("other") })
                #expect(try await !isMounted("mount"))

                // Mounted again, it lies where the next command says, unless it is used.
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(try await yonder.yonder("mount", "third").status == 0)
                #expect(try await eventually { try await isMounted("other") })
                let source = yonder.source.string
                let reader = try FileDescriptor.open(other + "/file", .readOnly)
                let busy = try await yonder.yonder("mount", source, other + " 3", "--name", "other")
                #expect(busy.status == 1 && busy.errors.contains("unmount it first"), "\(busy.errors)")
                try reader.close()

                // A mount point that is not empty. An ordinary user may not write there (MOUNT-9).
                #expect(try await yonder.yonder("shutdown").status == 0)
                try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: other)
                try Data().write(to: URL(fileURLWithPath: other + "/in the way"))
                #expect(try await yonder.yonder("mount", "third").status == 0)
                #expect(try await yonder.yonder("unmount", "other").status == 69)
                try FileManager.default.removeItem(atPath: other + "/in the way")
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(try await yonder.yonder("mount", "third").status == 0)
                try await Task.sleep(for: .milliseconds(300))
                #expect(try await !isMounted("other"))
            }
        }

        @Test(
            "MOUNT-7: a mount stays where it is when one on another directory is refused, and comes back when one fails"
        )
        func refusedMove() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let (source, other) = (yonder.source.string, yonder.directory["other"].string)
                #expect(try await yonder.yonder("shutdown").status == 0)
                let third = yonder.directory["third"].string
                #expect(try await yonder.yonder("mount", source, third).status == 0)
                #expect(
                    try await eventually {
                        try await yonder.json([DomainSummary].self, "domains").allSatisfy(\.isMounted)
                    })
                // A working directory is no open file, and is lost with its mount.
                let program = try await BackgroundProgram(
                    "sh", "-c", "cd \"$1\" && exec sleep 100", "sh", yonder.mount.string)
                defer { program.kill() }
                let workingDirectory = "/proc/\(program.processIdentifier)/cwd"
                #expect(
                    try await eventually {
                        try await Command.run("readlink", workingDirectory).line.hasSuffix("/mount")
                    })
                try await Command.shell("mkdir \"$1\" && touch \"$1/in the way\"", other).expectSuccess()
                for (place, reason) in [
                    (other, "it is not empty"), (source + "/inside", "it lies in the source"),
                    (third, "'third' is mounted there"),
                ] {
                    let refused = try await yonder.yonder("mount", source, place, "--name", "mount")
                    #expect(refused.status == 1 && refused.errors.contains(reason), "\(refused.errors)")
                    #expect(try await Command.run("ls", workingDirectory + "/").output == "file\n", "\(place)")
                }
                program.kill()
                #expect(await program.ends())

                // What is below the mount is seen after its end.
                let long = yonder[String(repeating: "long", count: 64)]
                let failed = try await yonder.yonder("mount", source, long, "--name", "mount")
                #expect(failed.status == 1 && failed.errors.contains("cannot mount there"), "\(failed.errors)")
                #expect(try await yonder.shell("cat file") == "x")

                try await yonder.yonder("mount", source, other + " 2", "--name", "mount").expectSuccess()
                #expect(try await Command.run("cat", other + " 2/file").output == "x")
                #expect(try await Command.run("ls", "-A", yonder.mount.string).output == "")
            }
        }

        @Test("REMOVE-2: what a removal that was cut short has left is deleted while the daemon serves already")
        func deletesInTheBackground() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.yonder("shutdown").status == 0)
                let left = try yonder.directory.makeDirectory("state/removed/gone-\(UUID().uuidString)")
                let kept = try yonder.directory.makeDirectory("kept")
                try Data(kept.string.utf8).write(to: URL(fileURLWithPath: left.appending("kept").string))
                // The deletion reads this file first, and so waits for the end of the lease.
                let manifest = try FileDescriptor.open(
                    kept.appending("manifest.json"), .readWrite, options: [.create, .closeOnExec],
                    permissions: .ownerReadWrite)
                defer { try? manifest.close() }
                try manifest.takeWriteLease()
                try await yonder.yonder("mount", "mount", seconds: 30).expectSuccess()
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                #expect(FileManager.default.fileExists(atPath: left.string))
                manifest.giveUpLease()
                #expect(await eventually { !FileManager.default.fileExists(atPath: left.string) })
            }
        }

        @Test("a mount in use can be unmounted, and the directory is empty then") func unmountsWhileInUse() async throws
        {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                // The file is known to the mount before 'why' asks for it.
                #expect(try await Command.run("ls", yonder.mount.string).output == "file\n")
                let holder = try await BackgroundProgram("tail", "-f", yonder["file"])
                defer { holder.kill() }
                #expect(
                    try await eventually {
                        try await yonder.json(WhyReport.self, "why", yonder["file"]).lines.contains {
                            $0.contains("tail")
                        }
                    })
                let unmounted = try await yonder.yonder("unmount", "mount")
                #expect(unmounted.status == 0)
                #expect(unmounted.duration < .seconds(10))
                #expect(try await Command.run("ls", "-A", yonder.mount.string).output == "")
                holder.kill()
                #expect(await holder.ends())
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
            }
        }

        @Test(
            "MOUNT-2: what is written to a file that stays open over an unmount is taken in or kept apart",
            .enabled(if: FUSEAvailability.isRoot, "only root can pass writes through"))
        func openFileAfterTheUnmount() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let outcome = try await yonder.run(
                    """
                    exec 9>"$1"; printf xy >&9 && yonder unmount mount >/dev/null || exit 3
                    printf z >&9 || exit 4
                    yonder mount mount >/dev/null && yonder wait mount || exit 3
                    printf apart >&9 || exit 4
                    yonder signal --wait mount; yonder wait mount; cat "$1"; yonder evict "$1" && cat "$1"
                    """, yonder["file"])
                #expect(outcome.output == "xyzxyz", "\(outcome.errors)")
                #expect(yonder.sourceText("file") == "xyz")
                // The program has ended: the warning says what was so, and where the text is.
                let warnings = try await yonder.status().warnings.joined(separator: "\n")
                #expect(warnings.contains("was still open") && warnings.contains("/recovered/"), "\(warnings)")
                #expect(!warnings.contains("is still open"), "\(warnings)")
                let apart = try await Command.shell(
                    "cat \"$1\"/domains/*/recovered/*", yonder.directory["state"].string)
                #expect(apart.output == "xyzapart")
            }
        }

        @Test("MOUNT-1: a mount whose options cannot be kept leaves nothing behind, and says so")
        func optionsThatCannotBeKept() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let sidecar = yonder.directory["state/domains/mount/domain.json"].string
                let blocked = try await Command.shell("rm \"$1\" && mkdir -p \"$1/x\"", sidecar)
                try #require(blocked.status == 0, "\(blocked.errors)")
                try await yonder.yonder("mount", "mount").expectFailure(saying: "how it is mounted cannot be kept")
                #expect(try await Command.run("mountpoint", "-q", yonder.mount.string).status != 0)
                #expect(try await Command.shell("rm -r \"$1\"", sidecar).status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
            }
        }

        @Test("SOCKET-1: only its owner reaches the socket") func socketIsPrivate() async throws {
            try await Installation.mounted { yonder async throws in
                let mode = try await Command.run("stat", "-c", "%a %F", yonder.directory["socket"].string)
                #expect(mode.line == "600 socket")
                #expect(
                    try await Command.run("stat", "-c", "%a", yonder.directory["state"].string).line == "700")
            }
        }

        @Test(
            "SOCKET-1: the daemon refuses another user, also where the modes would let that user in",
            .enabled("only root can play another user") { FUSEAvailability.isRoot })
        func socketRefusesOthers() async throws {
            try await Installation.mounted { yonder async throws in
                let socket = yonder.directory["socket"].string
                // The refusal comes before any request.
                let connect = """
                    import socket, sys
                    client = socket.socket(socket.AF_UNIX)
                    client.settimeout(10)
                    client.connect(sys.argv[1])
                    print(client.recv(4096).decode())
                    """
                let command = Command(OrdinaryUser.prefix + ["/usr/bin/python3", "-c", connect, socket])
                #expect(try await command.run().status != 0)
                try await yonder.expectDone("chmod 755 \"$1\"; chmod 666 \"$2\"", yonder.directory.path.string, socket)
                let refused = try await command.run()
                let words = refused.output + refused.errors
                #expect(words.contains("this daemon belongs to another user"), "\(words)")
                #expect(try await yonder.yonder("status").status == 0)
            }
        }
    }
}
