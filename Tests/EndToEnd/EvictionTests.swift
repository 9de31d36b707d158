import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Making things dataless again.
    @Suite struct Evicting {
        private static let look = "cd \"$1\" && find . -printf '%i %p %s %m %T@ %y\\n' | sort"

        @Test("READ-10 and EVICT-2: a directory is evicted with all below it, stays as it was, and can be read again")
        func evictsDirectories() async throws {
            try await Installation.run { yonder in
                for name in ["dir/a", "dir/sub/b", "dir/sub/deeper/c", "other"] {
                    try yonder.write(Array(name.utf8) + Array(repeating: 65, count: 9000), to: name)
                }
                try yonder.write("", to: "dir/empty")
                try await yonder.mountSource()
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                let before = try await Command.shell(Self.look, yonder.mount.string)
                #expect(yonder.contentFiles.count == 4)

                let evicted = try await yonder.json(TransferSummary.self, "evict", yonder["dir"])
                #expect(evicted == TransferSummary(items: 3, bytes: 27_030, refusals: []))
                #expect(yonder.contentFiles.count == 1)
                #expect(try await yonder.info("dir").content == "dataless")
                #expect(try await yonder.json([ItemInformation].self, "ls", yonder["dir"]) == [])
                #expect(try await Command.shell(Self.look, yonder.mount.string).output == before.output)
                #expect(try await yonder.info("dir/a").content == "dataless")
                let read = try await Command.run("cat", yonder["dir/sub/deeper/c"])
                #expect(read.output.hasPrefix("dir/sub/deeper/cAAAA"))
                #expect(read.outputBytes.count == 9016)

                // One path that fails is reported as one of many is.
                let absent = try await yonder.json(TransferSummary.self, "evict", yonder["nosuch"])
                #expect(absent.items == 0 && absent.refusals.map(\.path) == [yonder["nosuch"]])
                #expect(absent.refusals.map(\.code) == ["noSuchItem"])
                let refused = try await yonder.yonder("evict", yonder["nosuch"])
                #expect(refused.status == 1)
                #expect(refused.errors == "yonder: \(yonder["nosuch"]): no such file or directory\n")
            }
        }

        @Test("EVICT-1: evicting by attribute, and downloading by attribute") func evictsByAttribute() async throws {
            try await Installation.run { yonder in
                try yonder.write(Array(repeating: 1, count: 5000), to: "dir/file")
                try await yonder.mountSource()
                let download = try await Command.run(
                    "setfattr", "-n", "user.yonder.download", "-v", "1", yonder["dir/file"])
                #expect(download.status == 0, "\(download.errors)")
                #expect(try await yonder.info("dir/file").content == "materialized")
                try await Command.run("setfattr", "-n", "user.yonder.evict", "-v", "1", yonder["dir"]).expectSuccess()
                #expect(yonder.contentFiles.isEmpty)
                #expect(try await yonder.info("dir").content == "dataless")
                // Downloading a directory downloads what is in it.
                let all = try await Command.run("setfattr", "-n", "user.yonder.download", "-v", "1", yonder["dir"])
                #expect(all.status == 0, "\(all.errors)")
                #expect(try await yonder.info("dir/file").localBytes == 5000)
            }
        }

        @Test("EVICT-3: by the attribute an open file refuses with EBUSY, and its directory stops there with ENOTEMPTY")
        func refusesOpenFiles() async throws {
            try await Installation.run { yonder in
                for name in ["dir/a", "dir/b", "dir/c"] { try yonder.write(Array(repeating: 1, count: 5000), to: name) }
                try await yonder.mountSource()
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                let hold = """
                    import subprocess, sys
                    with open(sys.argv[1], 'rb') as f:
                        for command in sys.argv[2:]:
                            done = subprocess.run(command, shell=True, capture_output=True, text=True)
                            print(done.returncode, done.stdout.strip(), done.stderr.strip())
                    """
                let outcome = try await Command(
                    [
                        "python3", "-c", hold, yonder["dir/b"],
                        "setfattr -n user.yonder.evict -v 1 '\(yonder["dir/b"])'",
                        "setfattr -n user.yonder.evict -v 1 '\(yonder["dir"])'",
                    ], environment: yonder.environment
                ).run()
                let lines = outcome.output.split(separator: "\n")
                #expect(lines.first?.contains("Device or resource busy") == true, "\(outcome.output)")
                #expect(lines.last?.contains("Directory not empty") == true, "\(outcome.output)")
                // As --strict: it stopped at the one that refused.
                #expect(yonder.contentFiles.count == 2)
            }
        }

        @Test("EVICT-2, EVICT-3: the command line goes on past an open file and names the process that has it open")
        func goesOnPastOpenFiles() async throws {
            try await Installation.run { yonder in
                for name in ["dir/a", "dir/b", "dir/c"] { try yonder.write(Array(repeating: 1, count: 5000), to: name) }
                try await yonder.mountSource()
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                let holder = try await BackgroundProgram("tail", "-f", yonder["dir/b"])
                defer { holder.kill() }
                #expect(
                    try await eventually {
                        try await yonder.json(WhyReport.self, "why", yonder["dir/b"]).lines
                            .contains { $0.contains("open in tail (pid \(holder.processIdentifier))") }
                    })
                let outcome = try await yonder.yonder("evict", yonder["dir"])
                #expect(outcome.status == 1)
                #expect(
                    outcome.errors.contains(
                        "yonder: \(yonder["dir/b"]): open in tail (pid \(holder.processIdentifier))"),
                    "\(outcome.errors)")
                #expect(yonder.contentFiles.count == 1)
            }
        }

        @Test(
            "READ-5: archivers that trust holes never archive zeros",
            arguments: [
                "tar -C \"$1\" -S -cf - . | tar -C \"$2\" -xf -",
                "cp -r --sparse=always \"$1/.\" \"$2\"",
                "rsync -aS \"$1/\" \"$2/\"",
            ])
        func sparseToolsGetContent(copy: String) async throws {
            try await Installation.run { yonder in
                let bytes = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }
                try yonder.write(bytes, to: "file")
                try yonder.write(Array(repeating: 0, count: 200_000) + bytes, to: "with a hole")
                try yonder.write("x", to: "tiny")
                try await yonder.mountSource()
                let target = try yonder.directory.makeDirectory("copy")
                try await Command.shell(copy, yonder.mount.string, target.string).expectSuccess()
                let hashes = "cd \"$1\" && find . -type f -print0 | sort -z | xargs -0 sha256sum"
                #expect(
                    try await Command.shell(hashes, target.string).output
                        == Command.shell(hashes, yonder.source.string).output)
            }
        }
    }
}
