import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// `yonder mount --foreground`.
    @Suite struct ForegroundMounts {
        @Test(
            "MOUNT-1: --foreground stays until the domain is unmounted, and a signal unmounts it",
            arguments: [SIGINT, SIGTERM, SIGHUP])
        func stays(signal: Int32) async throws {
            try await Installation.run { yonder in
                try yonder.write("x", to: "file")
                let process = try await BackgroundProgram(
                    Installation.program, "mount", yonder.source.string, yonder.mount.string, "--foreground",
                    environment: yonder.environment)
                defer { process.kill() }
                #expect(
                    try await eventually(within: .seconds(10)) {
                        try await Command.run("cat", yonder["file"]).output == "x"
                    })
                #expect(process.isRunning)
                process.interrupt(by: signal)
                #expect(await process.ends(within: .seconds(10)))
                #expect(process.status == 0)
                #expect(try await yonder.yonder("status").status == 69)
                let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                #expect(!table.contains(yonder.mount.string))
            }
        }

        @Test("MOUNT-1: a second signal at once does not leave the domain mounted")
        func interruptedTwice() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                for round in 0..<6 {
                    let process = try await BackgroundProgram(
                        Installation.program, "mount", "mount", "--foreground", environment: yonder.environment)
                    defer { process.kill() }
                    #expect(
                        try await eventually(within: .seconds(10)) {
                            // It is in the table before the daemon has answered.
                            guard round.isMultiple(of: 2) else {
                                return try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                                    .contains(yonder.mount.string)
                            }
                            return try await Command.run("cat", yonder["file"]).output == "x"
                        })
                    // Two different signals that come at once stay two.
                    process.interrupt()
                    process.interrupt(by: SIGTERM)
                    #expect(await process.ends(within: .seconds(10)))
                    #expect(process.status == 0 || process.status == 130, "\(process.status ?? -1)")
                    let isMounted = try await yonder.json([DomainSummary].self, "domains").first?.isMounted
                    if process.status == 0 { #expect(isMounted == false) }
                    #expect(
                        try await eventually(within: .seconds(10)) {
                            try await yonder.json([DomainSummary].self, "domains").first?.isMounted == false
                        })
                }
            }
        }

        @Test("MOUNT-1: a second signal ends a mount in the foreground also where the daemon does not respond")
        func stoppedDaemon() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let process = try await BackgroundProgram(
                    Installation.program, "mount", "mount", "--foreground", environment: yonder.environment)
                defer { process.kill() }
                #expect(
                    try await eventually(within: .seconds(10)) {
                        try await yonder.json([DomainSummary].self, "domains").first?.isMounted == true
                    })
                let daemon = try await yonder.json(StatusReport.self, "status").daemon.worker
                kill(daemon, SIGSTOP)
                defer { kill(daemon, SIGCONT) }
                process.interrupt()
                process.interrupt(by: SIGTERM)
                #expect(await process.ends(within: .seconds(20)))
                #expect(process.status == 130)
            }
        }

        @Test("MOUNT-1: a mount in the foreground that fails ends the daemon that it has started")
        func fails() async throws {
            try await Installation.run { yonder in
                let file = yonder.mount.appending("file").string
                let made = try await Command.shell("mkdir \"$1\" && touch \"$2\"", yonder.mount.string, file)
                try #require(made.status == 0, "\(made.errors)")
                let process = try await BackgroundProgram(
                    Installation.program, "mount", yonder.source.string, yonder.mount.string, "--foreground",
                    environment: yonder.environment)
                defer { process.kill() }
                #expect(await process.ends(within: .seconds(20)))
                #expect(process.status == 1)
                #expect(try await yonder.yonder("status").status == 69)
                let lock = yonder.directory["state/yonderd.lock"].string
                try await Command.run("flock", "--nonblock", lock, "true").expectSuccess()
                // Another command's daemon goes on.
                _ = try await yonder.yonder("mount", yonder.source.string, yonder.mount.string)
                #expect(try await yonder.yonder("status").status == 0)
                try await yonder.yonder("mount", yonder.source.string, yonder.mount.string, "--foreground")
                    .expectFailure(saying: "not empty")
                #expect(try await yonder.yonder("status").status == 0)
            }
        }

        @Test("MOUNT-1: a mount in the foreground ends the daemon that it has started, also one that does not respond")
        func silentDaemon() async throws {
            try await Installation.run { yonder in
                // The daemon is the program beside the command, if there is one.
                let folder = try yonder.directory.makeDirectory("programs")
                let command = folder.appending("yonder").string
                try FileManager.default.copyItem(atPath: Installation.program, toPath: command)
                let (daemon, note) = (folder.appending("yonderd").string, yonder.directory["processes"].string)
                let script = """
                    #!/bin/sh
                    # A child that would go on, and no answer to SIGTERM.
                    trap '' TERM
                    sleep 300 &
                    echo $$ $! >'\(note)'
                    wait
                    """
                try Data(script.utf8).write(to: URL(fileURLWithPath: daemon))
                try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: daemon)
                let process = try await BackgroundProgram(
                    command, "mount", yonder.source.string, yonder.mount.string, "--foreground",
                    environment: yonder.environment.merging(["PATH": "/usr/bin:/bin"]) { $1 })
                defer { process.kill() }
                #expect(await process.ends(within: .seconds(40)))
                #expect(process.status == 69)
                let numbers = try String(contentsOfFile: note, encoding: .utf8).split(whereSeparator: \.isWhitespace)
                #expect(numbers.count == 2)
                for number in numbers {
                    let status = "/proc/\(number)/cmdline"
                    // A process that has ended has no command line, also before it is reaped.
                    #expect(
                        await eventually {
                            (FileManager.default.contents(atPath: status) ?? Data()).isEmpty
                        })
                }
            }
        }

        @Test(
            "MOUNT-1: Ctrl-C twice ends a mount in the foreground that waits for its remote, and the daemon that it has started"
        )
        func interrupted() async throws {
            try await Installation.run { yonder in
                let silent = """
                    import os, socket, sys, time
                    server = socket.create_server(("127.0.0.1", 0))
                    with open(sys.argv[1] + ".new", "w") as file: file.write(str(server.getsockname()[1]))
                    os.rename(sys.argv[1] + ".new", sys.argv[1])
                    connection, _ = server.accept()
                    connection.recv(1)
                    open(sys.argv[2], "w").close()
                    time.sleep(60)
                    """
                let (port, asked) = (yonder.directory["port"], yonder.directory["asked"].string)
                let server = try await BackgroundProgram.start(
                    ["python3", "-c", silent, port.string, asked], until: port)
                defer { server.program.kill() }
                let process = try await BackgroundProgram(
                    Installation.program, "mount", "webdav://127.0.0.1:\(server.text)/", yonder.mount.string,
                    "--foreground", environment: yonder.environment)
                defer { process.kill() }
                #expect(await eventually(within: .seconds(20)) { FileManager.default.fileExists(atPath: asked) })
                // Two signals that come at once are one.
                let ends = await eventually(within: .seconds(20)) {
                    process.interrupt()
                    return !process.isRunning
                }
                #expect(ends)
                #expect(process.status == 130)
                #expect(try await yonder.yonder("status").status == 69)
            }
        }

        @Test(
            "MOUNT-1: Ctrl-C at the question of a mount in the foreground ends it, and the daemon that it has started")
        func interruptedAtAQuestion() async throws {
            try await Installation.mounted { yonder in
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("shutdown").status == 0)
                let lost = yonder["lost"]
                let made = try await Command.shell("chmod u+w \"$1\" && touch \"$2\"", yonder.mount.string, lost)
                try #require(made.status == 0, "\(made.errors)")
                let ended = try await yonder.onTerminal(["mount", "mount", "--foreground"], answer: "\u{3}")
                #expect(ended.asked && ended.status == 130, "\(ended)")
                #expect(try await yonder.yonder("status").status == 69)
                #expect(FileManager.default.fileExists(atPath: lost))
            }
        }
    }
}
