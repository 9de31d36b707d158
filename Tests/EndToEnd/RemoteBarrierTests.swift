import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Waiting until the remote has it: `fsync` where the user wants that, the attribute, and a part of a domain.
    @Suite struct RemoteBarriers {
        private static let strict: DomainOptions = {
            var options = DomainOptions()
            options.waitsForRemote = true
            return options
        }()

        /// Writes a file, calls fsync, and says what came of it, and whether the file's name was there by then.
        private static let writer = """
            import errno, os, sys
            file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY, 0o644)
            os.write(file, sys.argv[2].encode())
            try:
                os.fsync(file)
                print("done", flush=True)
            except OSError as error:
                print(errno.errorcode[error.errno], flush=True)
            os.close(file)
            """

        private func write(_ text: String, to path: String, seconds: Int = 20) async throws -> String {
            try await Command(["python3", "-c", Self.writer, path, text], seconds: seconds).run().line
        }

        @Test("SEND-11: with --fsync remote, fsync returns when the remote has the bytes, and not before")
        func waits() async throws {
            try await ProvidedMount.run(mounted: Self.strict, { _ in }) { mount async throws in
                #expect(try await write("one", to: mount["file"]) == "done")
                #expect(mount.provider.tree.text(at: "file") == "one")
                let gate = mount.provider.faults.hold(.modify)
                let output = mount.host.replica.directory.appending("output").string
                let script = mount.host.replica.directory.appending("writer.py").string
                try Self.writer.write(toFile: script, atomically: true, encoding: .utf8)
                let writer = try await BackgroundProgram(
                    "sh", "-c", "exec python3 '\(script)' '\(mount["file"])' twothree > '\(output)'")
                defer { writer.kill() }
                #expect(await eventually { gate.waiting > 0 })
                try await Task.sleep(for: .milliseconds(200))
                #expect(FileManager.default.contents(atPath: output)?.isEmpty == true)
                gate.open()
                #expect(
                    await eventually { FileManager.default.contents(atPath: output) == Data("done\n".utf8) })
                #expect(mount.provider.tree.text(at: "file") == "twothree")
                // A directory's returns when all below it is there.
                let made = try await Command.shell(
                    """
                    mkdir -p "$1/d/e" && echo deep > "$1/d/e/f" && \
                    python3 -c 'import os, sys; os.fsync(os.open(sys.argv[1], os.O_RDONLY))' "$1/d"
                    """, mount.path.string)
                #expect(made.status == 0, "\(made.errors)")
                #expect(mount.provider.tree.text(at: "d/e/f") == "deep\n")
            }
        }

        @Test(
            "SEND-11: what the remote says against it is the errno of fsync, also on the next; else it is interrupted")
        func surfacesErrors() async throws {
            try await ProvidedMount.run(mounted: Self.strict, { _ in }) { mount async throws in
                _ = try await Command.run("ls", mount.path.string)
                let faults = mount.provider.faults
                faults.fail(.create, with: FileProviderError(.insufficientQuota), times: 2)
                #expect(try await write("1", to: mount["full"]) == "EDQUOT")
                #expect(try await write("2", to: mount["full"]) == "EDQUOT")
                #expect(try await write("3", to: mount["full"]) == "done")
                #expect(mount.provider.tree.text(at: "full") == "3")
                faults.fail(.create, with: FileProviderError(.cannotSynchronize), times: 1)
                #expect(try await write("1", to: mount["broken"]) == "EIO")
                #expect(try mount.host.engine.currentWarnings().contains { $0.contains("input/output error") })
                #expect(try await write("2", to: mount["broken"]) == "done")
                #expect(try !mount.host.engine.currentWarnings().contains { $0.contains("input/output error") })
                faults.failEverything(with: FileProviderError(.serverUnreachable))
                #expect(try await write("1", to: mount["away"]) == "EHOSTUNREACH")
                faults.clear()
                #expect(try await eventually { try await write("1", to: mount["away"]) == "done" })
                _ = faults.hold(.create)
                let start = ContinuousClock.now
                let killed = try await Command.run(
                    "timeout", "-s", "INT", "1", "python3", "-c", Self.writer, mount["slow"], "x")
                #expect(killed.status != 0 && ContinuousClock.now - start < .seconds(5))
            }
        }

        @Test("SEND-11: without it fsync is the local disk's alone, and user.yonder.upload waits for one item or tree")
        func attribute() async throws {
            try await ProvidedMount.run { _ in
            } _: { mount async throws in
                _ = try await Command.run("ls", mount.path.string)
                let gate = mount.provider.faults.hold(.create)
                #expect(try await write("text", to: mount["file"]) == "done")
                #expect(mount.provider.tree.text(at: "file") == nil)
                gate.open()
                let sent = try await Command.shell(
                    "mkdir \"$1/d\" && echo 1 > \"$1/d/a\" && setfattr -n user.yonder.upload -v 1 \"$1/d\"",
                    mount.path.string)
                #expect(sent.status == 0, "\(sent.errors)")
                #expect(mount.provider.tree.text(at: "d/a") == "1\n")
                mount.provider.faults.fail(.modify, with: FileProviderError(.insufficientQuota), times: 1)
                let refused = try await Command.shell(
                    "echo 2 >> \"$1\" && LC_ALL=C setfattr -n user.yonder.upload -v 1 \"$1\"", mount["d/a"])
                #expect(refused.errors.contains("quota"), "\(refused.errors)")
                let listed = try await Command.run("getfattr", "-d", "-m", "-", mount["d/a"])
                #expect(!listed.output.contains("yonder"))
                // It can be interrupted.
                let held = mount.provider.faults.hold(.modify)
                let start = ContinuousClock.now
                let interrupted = try await Command.shell(
                    "echo 3 >> \"$1\" && exec timeout -s INT 1 setfattr -n user.yonder.upload -v 1 \"$1\"", mount["d/a"]
                )
                #expect(interrupted.status != 0 && ContinuousClock.now - start < .seconds(5))
                held.open()
            }
        }

        @Test("SEND-12: 'yonder wait DIR' waits for what is below it, and for nothing else") func waitsBelow()
            async throws
        {
            try await Installation.mounted([
                "out/moved": "1", "in/removed": "2", "in/leaves": "3",
            ]) { yonder async throws in
                _ = try await yonder.shell("find . -type f -exec cat {} + >/dev/null")
                _ = try await yonder.yonder("pause", yonder.mount.string)
                func isWaiting(_ name: String) async throws -> Bool {
                    try await yonder.yonder("wait", yonder[name], "--timeout", "0.2").status == 75
                }
                try await yonder.shell("echo new > out/new")
                #expect(try await !isWaiting("in"))
                for name in ["out", "out/new", ""] { #expect(try await isWaiting(name), "\(name)") }
                #expect(try await !isWaiting("out/moved"))
                for change in ["echo x > in/made", "rm in/removed", "mv in/leaves out/", "mkdir -p in/a/b/c"] {
                    _ = try await yonder.yonder("resume", yonder.mount.string)
                    #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                    _ = try await yonder.yonder("pause", yonder.mount.string)
                    try await yonder.shell(change)
                    #expect(try await isWaiting("in"), "\(change)")
                }
                #expect(try await isWaiting("in/a/b"))
                #expect(try await !isWaiting("out/moved"))
                _ = try await yonder.yonder("resume", yonder.mount.string)
                #expect(try await yonder.yonder("wait", yonder["in/a"], "--timeout", "20").status == 0)
                #expect(FileManager.default.fileExists(atPath: yonder.source.appending("in/a/b/c").string))
                try await yonder.expectSent()
            }
        }
    }
}
