import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

/// The end of a mount, and what comes meanwhile.
extension RealMount.DaemonLife {
    /// Runs a command that ends the mount, which takes a second for a file that stays open.
    private func ending(
        _ yonder: Installation, by first: [String], _ test: (BackgroundProgram) async throws -> Void
    ) async throws {
        let holder = try await BackgroundProgram(
            "sh", "-c", "exec 9<\"$1\"; touch \"$2\"; exec sleep 100", "sh", yonder["file"],
            yonder.directory["open"].string)
        defer { holder.kill() }
        #expect(await eventually { FileManager.default.fileExists(atPath: yonder.directory["open"].string) })
        let command = try await BackgroundProgram([Installation.program] + first, environment: yonder.environment)
        defer { command.kill() }
        try await test(command)
    }

    private func isUnmounted(_ yonder: Installation) async throws -> Bool {
        try await eventually { try await Command.run("mountpoint", "-q", yonder.mount.string).status != 0 }
    }

    @Test("MOUNT-2: a second unmount waits for one whose command was interrupted")
    func unmountsTwice() async throws {
        try await Installation.run { plain async throws in
            let (yonder, asked, held) = try await holdingSync(in: plain)
            defer { try? FileManager.default.removeItem(atPath: held) }
            try yonder.write("x", to: "file")
            try await yonder.mountSource()
            try await ending(yonder, by: ["unmount", "mount"]) { first in
                #expect(await eventually(within: .seconds(20)) { FileManager.default.fileExists(atPath: asked) })
                first.interrupt()
                #expect(await first.ends())
                let sockets = try yonder.sockets()
                async let waiting = yonder.yonder("unmount", "mount")
                // The first one does not end before the daemon has the second: on a loaded machine a start takes long.
                #expect(try await yonder.accepts(1, since: sockets))
                try FileManager.default.removeItem(atPath: held)
                #expect(try await isUnmounted(yonder))
                let second = try await waiting
                #expect(second.status == 0 && second.output.contains("nothing is pending"), "\(second.errors)")
                #expect(try await yonder.json([DomainSummary].self, "domains").map(\.isMounted) == [false])
                #expect(try await yonder.yonder("unmount", "mount").status == 69)
            }
        }
    }

    @Test("MOUNT-1: a mount that waits for the removal of its domain does not bring it back")
    func mountDuringARemoval() async throws {
        try await Installation.mounted(["file": "x"]) { yonder async throws in
            try await ending(yonder, by: ["remove", "mount", "--force"]) { first in
                #expect(try await isUnmounted(yonder))
                try await yonder.yonder("mount", "mount").expectFailure(saying: "no such domain")
                #expect(await first.ends() && first.status == 0)
                #expect(try await yonder.yonder("domains").output == "")
            }
        }
    }

    @Test(
        "MOUNT-2: what was stored through a mapping survives the unmount, and a file that was closed after it is whole",
        arguments: [true, false])
    func mappedOverTheUnmount(hasSync: Bool) async throws {
        try await Installation.run { plain async throws in
            let yonder = try await hasSync ? plain : replacingSync(by: "exit 1", in: plain)
            try yonder.write("old text", to: "file")
            try await yonder.mountSource()
            let program = """
                import mmap, os, subprocess, sys
                file = os.open(sys.argv[1], os.O_RDWR)
                mapping = mmap.mmap(file, 0)
                mapping[0:3] = b"new"
                assert subprocess.run([sys.argv[2], "unmount", "mount"]).returncode == 0
                os.close(file)
                """
            let stored = try await Command(
                ["python3", "-c", program, yonder["file"], Installation.program], environment: yonder.environment
            ).run()
            #expect(stored.status == 0, "\(stored.errors)")
            // The kernel had not written it back when the command came.
            #expect(stored.output.contains("1 change is pending"), "\(stored.output)")
            #expect(try await yonder.yonder("mount", "mount").status == 0)
            #expect(try await Command.run("cat", yonder["file"]).output == "new text")
            try await yonder.expectSent()
            #expect(yonder.sourceText("file") == "new text")
            #expect(try await yonder.status().warnings == [])
            let recovered = yonder.directory["state/domains/mount/recovered"].string
            #expect(try FileManager.default.contentsOfDirectory(atPath: recovered) == [])
        }
    }

    /// An installation whose daemon finds another program under the name of coreutils' sync.
    private func replacingSync(by script: String, in yonder: Installation) async throws -> Installation {
        let programs = yonder.directory["programs"].string
        try await Command.shell(
            "mkdir \"$1\" && printf '#!/bin/sh\\n%s\\n' \"$2\" >\"$1/sync\" && chmod +x \"$1/sync\"", programs,
            script
        ).expectSuccess()
        return yonder.with(["PATH": "\(programs):\(yonder.environment["PATH"] ?? "/usr/bin:/bin")"])
    }

    /// An installation whose daemon, when it unmounts, waits for a sync that lasts as long as the file `held` is there, for five seconds
    /// at most. The sync writes its arguments to the file `asked`.
    private func holdingSync(
        in yonder: Installation
    ) async throws -> (yonder: Installation, asked: String, held: String) {
        let (asked, held) = (yonder.directory["asked"].string, yonder.directory["held"].string)
        try await Command.run("touch", held).expectSuccess()
        let other = try await replacingSync(
            by: "echo \"$*\" >'\(asked)'; while [ -e '\(held)' ]; do sleep 0.05; done", in: yonder)
        return (other, asked, held)
    }

    @Test(
        "MOUNT-2: another process waits for what the kernel writes back, so that a daemon that is killed then ends")
    func killedInTheUnmount() async throws {
        try await Installation.run { plain async throws in
            let (yonder, asked, held) = try await holdingSync(in: plain)
            defer { try? FileManager.default.removeItem(atPath: held) }
            try yonder.write("text", to: "file")
            try await yonder.mountSource()
            try await yonder.shell("echo more > new")
            async let unmount = yonder.yonder("unmount", "mount")
            #expect(await eventually(within: .seconds(20)) { FileManager.default.fileExists(atPath: asked) })
            try await yonder.killDaemon()
            try FileManager.default.removeItem(atPath: held)
            _ = try await unmount
            #expect(try String(contentsOfFile: asked, encoding: .utf8) == "--file-system -- \(yonder.mount)\n")
            #expect(try await yonder.yonder("mount", "mount").status == 0)
            #expect(try await Command.run("cat", yonder["file"], yonder["new"]).output == "textmore\n")
        }
    }
}
