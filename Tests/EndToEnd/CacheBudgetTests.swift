import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// How much of the disk is taken.
    @Suite struct CacheBudgets {
        private func fill(_ yonder: Installation, files: Int, of size: Int) throws {
            for number in 0..<files {
                try yonder.write(
                    (0..<size).map { UInt8(truncatingIfNeeded: ($0 >> 3) &+ number) }, to: "file\(number)")
            }
        }

        private func content(_ number: Int, of yonder: Installation) async throws -> String {
            try await yonder.info("file\(number)").content
        }

        @Test("CACHE-1: what is here stays inside --cache-limit; what was read last stays, and what is pinned")
        func keepsTheLimit() async throws {
            try await Installation.run { yonder in
                try fill(yonder, files: 12, of: 100_000)
                try await yonder.mountSource("--cache-limit", "500K")
                #expect(try await yonder.yonder("pin", yonder["file0"]).status == 0)
                for number in 0..<12 {
                    let name = yonder["file\(number)"]
                    try await Command.run("cmp", name, yonder.source.appending("file\(number)").string).expectSuccess()
                    #expect(try await eventually { try await yonder.info("file\(number)").content == "materialized" })
                }
                let limit: Int64 = 500 << 10
                #expect(try await eventually { try await yonder.status().bytes.local <= limit })
                #expect(try await yonder.status().bytes.limit == limit)
                #expect(try await content(0, of: yonder) == "materialized")
                #expect(try await content(11, of: yonder) == "materialized")
                #expect(try await content(1, of: yonder) == "dataless")
                // All of it is still there to be read.
                try await yonder.expectDone(
                    "for f in \"$1\"/*; do cmp \"$f\" \"$2/${f##*/}\" || exit 1; done", yonder.mount.string,
                    yonder.source.string)
                #expect(try await eventually { try await yonder.status().bytes.local <= limit })
                // Three files are below the new limit, and two below 90 % of it.
                #expect(try await yonder.yonder("set", "mount", "cache-limit=300K").status == 0)
                #expect(try await eventually { try await yonder.status().bytes.local <= (300 << 10) / 10 * 9 })
                #expect(try await content(0, of: yonder) == "materialized")
            }
        }

        @Test(
            "CACHE-1, CACHE-2: a file that is not opened for --cache-time is evicted, unless it is pinned, open, pending or hard-linked"
        )
        func keepsTheTime() async throws {
            try await Installation.run { yonder in
                try fill(yonder, files: 6, of: 100_000)
                try await yonder.mountSource("--cache-time", "1h")
                #expect(try await yonder.yonder("pin", yonder["file0"]).status == 0)
                try await yonder.shell("cat file5 >/dev/null && ln file5 linked")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                let holder = try await BackgroundProgram("tail", "-f", yonder["file1"])
                defer { holder.kill() }
                _ = try await yonder.yonder("pause", yonder.mount.string)
                try await yonder.shell("echo more >> file2")
                #expect(try await content(3, of: yonder) == "materialized")
                // Not before: on a loaded machine all of the above may take longer.
                #expect(try await yonder.yonder("set", "mount", "cache-time=4s").status == 0)
                #expect(
                    try await eventually(within: .seconds(20)) {
                        let (three, four) = (try await content(3, of: yonder), try await content(4, of: yonder))
                        return three == "dataless" && four == "dataless"
                    })
                for number in [0, 1, 2, 5] {
                    #expect(try await content(number, of: yonder) == "materialized", "\(number)")
                }
                _ = try await yonder.yonder("resume", yonder.mount.string)
                #expect(try await Command.run("cat", yonder["file3"]).outputBytes.count == 100_000)
                #expect(
                    try await yonder.yonder("mount", yonder.source.string, yonder.mount.string, "--cache-time", "x")
                        .status == 64)
            }
        }

        @Test("CACHE-1: what was written here and is not on the remote is never given up") func keepsWhatIsDirty()
            async throws
        {
            try await Installation.run { yonder in
                try fill(yonder, files: 4, of: 100_000)
                try await yonder.mountSource("--cache-limit", "300K")
                _ = try await Command.run("ls", yonder.mount.string)
                #expect(try await yonder.yonder("pause", yonder.mount.string).status == 0)
                for number in 0..<5 {
                    try await yonder.expectDone(
                        "head -c 100000 /dev/urandom > \"$1\"", yonder["new\(number)"])
                }
                try await Task.sleep(for: .milliseconds(500))
                let before = try await Command.shell("cd \"$1\" && sha256sum new*", yonder.mount.string)
                #expect(try await eventually { try await yonder.status().bytes.local >= 500_000 })
                #expect(try await yonder.yonder("resume", yonder.mount.string).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(
                    try await eventually(within: .seconds(10)) { try await yonder.status().bytes.local <= 300 << 10 })
                #expect(
                    try await Command.shell("cd \"$1\" && sha256sum new*", yonder.mount.string).output == before.output)
            }
        }

        @Test("CACHE-1: what was not read for longest goes first") func leastRecentlyRead() async throws {
            try await Installation.run { yonder in
                try fill(yonder, files: 5, of: 100_000)
                try await yonder.mountSource("--cache-limit", "450K")
                func read(_ number: Int) async throws {
                    _ = try await Command.run("cat", yonder["file\(number)"])
                    #expect(try await eventually { try await content(number, of: yonder) == "materialized" })
                }
                for number in 0..<4 { try await read(number) }
                // What was opened is written down a little later, and not after the unmount.
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                // As if all but the first were read long ago.
                let database = yonder.directory["state/domains/mount/replica.sqlite"].string
                let age = """
                    import sqlite3, sys
                    connection = sqlite3.connect(sys.argv[1])
                    connection.execute("UPDATE inode SET readAt = readAt - 3600000000000 WHERE number IN "
                        "(SELECT inode FROM item WHERE name IN ('file1', 'file2', 'file3'))")
                    connection.commit()
                    """
                #expect(try await Command.python(age, database).status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await content(1, of: yonder) == "materialized")
                try await read(4)
                #expect(try await eventually { try await content(1, of: yonder) == "dataless" })
                #expect(try await content(0, of: yonder) == "materialized")
                #expect(try await content(4, of: yonder) == "materialized")
            }
        }

        @Test(
            "CACHE-3: content that can be fetched again makes room for a program that writes more than is free",
            .enabled(if: SmallDisk.isPossible, "only root can mount a small file system"))
        func writersGetRoom() async throws {
            try await SmallDisk.run { yonder, _ in
                for number in 0..<5 {
                    try yonder.write(Array(repeating: UInt8(number), count: 10 << 20), to: "file\(number)")
                }
                try await yonder.mountSource()
                _ = try await yonder.yonder("download", yonder[""])
                let written = try await Command.python(
                    """
                    import sys, time
                    with open(sys.argv[1], "wb", buffering=0) as file:
                        for number in range(40):
                            file.write(bytes([number]) * (1 << 20))
                            time.sleep(0.1)
                    """, yonder["new"])
                #expect(written.status == 0, "\(written.errors)")
                let bytes = try await Command.run("cat", yonder["new"]).outputBytes
                #expect(bytes.count == 40 << 20)
                #expect((0..<40).allSatisfy { bytes[$0 << 20] == UInt8($0) })
                for number in 0..<5 {
                    #expect(try await Command.run("cat", yonder["file\(number)"]).outputBytes.count == 10 << 20)
                }
            }
        }

        @Test(
            "CACHE-3: a full disk: what can be spared goes and the reader gets his bytes; with nothing to spare ENOSPC",
            .enabled(if: SmallDisk.isPossible, "only root can mount a small file system"))
        func fullDisk() async throws {
            try await SmallDisk.run(megabytes: 40) { yonder, disk in
                for number in 0..<8 {
                    try yonder.write(Array(repeating: UInt8(number), count: 8 << 20), to: "file\(number)")
                }
                try yonder.write(Array(repeating: 9, count: 60 << 20), to: "huge")
                try await yonder.mountSource()
                for number in 0..<8 {
                    let same = try await Command.run(
                        "cmp", yonder["file\(number)"], yonder.source.appending("file\(number)").string)
                    #expect(same.status == 0, "\(number): \(same.errors)")
                }
                let huge = try await Command.run("cat", yonder["huge"])
                #expect(huge.errors.contains("No space left on device"), "\(huge.errors)")
                // What is written here may use what downloads may not.
                let free = try await Command.run("df", "--output=avail", "-B1", disk).output
                #expect(
                    Int64(free.split(separator: "\n").last?.trimmingCharacters(in: .whitespaces) ?? "") ?? 0 > 0)
                try await Command.shell("head -c 1000000 /dev/zero > \"$1\"", yonder["new"]).expectSuccess()
                #expect(try await Command.run("cat", yonder["file0"]).outputBytes.count == 8 << 20)
            }
        }

        @Test(
            "CACHE-3: what is kept downloaded and has no room leaves some to readers and writers, and status says so",
            .enabled(if: SmallDisk.isPossible, "only root can mount a small file system"))
        func keptWithoutRoom() async throws {
            try await SmallDisk.run(megabytes: 60) { yonder, disk in
                for name in ["one", "two", "three"] {
                    try yonder.write(Array(repeating: 1, count: 50 << 20), to: name)
                }
                try yonder.write(Array(repeating: 2, count: 100_000), to: "small")
                try await yonder.mountSource()
                func isFull() async throws -> Bool {
                    try await yonder.status().warnings.contains { $0.hasPrefix("the disk is full") }
                }
                try await yonder.yonder("pin", yonder["one"], yonder["two"], yonder["three"]).expectSuccess()
                #expect(try await eventually(within: .seconds(60)) { try await isFull() })
                // A tenth is left to writers, and as much to readers.
                let free = try await Command.run("df", "--output=avail", "-B1", disk).output
                let bytes = Int64(free.split(separator: "\n").last?.trimmingCharacters(in: .whitespaces) ?? "") ?? 0
                #expect(bytes > 8 << 20, "\(free)")
                #expect(try await Command.run("cat", yonder["small"]).outputBytes.count == 100_000)
                try await Command.shell("head -c 3000000 /dev/zero > \"$1\"", yonder["new"]).expectSuccess()
                for command in ["unpin", "evict"] {
                    _ = try await yonder.yonder(command, yonder["one"], yonder["two"], yonder["three"])
                }
                // Nothing has to be fetched or evicted for that.
                #expect(try await eventually { try await !isFull() })
            }
        }
    }
}
