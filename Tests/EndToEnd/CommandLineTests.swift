import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The commands, what they print and how they end.
    @Suite struct CommandLine {
        @Test("CMD-12: what of the configuration file has no effect is told by mount and status, and the rest applies")
        func configuration() async throws {
            try await Installation.run { yonder in
                let file = yonder.directory["config.toml"].string
                let text = "[materialization]\ndenny = [\"x\"]\n[ignore]\nnames = [\"*.own\"]\n[ignored]\nnames = []\n"
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                let words = ["mount", yonder.source.string, yonder.mount.string]
                func mount() async throws -> String {
                    let outcome = try await Command(
                        [Installation.program] + words, environment: yonder.environment, seconds: 30
                    ).run()
                    #expect(outcome.status == 0)
                    return outcome.errors
                }
                #expect(
                    try await mount() == """
                        yonder: warning: '\(file)': 'ignored' means nothing, and is ignored
                        yonder: warning: '\(file)': 'denny' in [materialization] means nothing, and is ignored

                        """)
                #expect(try await yonder.yonder("status").output.contains("'denny' in [materialization] means nothing"))
                try "x".write(toFile: yonder["file.own"], atomically: false, encoding: .utf8)
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(!FileManager.default.fileExists(atPath: yonder.source.appending("file.own").string))
                #expect(try await yonder.yonder("shutdown").status == 0)
                try "[ignore]\nnames = 5\n".write(toFile: file, atomically: true, encoding: .utf8)
                let mistake = "'ignore.names' has a value of another type than it takes"
                #expect(
                    try await mount()
                        == "yonder: warning: '\(file)': what it said before applies, and nothing new: \(mistake)\n")
                // What was never to be sent is not sent because of a mistake.
                try "x".write(toFile: yonder["other.own"], atomically: false, encoding: .utf8)
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(!FileManager.default.fileExists(atPath: yonder.source.appending("file.own").string))
                #expect(!FileManager.default.fileExists(atPath: yonder.source.appending("other.own").string))
                #expect(try await yonder.yonder("shutdown").status == 0)
                let many = (1...7).map { "[unknown\($0)]\n" }.joined()
                try many.write(toFile: file, atomically: true, encoding: .utf8)
                let told = try await mount()
                #expect(told.contains("'unknown5'") && !told.contains("'unknown6'"), "\(told)")
                #expect(told.hasSuffix("yonder: 2 more warnings: see 'yonder status'\n"), "\(told)")
                #expect(try await yonder.yonder("shutdown").status == 0)
                try FileManager.default.removeItem(atPath: file)
                #expect(try await mount() == "")
            }
        }

        @Test("CMD-10: ls lists the working directory by default, by name") func listsTheWorkingDirectory() async throws
        {
            try await Installation.run { yonder in
                for name in ["b", "C", "a", "d/e"] { try yonder.write(name, to: name) }
                try await yonder.mountSource()
                #expect(try await Command.run("ls", yonder.mount.string).status == 0)
                let listing = try await yonder.run("cd \"$1\" && yonder ls | awk '{print $NF}'", yonder.mount.string)
                #expect(listing.output == "C\na\nb\nd/\n", "\(listing.errors)")
                // More than one part, in another order than they came here.
                try await yonder.shell("for i in $(seq 1100 -1 1); do : > d/$i; done")
                let large = try await yonder.run("yonder ls -0 \"$1\" | tr '\\0' '\\n' | LC_ALL=C sort -c", yonder["d"])
                #expect(large.status == 0, "\(large.errors)")
                #expect(try await yonder.run("yonder ls -0 \"$1\" | tr -dc '\\0' | wc -c", yonder["d"]).line == "1101")
            }
        }

        @Test("every kind of failure has its exit status") func exitStatus() async throws {
            try await Installation.run { yonder in
                #expect(try await yonder.yonder("status").status == 69)
                #expect(try await yonder.yonder("info").status == 64)
                #expect(try await yonder.yonder("frobnicate").status == 64)
                try await yonder.mountSource()
                #expect(try await yonder.yonder("info", "/etc/passwd").status == 69)
                let missing = try await yonder.yonder("info", yonder["missing"])
                #expect(missing.status == 1)
                #expect(missing.errors.hasPrefix("yonder: \(yonder["missing"]): "), "\(missing.errors)")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("unmount", "mount").status == 69)
            }
        }

        @Test("status shows the daemon, and ls distinguishes an unlisted directory from an empty one")
        func tellsStates() async throws {
            try await Installation.mounted { yonder async throws in
                let report = try await yonder.json(StatusReport.self, "status")
                #expect(report.version == Version.current)
                #expect(report.daemon.worker == yonder.daemon && report.daemon.restarts == 0)
                let unlisted = try await yonder.yonder("ls", yonder.mount.string)
                #expect(unlisted.status == 0 && unlisted.errors.contains("not been listed"), "\(unlisted.errors)")
                #expect(try await Command.run("ls", yonder.mount.string).output == "")
                let empty = try await yonder.yonder("ls", yonder.mount.string)
                #expect(empty.status == 0 && empty.errors == "" && empty.output == "")
            }
        }

        @Test("ERROR-4: ls never materializes, info has every field, paths may be relative or lead over links")
        func looksWithoutTouching() async throws {
            try await Installation.mounted(["dir/sub/file": "text"]) { yonder async throws in
                #expect(try await yonder.json([ItemInformation].self, "ls", "-R", yonder.mount.string) == [])
                #expect(try await yonder.info("").content == "dataless")
                _ = try await Command.run("ls", yonder["dir"])
                let items = try await yonder.json([ItemInformation].self, "ls", "-R", yonder.mount.string)
                #expect(items.map(\.path) == [yonder["dir"], yonder["dir/sub"]])
                #expect(items.map(\.content) == ["materialized", "dataless"])
                let unknown = try await yonder.yonder("info", yonder["dir/sub/file"])
                #expect(unknown.errors.contains("has not been listed"))

                try FileManager.default.createSymbolicLink(
                    atPath: yonder.directory["link"].string, withDestinationPath: "mount/dir")
                let text = try await Command(
                    [
                        "sh", "-c", "cd \"$1\" && \"$2\" info --json ../source/../link/sub", "sh", yonder.source.string,
                        Installation.program,
                    ], environment: yonder.environment
                ).run().outputBytes
                let fields = try #require(try JSONSerialization.jsonObject(with: Data(text)) as? [String: Any])
                #expect(
                    Set(fields.keys) == [
                        "path", "inode", "identifier", "kind", "size", "modified", "content", "localBytes", "sync",
                        "pendingFields", "policy", "effectivePolicy", "contentVersion", "metadataVersion", "isTrashed",
                        "trashParent", "error", "mode", "uid", "gid",
                    ])
                #expect(fields["path"] as? String == yonder["dir/sub"])
                #expect(fields["kind"] as? String == "directory")
                #expect(fields["error"] is NSNull)
            }
        }

        @Test("ERROR-4: info shows the mode, the owner and the group that stat shows") func modeAndOwner()
            async throws
        {
            try await Installation.mounted(["file": "text"]) { yonder async throws in
                try await yonder.shell("chmod 750 file; mkdir dir; ln -s file link")
                for name in ["", "file", "dir", "link"] {
                    let item = try await yonder.info(name)
                    let shown = try await Command.run("stat", "-c", "%04a %u %g", yonder[name]).line
                    let owner = [item.uid, item.gid].map { $0.map { "\($0)" } ?? "none" }
                    #expect(([item.mode ?? "none"] + owner).joined(separator: " ") == shown, "\(name)")
                }
                let rows = try await yonder.yonder("info", yonder["file"]).output.split(separator: "\n")
                for (word, value) in [("mode", "0750"), ("owner", "\(geteuid())"), ("group", "\(getegid())")] {
                    #expect(rows.contains { $0.hasPrefix(word) && $0.hasSuffix(" " + value) }, "\(rows)")
                }
            }
        }

        @Test("EVICT-10: download materializes what was never listed; status counts it") func downloads() async throws {
            try await Installation.run { yonder in
                for number in 0..<40 {
                    try yonder.write(Array(repeating: 1, count: 1000), to: "dir/\(number % 4)/\(number)")
                }
                try await yonder.mountSource()
                let summary = try await yonder.json(TransferSummary.self, "download", yonder["dir/2"], yonder["dir/3"])
                #expect(summary.refusals == [])
                #expect(summary.bytes == 20_000)
                let status = try await yonder.status()
                #expect(status.items.materializedFiles == 20)
                #expect(status.bytes == DomainStatus.Bytes(local: 20_000, limit: nil))
                #expect(status.connection == .online)
                #expect(status.pending == DomainStatus.Pending(items: 0, bytes: 0))
                let both = try await yonder.yonder("download", yonder["dir/2"], yonder["missing"])
                #expect(both.status == 1)
                #expect(both.errors.hasPrefix("yonder: \(yonder["missing"]): "))
            }
        }
    }
}
