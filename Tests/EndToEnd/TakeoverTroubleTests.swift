import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The daemon is killed when something else is wrong, too.
    @Suite(.enabled(if: canContinueMounts, "Linux before 6.9 does not send unanswered requests again"))
    struct TakeoverInTrouble {
        private func kill(_ yonder: Installation) async throws {
            try await Command.run("kill", "-9", String(try #require(yonder.daemon))).expectSuccess()
        }

        @Test(
            "TAKEOVER-1: readers of a file that is being downloaded read it to its end, and Ctrl-C ends a blocked reader",
            .enabled(if: FarRemote.Kind.installed.contains(.webDAV), "no WebDAV server is installed"))
        func blockedReaders() async throws {
            try await FarRemote.run(.webDAV) { remote, yonder async throws in
                let folder = try #require(remote.folder)
                let hash = try await Takeover.makeLargeFile(folder.appending("large").string)
                let other = try await Takeover.makeLargeFile(folder.appending("other").string)
                try await remote.mount(yonder)
                try await yonder.shell("ls -l")
                try await remote.relay.tell("cut")
                let readers = try await BackgroundProgram.start(forEach: 0..<10) { _ in
                    ["sh", "-c", "test \"$(sha256sum < \"$1\")\" = \"$2  -\"", "sh", yonder["large"], hash]
                }
                defer { for reader in readers { reader.kill() } }
                let (early, late) = (
                    try await BackgroundProgram("cat", yonder["other"]),
                    try await BackgroundProgram("cat", yonder["other"])
                )
                defer { for reader in [early, late] { reader.kill() } }
                try await Task.sleep(for: .seconds(1))
                // One reader is interrupted while there is no daemon, and one when the next daemon has its request.
                try await kill(yonder)
                early.interrupt()
                #expect(await early.ends(within: .seconds(20)))
                #expect(late.isRunning)
                #expect(try await yonder.yonder("domains").status == 0)
                late.interrupt()
                #expect(await late.ends(within: .seconds(20)))
                try await remote.relay.tell("reset")
                try await remote.relay.tell("heal")
                for _ in 0..<5 {
                    try await Task.sleep(for: .milliseconds(300))
                    try await kill(yonder)
                    #expect(try await yonder.yonder("domains").status == 0)
                }
                for reader in readers {
                    #expect(await reader.ends(within: .seconds(60)))
                    #expect(reader.status == 0)
                }
                let read = try await Command.run("sha256sum", yonder["other"], seconds: 60)
                #expect(read.output.hasPrefix(other), "\(read.errors)")
                #expect(try await yonder.status().warnings.isEmpty)
            }
        }

        @Test(
            "TAKEOVER-1: a daemon answers while the database of a mount is locked, and continues the mount afterwards")
        func lockedDatabase() async throws {
            try await Installation.mounted(["file": "text"]) { yonder in
                let held = try FileHandle(forReadingFrom: URL(fileURLWithPath: yonder["file"]))
                defer { try? held.close() }
                let script = """
                    import os, sqlite3, sys, time
                    database = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=20)
                    database.execute("BEGIN IMMEDIATE")
                    open(sys.argv[2], "w").close()
                    while not os.path.exists(sys.argv[3]): time.sleep(0.02)
                    os._exit(0)
                    """
                let database = yonder.directory["state/domains/mount/replica.sqlite"].string
                let (locked, unlock) = (yonder.directory["locked"], yonder.directory["unlock"].string)
                let (holder, _) = try await BackgroundProgram.start(
                    ["python3", "-c", script, database, locked.string, unlock], until: locked)
                defer { holder.kill() }
                try await kill(yonder)
                #expect(try await yonder.yonder("domains").status == 0)
                let refused = try await yonder.yonder("pending", "mount")
                #expect(refused.status != 0 && refused.errors.contains("it is being mounted"), "\(refused)")
                #expect(FileManager.default.createFile(atPath: unlock, contents: nil))
                #expect(try held.readToEnd() == Data("text".utf8))
                #expect(try await eventually { try await yonder.yonder("pending", "mount").status == 0 })
            }
        }

        @Test(
            "TAKEOVER-1: a daemon is killed while the kernel waits for its answer to drop pages, and readers go on",
            .enabled(if: FarRemote.Kind.installed.contains(.webDAV), "no WebDAV server is installed"))
        func blockedInvalidation() async throws {
            try await FarRemote.run(.webDAV) { remote, yonder async throws in
                let folder = try #require(remote.folder)
                _ = try await Takeover.makeLargeFile(folder.appending("large").string)
                let new = yonder.directory["new"].string
                let hash = try await Takeover.makeLargeFile(new)
                try await remote.mount(yonder)
                try await yonder.shell("ls -l")
                try await remote.relay.tell("delay 2000")
                let readers = try await BackgroundProgram.start(forEach: 0..<3) { _ in
                    ["sh", "-c", "test \"$(sha256sum < \"$1\")\" = \"$2  -\"", "sh", yonder["large"], hash]
                }
                defer { for reader in readers { reader.kill() } }
                try await Task.sleep(for: .milliseconds(500))
                // The readers follow the new version: the kernel is to drop pages that it has locked until they are read.
                guard rename(new, folder.appending("large").string) == 0 else { throw Errno(rawValue: errno) }
                for pause in [5_000, 3_000] {
                    try await Task.sleep(for: .milliseconds(pause))
                    let killed = try #require(yonder.daemon)
                    try await kill(yonder)
                    #expect(try await yonder.yonder("domains").status == 0)
                    // What is left of it must not keep the next daemon from writing to the database.
                    let locks = try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n")
                    #expect(!locks.contains { $0.contains(" POSIX ") && $0.contains(" \(killed) ") }, "\(locks)")
                }
                try await remote.relay.tell("delay 0")
                for reader in readers {
                    #expect(await reader.ends(within: .seconds(60)))
                    #expect(reader.status == 0)
                }
                #expect(try await yonder.status().warnings.isEmpty)
            }
        }

        @Test("TAKEOVER-6: the kernel is told by the next daemon of a change of which it was not told before a kill")
        func untoldChange() async throws {
            try await Installation.mounted(["told": "text", "untold": "text"]) { yonder in
                func links() async throws -> [String] {
                    let outcome = try await Command.run("stat", "-c", "%h", yonder["told"], yonder["untold"])
                    return outcome.output.split(separator: "\n").map(String.init)
                }
                let database = yonder.directory["state/domains/mount/replica.sqlite"].string
                func count() async throws -> String {
                    let script = """
                        import sqlite3, sys
                        database = sqlite3.connect(sys.argv[1], timeout=20)
                        print(database.execute("SELECT COUNT(*) FROM invalidation").fetchone()[0])
                        """
                    return try await Command.python(script, database).line
                }
                #expect(try await links() == ["1", "1"])
                #expect(try await eventually(within: .seconds(20)) { try await count() == "0" })
                let keeper = String(try #require(yonder.keeper))
                try await Command.run("kill", "-STOP", keeper).expectSuccess()
                try await kill(yonder)
                // A number that nothing compares with the remote, recorded for one file as the daemon does it.
                let script = """
                    import sqlite3, sys
                    database = sqlite3.connect(sys.argv[1], timeout=20)
                    numbers = dict(database.execute("SELECT name, inode FROM item WHERE name LIKE '%told'"))
                    for number in numbers.values():
                        database.execute("UPDATE inode SET linkCount = 5 WHERE number = ?", (number,))
                    database.execute("INSERT INTO invalidation (kind, inode) VALUES (3, ?)", (numbers["told"],))
                    database.commit()
                    database.close()
                    """
                let outcome = try await Command.python(script, database)
                try await Command.run("kill", "-CONT", keeper).expectSuccess()
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(try await yonder.yonder("domains").status == 0)
                // The kernel keeps what it knows of the other file.
                #expect(try await eventually(within: .seconds(20)) { try await links() == ["5", "1"] })
                #expect(try await eventually(within: .seconds(20)) { try await count() == "0" })
            }
        }

        @Test(
            "TAKEOVER-9: a daemon that negotiates other features with the kernel mounts again at the same place",
            .enabled("only root's mounts have passthrough, which the test turns off") { FUSEAvailability.isRoot })
        func otherFeatures() async throws {
            try await Installation.run { yonder in
                let program = yonder.directory["yonderd"].string
                func install(_ passthrough: Int) throws {
                    let script = """
                        #!/bin/bash
                        export YONDER_PASSTHROUGH=\(passthrough)
                        exec -a "$0" '\(Installation.program)d' "$@"

                        """
                    try Data(script.utf8).write(to: URL(fileURLWithPath: program + ".new"))
                    guard chmod(program + ".new", 0o755) == 0, rename(program + ".new", program) == 0 else {
                        throw Errno(rawValue: errno)
                    }
                }
                try install(0)
                _ = try await BackgroundProgram(
                    [Installation.program + "-keeper", "--", program], environment: yonder.environment)
                #expect(try await eventually { try await yonder.yonder("domains").status == 0 })
                try await yonder.mountSource()
                try await yonder.shell("echo acknowledged > file; sync file")
                let device = try await Command.run("stat", "-c", "%d", yonder.mount.string).line
                let held = try FileHandle(forReadingFrom: URL(fileURLWithPath: yonder["file"]))
                defer { try? held.close() }
                try install(1)
                try await kill(yonder)
                #expect(try await yonder.yonder("domains").status == 0)
                #expect(try await Command.run("cat", yonder["file"]).output == "acknowledged\n")
                try #require(try await Command.run("stat", "-c", "%d", yonder.mount.string).line != device)
                #expect(throws: (any Error).self) { try held.read(upToCount: 1) }
                try await yonder.expectSent()
            }
        }

        @Test("TAKEOVER-10: when the database is damaged, calls fail instead of waiting, and the log says why")
        func damagedDatabase() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                try await yonder.shell("echo acknowledged > new; sync new")
                try await yonder.expectSent()
                let keeper = String(try #require(yonder.keeper))
                #expect(try await Command.run("kill", "-STOP", keeper).status == 0)
                try await kill(yonder)
                let database = yonder.directory["state/domains/mount/replica.sqlite"].string
                for file in [database, database + "-wal"] {
                    let size = try #require(try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int)
                    try Data(repeating: 0xA5, count: size).write(to: URL(fileURLWithPath: file))
                }
                #expect(try await Command.run("kill", "-CONT", keeper).status == 0)
                #expect(try await yonder.yonder("domains").status == 0)
                let read = try await Command.run("cat", yonder["file"])
                #expect(read.status == 1, "\(read.output)\(read.errors)")
                let log = try String(contentsOfFile: yonder.directory["state/yonderd.log"].string, encoding: .utf8)
                #expect(log.contains("damaged"), "\(log)")
                try await yonder.yonder("mount", "mount").expectFailure(saying: "damaged")
                #expect(try await yonder.yonder("check", "mount", "--repair").status <= 1)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cat", yonder["new"]).output == "acknowledged\n")
            }
        }

        @Test(
            "TAKEOVER-1, WRITE-5: a daemon on a full disk takes the mounts over, and directories can be moved",
            .enabled(if: SmallDisk.isPossible, "only root can mount a small file system"))
        func fullDisk() async throws {
            try await SmallDisk.run { yonder, disk in
                try await yonder.mountSource()
                try await yonder.shell("echo acknowledged > file; sync file; mkdir d")
                try await yonder.expectSent()
                let held = try FileHandle(forReadingFrom: URL(fileURLWithPath: yonder["file"]))
                defer { try? held.close() }
                #expect(try await Command.run("rm", yonder["file"]).status == 0)
                try await SmallDisk.fill(disk)
                // Another program takes the room that was kept in a file, as when it is removed while the disk fills.
                _ = try await Command.run("rm", "-f", disk + "/state/domains/mount/reserve")
                try await SmallDisk.fill(disk)
                for _ in 0..<3 {
                    let daemon = FileManager.default.contents(atPath: disk + "/state/yonderd.lock")
                        .map { String(decoding: $0, as: UTF8.self).filter(\.isNumber) }
                    #expect(try await Command.run("kill", "-9", try #require(daemon)).status == 0)
                    #expect(try await yonder.yonder("domains").status == 0)
                    try held.seek(toOffset: 0)
                    #expect(try held.readToEnd() == Data("acknowledged\n".utf8))
                    #expect(try await Command.run("ls", yonder.mount.string).output == "d\n")
                    for line in ["chmod 700 d", "mv d e", "mv e d"] {
                        let outcome = try await Command.shell("cd \"$1\" && \(line)", yonder.mount.string)
                        #expect(outcome.status == 0, "\(line): \(outcome.errors)")
                    }
                }
                _ = try await Command.shell("rm \"$1\"/filler-*", disk)
                #expect(try await eventually { try await yonder.yonder("retry", "mount").status == 0 })
                try await yonder.shell("echo more > more")
                try await yonder.expectSent()
            }
        }
    }
}
