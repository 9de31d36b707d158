import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Who may have something fetched.
    @Suite struct Materializing {
        private static let refusal = "Object is remote"

        private func run(_ test: (Installation) async throws -> Void) async throws {
            try await Installation.run { yonder in
                for name in ["here", "later", "dir/sub/file"] { try yonder.write(name, to: name) }
                try await yonder.mountSource()
                _ = try await Command.shell("ls \"$1\" && cat \"$1/here\"", yonder.mount.string)
                try await test(yonder)
            }
        }

        private func isUntouched(_ yonder: Installation) async throws -> Bool {
            let (later, directory) = (try await yonder.info("later"), try await yonder.info("dir"))
            return later.content == "dataless" && directory.content == "dataless"
        }

        /// A copy of `cat` that is called otherwise.
        private func program(_ name: String, _ yonder: Installation) throws -> String {
            let path = yonder.directory[name].string
            try FileManager.default.copyItem(atPath: "/bin/cat", toPath: path)
            return path
        }

        @Test(
            "LIMIT-2: yonder run --no-materialize: what is here can be read, what is not is EREMOTE and is not fetched")
        func runs() async throws {
            try await run { yonder async throws in
                let here = try await yonder.run("yonder run --no-materialize -- cat \"$1\"", yonder["here"])
                #expect(here.output == "here", "\(here.errors)")
                for command in ["cat \"$1/later\"", "ls \"$1/dir\"", "cat \"$1/dir/sub/file\"", "echo >> \"$1/later\""]
                {
                    let refused = try await yonder.run(
                        "yonder run --no-materialize -- env LC_ALL=C sh -c '\(command)' sh \"$1\"", yonder.mount.string)
                    #expect(refused.status != 0)
                    #expect(refused.errors.contains(Self.refusal), "\(command): \(refused.errors)")
                }
                #expect(try await isUntouched(yonder))
                // Nor by asking for it.
                let asked = try await yonder.run(
                    "yonder run --no-materialize -- \"$1\" download \"$2\"", Installation.program, yonder["later"])
                #expect(asked.status == 77, "\(asked.errors)")
                #expect(try await isUntouched(yonder))
                #expect(try await yonder.run("cat \"$1\"", yonder["later"]).output == "later")
            }
        }

        @Test("LIMIT-2: also for those that left their parents, session and environment behind") func orphans()
            async throws
        {
            try await run { yonder async throws in
                let output = yonder.directory["output"].string
                let script = """
                    yonder run --no-materialize -- \
                    sh -c 'env -i setsid sh -c "(sleep 0.3; exec cat \\"\\$0\\") > \\"\\$1\\" 2>&1 &" "$0" "$1"' "$1" "$2"
                    """
                #expect(try await yonder.run(script, yonder["later"], output).status == 0)
                #expect(
                    await eventually {
                        (try? String(contentsOfFile: output, encoding: .utf8))?.contains(Self.refusal) == true
                    })
                #expect(try await isUntouched(yonder))
            }
        }

        @Test("the command's status is the command's") func status() async throws {
            try await Installation.run { yonder async throws in
                #expect(try await yonder.run("yonder run --no-materialize -- sh -c 'exit 7'").status == 7)
                #expect(try await yonder.run("yonder run --no-materialize -- no-such-command").status == 127)
                #expect(try await yonder.run("yonder run -- true").status == 64)
                #expect(try await yonder.run("yonder run --no-materialize").status == 64)
                let help = try await yonder.run("yonder run --help")
                #expect(help.status == 0 && help.output.contains("USAGE: yonder run"), "\(help.errors)")
                let words = try await yonder.run("yonder run --no-materialize -- printf '%s|' --json -- 'a b'")
                #expect(words.output == "--json|--|a b|")
            }
        }

        @Test("LIMIT-1: programs of the usual list and of the configuration are refused, by name, path and script")
        func lists() async throws {
            try await Installation.run { yonder in
                let listed = try program("my-scanner", yonder)
                let byPath = try program("other", yonder)
                let excepted = try program("restic", yonder)
                let usual = try program("updatedb", yonder)
                let script = yonder.directory["my-script"].string
                try "#!/bin/sh\nread line < \"$1\"; echo \"$line\"\n".write(
                    toFile: script, atomically: true, encoding: .utf8)
                _ = try await Command.run("chmod", "+x", script)
                try """
                [materialization]
                deny = ["my-sc*", "\(byPath)"]
                allow = ["restic"]
                """.write(toFile: yonder.directory["config.toml"].string, atomically: true, encoding: .utf8)
                for name in ["here", "later", "dir/sub/file", "excepted"] { try yonder.write(name + "\n", to: name) }
                try await yonder.mountSource()
                _ = try await Command.shell("ls \"$1\" && cat \"$1/here\"", yonder.mount.string)
                for path in [listed, byPath, usual, script] {
                    let refused = try await Command.run(path, yonder["later"])
                    let message = refused.errors + refused.output
                    #expect(
                        message.contains(Self.refusal) || path == script && refused.output == "\n",
                        "\(path): \(message)")
                    #expect(try await Command.run(path, yonder["here"]).output == "here\n")
                }
                #expect(try await Command.run(usual, yonder["later"]).output != "later\n")
                #expect(try await isUntouched(yonder))
                #expect(try await Command.run(excepted, yonder["excepted"]).output == "excepted\n")
                let log = try String(contentsOfFile: yonder.directory["state/yonderd.log"].string, encoding: .utf8)
                #expect(log.contains("'my-scanner'"))
                #expect(log.contains("'updatedb' is on the list of programs"))
                // Two processes at least have asked.
                #expect(log.ranges(of: "'updatedb' (pid ").count == 1)
            }
        }

        @Test("which process had what fetched shows in events and why") func causes() async throws {
            try await run { yonder async throws in
                let events = yonder.directory["events"].string
                let listener = try await BackgroundProgram(
                    "env", "YONDER_SOCKET=\(yonder.directory["socket"].string)", "sh", "-c",
                    "\(Installation.program) events --json > '\(events)'")
                defer { listener.kill() }
                try await yonder.expectListening(to: events)
                #expect(try await Command.run("cat", yonder["later"]).output == "later")
                #expect(
                    await eventually {
                        let text = (try? String(contentsOfFile: events, encoding: .utf8)) ?? ""
                        return text.contains("\"kind\":\"downloading\"") && text.contains("\"process\":\"cat (pid ")
                    })
                #expect(
                    try await eventually {
                        try await yonder.json(WhyReport.self, "why", yonder["later"]).lines
                            .contains { $0.contains("fetched for cat (pid ") }
                    })
            }
        }
    }
}
