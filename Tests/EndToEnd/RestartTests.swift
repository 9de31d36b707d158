import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The daemon and its keeper.
    @Suite struct Restarts {
        private func report(_ yonder: Installation) async throws -> DaemonStatus {
            try await yonder.json(StatusReport.self, "status").daemon
        }

        @Test(
            "CRASH-3: after kill -9 of the worker the keeper starts another, a command waits for it, and the domains are mounted again"
        )
        func survivesSIGKILL() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let before = try await report(yonder)
                let device = try await Command.run("stat", "-c", "%d", yonder.mount.string).line
                #expect(before.worker == yonder.daemon && before.restarts == 0)
                #expect(before.keeper != nil && before.keeper == yonder.keeper)
                for restarts in 1...3 {
                    let worker = try #require(yonder.daemon)
                    #expect(try await Command.run("kill", "-9", String(worker)).status == 0)
                    let after = try await report(yonder)
                    #expect(after.keeper == before.keeper && after.worker != worker)
                    #expect(after.restarts == restarts)
                    #expect(try await Command.run("cat", yonder["file"]).output == "x")
                }
                // It is the same mount where the kernel allows that.
                #expect(
                    try await Command.run("stat", "-c", "%d", yonder.mount.string).line == device || !canContinueMounts)
                let keeper = try #require(before.keeper)
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(await eventually { !FileManager.default.fileExists(atPath: "/proc/\(keeper)/stat") })
                #expect(try await yonder.yonder("status").status == 69)
            }
        }

        @Test("CRASH-3: a command that the worker's death interrupts is repeated")
        func repeatsCommands() async throws {
            try await Installation.mounted { yonder async throws in
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo x > file")
                let sockets = try yonder.sockets()
                let waiting = Task { try await yonder.yonder("wait", "--timeout", "30") }
                #expect(try await yonder.accepts(1, since: sockets))
                #expect(try await Command.run("kill", "-9", String(try #require(yonder.daemon))).status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                let waited = try await waiting.value
                #expect(waited.status == 0, "\(waited.errors)")
                #expect(yonder.sourceText("file") == "x\n")
            }
        }

        @Test("CRASH-3: 'yonder wait' goes on, with the rest of its time, when the daemon is killed again and again")
        func waitsThroughManyDaemons() async throws {
            try await Installation.mounted { yonder async throws in
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo x > file")
                let sockets = try yonder.sockets()
                let waiting = Task { try await yonder.yonder("wait", "mount", "--timeout", "50") }
                let timed = Task { try await yonder.yonder("wait", "mount", "--timeout", "3") }
                #expect(try await yonder.accepts(2, since: sockets))
                for _ in 1...6 {
                    let daemon = try #require(yonder.daemon)
                    #expect(try await Command.run("kill", "-9", String(daemon)).status == 0)
                    // The commands were there before this one.
                    #expect(try await yonder.yonder("domains").status == 0)
                    #expect(yonder.daemon != daemon)
                }
                #expect(try await timed.value.status == 75)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                let waited = try await waiting.value
                #expect(waited.status == 0, "\(waited.errors)")
                #expect(yonder.sourceText("file") == "x\n")
            }
        }

        @Test(
            "TAKEOVER-4: a command that must not be repeated ends with 69 when the daemon dies, and says that it may have been executed"
        )
        func repeatsNoOthers() async throws {
            try await Installation.mounted(["a": "a"]) { yonder async throws in
                try await yonder.shell("cat a")
                let daemon = try #require(yonder.daemon)
                let errors = yonder.directory["errors"].string
                // The command waits for the remote, which is away.
                try FileManager.default.moveItem(
                    atPath: yonder.source.string, toPath: yonder.directory["away"].string)
                async let reimport = yonder.run(
                    "yonder reimport \"$1\" --wait 2> \"$2\"", yonder.mount.string, errors)
                func said() -> String { (try? String(contentsOfFile: errors, encoding: .utf8)) ?? "" }
                #expect(await eventually(within: .seconds(20)) { said().contains("waits for the remote") })
                #expect(try await Command.run("kill", "-9", String(daemon)).status == 0)
                let ended = try await reimport
                #expect(ended.status == 69 && said().contains("may have been executed, or not"), "\(said())")
            }
        }

        @Test("CRASH-3: a daemon whose socket was removed with its directory is found again, and keeps the mounts")
        func removedSocket() async throws {
            try await Installation.run { installation async throws in
                let runtime = try installation.directory.makeDirectory("runtime")
                let yonder = installation.with(["YONDER_SOCKET": runtime.appending("socket").string])
                try yonder.write("x", to: "file")
                try await yonder.mountSource()
                let keeper = yonder.keeper
                #expect(try await Command.run("rm", "-r", runtime.string).status == 0)
                let isFound = try await eventually(within: .seconds(20)) {
                    try await yonder.yonder("status").status == 0
                }
                #expect(isFound)
                #expect(yonder.keeper == keeper)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                #expect(try await yonder.yonder("shutdown").status == 0)
            }
        }

        @Test(
            "TAKEOVER-1: a mount goes on where it is when a directory above it was renamed",
            .enabled(if: canContinueMounts))
        func renamedAbove() async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("x", to: "file")
                let parent = try yonder.directory.makeDirectory("parent").string
                #expect(try await yonder.yonder("mount", yonder.source.string, "\(parent)/mount").status == 0)
                #expect(try await Command.run("mv", parent, "\(parent)2").status == 0)
                #expect(try await Command.run("kill", "-9", String(try #require(yonder.daemon))).status == 0)
                let seen = try await Command.shell("echo y > \"$1\"/new; cat \"$1\"/*", "\(parent)2/mount")
                #expect(seen.output == "xy\n")
                #expect(try await yonder.yonder("wait", "--timeout", "20", "\(parent)2/mount").status == 0)
                #expect(yonder.sourceText("new") == "y\n")
                #expect(try await yonder.yonder("unmount", "\(parent)2/mount").status == 0)
                #expect(try await Command.run("ls", "-A", "\(parent)2/mount").output == "")
            }
        }

        @Test("CRASH-4: yonder daemon restart starts the installed daemon and keeps the mounts") func restarts()
            async throws
        {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let before = try await report(yonder)
                try await yonder.yonder("daemon", "restart").expectSuccess()
                let after = try await report(yonder)
                #expect(after.worker != before.worker && after.keeper == before.keeper && after.restarts == 1)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
            }
        }

        @Test("TAKEOVER-7: a daemon that is too old for a database does not replace the running one")
        func refusesOlderDaemon() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let before = try await report(yonder)
                func change(_ statement: String) async throws {
                    let changed = try await Command.shell(
                        "python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute(sys.argv[2])' "
                            + "\"$1\"/*/replica.sqlite \"$2\"", yonder.directory["state/domains"].string, statement)
                    #expect(changed.status == 0, "\(changed.errors)")
                }
                try await change("INSERT INTO grdb_migrations VALUES ('9999 of a later version')")
                try await yonder.yonder("daemon", "restart").expectFailure(saying: "newer Yonder")
                #expect(try await report(yonder).worker == before.worker)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                try await change("DELETE FROM grdb_migrations WHERE identifier LIKE '9999%'")
                #expect(try await yonder.yonder("daemon", "restart").status == 0)
                #expect(try await report(yonder).worker != before.worker)
            }
        }

        @Test("TAKEOVER-7: a daemon that does not start does not replace the running one")
        func refusesBrokenDaemon() async throws {
            try await Installation.run { yonder in
                let program = yonder.directory["yonderd"].string
                let good = "exec -a \"$0\" '\(Installation.program)d' \"$@\""
                try Self.install(good, as: program)
                _ = try await BackgroundProgram(
                    [Installation.program + "-keeper", "--", program], environment: yonder.environment)
                #expect(try await eventually { try await yonder.yonder("domains").status == 0 })
                try yonder.write("x", to: "file")
                try await yonder.mountSource()
                let before = try await report(yonder)
                for (broken, reason) in [("echo is broken >&2; exit 1", "is broken"), ("kill -9 $$", "signal 9")] {
                    try Self.install(broken, as: program)
                    let refused = try await yonder.yonder("daemon", "restart")
                    #expect(refused.status == 1 && refused.errors.contains(reason), "\(refused.errors)")
                    #expect(try await report(yonder).worker == before.worker)
                }
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                try Self.install(good, as: program)
                #expect(try await yonder.yonder("daemon", "restart").status == 0)
                let after = try await report(yonder)
                #expect(after.worker != before.worker && after.keeper == before.keeper)
            }
        }

        @Test("TAKEOVER-7: a daemon that cannot read the tables of open files does not take over mounts")
        func refusesOtherLayout() async throws {
            try await Installation.run { yonder in
                let program = yonder.directory["yonderd"].string
                // The installed program is told of a layout that is not its own.
                try Self.install(
                    "[ \"$2\" = --open-files-layout ] && set -- \"$1\" \"$2\" $(($3 + 1))\n"
                        + "exec -a \"$0\" '\(Installation.program)d' \"$@\"", as: program)
                _ = try await BackgroundProgram(
                    [Installation.program + "-keeper", "--", program], environment: yonder.environment)
                #expect(try await eventually { try await yonder.yonder("domains").status == 0 })
                // Nothing is open where nothing is mounted.
                try await yonder.yonder("daemon", "restart").expectSuccess()
                try yonder.write("x", to: "file")
                try await yonder.mountSource()
                let before = try await report(yonder)
                #expect(before.restarts == 1)
                try await yonder.yonder("daemon", "restart").expectFailure(saying: "the table of open files has layout")
                #expect(try await report(yonder).worker == before.worker)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
            }
        }

        @Test(
            "TAKEOVER-8: while the daemon crashes in a loop, calls fail with EIO, and what was closed meanwhile is closed afterwards",
            .enabled(if: canContinueMounts, "Linux before 6.9 does not send unanswered requests again"))
        func crashLoop() async throws {
            try await Installation.run { yonder in
                let (program, flag) = (yonder.directory["yonderd"].string, yonder.directory["broken"].string)
                try Self.install(
                    "[ -e '\(flag)' ] && exit 3\nexec -a \"$0\" '\(Installation.program)d' \"$@\"", as: program)
                _ = try await BackgroundProgram(
                    [
                        Installation.program + "-keeper", "--longest-pause", "3", "--crash-report",
                        yonder.directory["state/crash-loop"].string, "--", program,
                    ], environment: yonder.environment)
                #expect(try await eventually { try await yonder.yonder("domains").status == 0 })
                try await yonder.mountSource()
                let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                    .appendingPathComponent("Programs/takeover/crash_loop.py").path
                let worked = try await Command(
                    [
                        "python3", script, yonder.mount.string, flag, String(try #require(yonder.daemon)),
                        Installation.program,
                    ], environment: yonder.environment, seconds: 100
                ).run()
                #expect(worked.status == 0, "\(worked.output)\n\(worked.errors)")
                // The content of a file without a name is removed with its last close and its last lookup.
                #expect(await eventually { yonder.contentFiles.count == 1 }, "\(yonder.contentFiles)")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(yonder.sourceText("written") == "before")
                #expect(try await report(yonder).restarts >= 5)
            }
        }

        @Test("MOUNT-7: when the first daemons die before they have mounted the domains again, the next one does it")
        func diesBeforeMountingAgain() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await yonder.yonder("shutdown").status == 0)
                let program = yonder.directory["yonderd"].string
                try Self.install(
                    "[ \"$YONDER_RESTARTS\" -lt 2 ] && kill -9 $$\nexec -a \"$0\" '\(Installation.program)d' \"$@\"",
                    as: program)
                _ = try await BackgroundProgram(
                    [Installation.program + "-keeper", "--", program], environment: yonder.environment)
                #expect(
                    try await eventually(within: .seconds(20)) {
                        try await Command.run("cat", yonder["file"]).output == "x"
                    })
                #expect(try await report(yonder).restarts == 2)
                // Once: what is unmounted after that stays unmounted.
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("umount", yonder.mount.string).status == 0)
                #expect(try await eventually { try await yonder.json(StatusReport.self, "status").domains.isEmpty })
                #expect(try await Command.run("kill", "-9", String(try #require(yonder.daemon))).status == 0)
                #expect(try await report(yonder).restarts == 3)
                try await Task.sleep(for: .milliseconds(300))
                #expect(try await yonder.json(StatusReport.self, "status").domains.isEmpty)
            }
        }

        /// Replaces a program with a script, as a package manager would.
        private static func install(_ script: String, as program: String) throws {
            try Data("#!/bin/bash\n\(script)\n".utf8).write(to: URL(fileURLWithPath: program + ".new"))
            guard chmod(program + ".new", 0o755) == 0, rename(program + ".new", program) == 0 else {
                throw Errno(rawValue: errno)
            }
        }

        @Test("without a keeper the daemon serves, and refuses a restart") func withoutKeeper() async throws {
            try await Installation.run { yonder in
                _ = try await BackgroundProgram([Installation.program + "d"], environment: yonder.environment)
                #expect(try await eventually { try await yonder.yonder("domains").status == 0 })
                try await yonder.mountSource()
                let daemon = try await report(yonder)
                #expect(daemon.keeper == nil && daemon.warnings?.isEmpty == true)
                try await yonder.yonder("daemon", "restart").expectFailure(saying: "yonder shutdown")
            }
        }

        @Test(
            "CRASH-3: a mount that is ended while no daemon runs is not continued, and can be mounted again",
            .enabled("only root can end it without the daemon") { FUSEAvailability.isRoot })
        func endedMeanwhile() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let keeper = String(try #require(try await report(yonder).keeper))
                #expect(try await Command.run("kill", "-STOP", keeper).status == 0)
                #expect(try await Command.run("kill", "-9", String(try #require(yonder.daemon))).status == 0)
                // umount(8) would ask the daemon for attributes.
                #expect(umount2(yonder.mount.string, Int32(MNT_DETACH)) == 0)
                #expect(try await Command.run("kill", "-CONT", keeper).status == 0)
                #expect(try await report(yonder).restarts == 1)
                #expect(try await eventually { try await yonder.json(StatusReport.self, "status").domains.isEmpty })
                try await yonder.mountSource()
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
            }
        }

        @Test("CRASH-3: the daemon goes on without a keeper that was killed, and warns of it") func keeperDies()
            async throws
        {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let before = try await report(yonder)
                #expect(before.warnings?.isEmpty == true)
                #expect(try await Command.run("kill", "-9", String(try #require(before.keeper))).status == 0)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                let after = try await report(yonder)
                #expect(after.worker == before.worker && after.keeper == nil)
                #expect(after.warnings == [DaemonStatus.keeperHasEnded])
                #expect(try await yonder.yonder("status").output.contains("warning  \(DaemonStatus.keeperHasEnded)"))
                let found = try await yonder.yonder("doctor").output
                #expect(found.contains("daemon: \(DaemonStatus.keeperHasEnded)"), "\(found)")
                #expect(!found.contains("no process would start it again"), "\(found)")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
            }
        }

        @Test("the reports of crashes are in the state directory, at most ten") func crashReports() async throws {
            try await Installation.run { yonder in
                let crashes = yonder.directory["state/crashes"].string
                try FileManager.default.createDirectory(atPath: crashes, withIntermediateDirectories: true)
                for number in 0..<15 {
                    #expect(FileManager.default.createFile(atPath: "\(crashes)/\(number).log", contents: nil))
                }
                try await yonder.mountSource()
                #expect(try FileManager.default.contentsOfDirectory(atPath: crashes).count == 10)
            }
        }
    }
}
