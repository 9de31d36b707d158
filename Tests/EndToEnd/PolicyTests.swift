import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What is kept downloaded, and what is let go.
    @Suite struct Policies {
        private func content(_ name: String, of yonder: Installation) async throws -> String {
            try await Command.run("getfattr", "--only-values", "-n", "user.yonder.content", yonder[name]).output
        }

        private func set(_ policy: String, of name: String, _ yonder: Installation) async throws -> Command.Outcome {
            try await Command.run("setfattr", "-n", "user.yonder.policy", "-v", policy, yonder[name])
        }

        @Test("PIN-1 and PIN-4: pinning brings a tree that was never listed, what comes later, and survives the daemon")
        func pins() async throws {
            try await Installation.mounted([
                "dir/one": "one", "dir/sub/deeper/deep": "deep", "other/file": "other",
            ]) { yonder async throws in
                try await yonder.yonder("pin", yonder["dir"]).expectSuccess()
                #expect(
                    try await eventually(within: .seconds(10)) {
                        try await content("dir/sub/deeper/deep", of: yonder) == "materialized"
                    })
                let info = try await yonder.info("dir/sub/deeper/deep")
                #expect(info.policy == "inherited")
                #expect(info.effectivePolicy == "keepDownloaded")
                #expect(try await yonder.info("dir").policy == "keepDownloaded")
                #expect(try await content("other/file", of: yonder) == "dataless")

                // What comes on the remote, and what moves there here.
                try yonder.write("later", to: "dir/sub/later")
                _ = try await Command.run("mv", yonder["other/file"], yonder["dir/moved"])
                #expect(
                    try await eventually(within: .seconds(10)) {
                        let later = try await content("dir/sub/later", of: yonder)
                        let moved = try await content("dir/moved", of: yonder)
                        return later == "materialized" && moved == "materialized"
                    })
                // And what changed while no daemon ran.
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(try await yonder.yonder("shutdown").status == 0)
                try yonder.write("one, and longer", to: "dir/one")
                try await yonder.mountSource()
                #expect(
                    try await eventually(within: .seconds(10)) {
                        let info = try await yonder.info("dir/one")
                        return info.size == 15 && info.content == "materialized"
                    })
            }
        }

        @Test("PIN-3: what is pinned refuses with EPERM; unpinned it goes at once") func unpins() async throws {
            try await Installation.run { yonder in
                try yonder.write(Array(repeating: 65, count: 5000), to: "dir/file")
                try await yonder.mountSource()
                #expect(try await yonder.yonder("pin", yonder["dir"]).status == 0)
                #expect(try await yonder.yonder("download", yonder["dir"]).status == 0)
                for name in ["dir", "dir/file"] {
                    let evict = try await Command.run(
                        "setfattr", "-n", "user.yonder.evict", "-v", "1", yonder[name])
                    #expect(evict.errors.contains("Operation not permitted"), "\(name): \(evict.errors)")
                }
                let refused = try await yonder.json(TransferSummary.self, "evict", yonder["dir/file"])
                #expect(refused.refusals.map(\.code) == ["nonEvictable"])
                let reason = refused.refusals.first?.reason ?? ""
                #expect(reason.contains("because '\(yonder["dir"])' is; 'yonder unpin' that first"), "\(reason)")
                let why = try await yonder.json(WhyReport.self, "why", yonder["dir/file"]).lines
                #expect(why.contains { $0.contains("kept downloaded, because '\(yonder["dir"])' is") }, "\(why)")
                let outcome = try await yonder.run(
                    "yonder unpin \"$1\" && yonder evict --strict \"$1\"", yonder["dir"])
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(yonder.contentFiles.isEmpty)
            }
        }

        @Test("PIN-6: 'yonder wait --downloads' waits for what is pinned, also with a path below the mount")
        func waitsForDownloads() async throws {
            let paths = ["dir/sub/deeper/deep"] + (1...80).map { "dir/\($0)" }
            let files = Dictionary(uniqueKeysWithValues: paths.map { ($0, "content") })
            try await Installation.mounted(files) { yonder async throws in
                try await yonder.yonder("pin", yonder["dir"]).expectSuccess()
                try await yonder.yonder("wait", "--downloads", "--timeout", "60", yonder["dir"]).expectSuccess()
                for path in paths { #expect(try await content(path, of: yonder) == "materialized", "\(path)") }
            }
        }

        @Test("the attribute says and takes the item's own policy") func attribute() async throws {
            try await Installation.mounted(["dir/file": "x"], options: ["--read-only"]) { yonder async throws in
                let read = { () async throws in
                    try await Command.run("getfattr", "--only-values", "-n", "user.yonder.policy", yonder["dir"]).output
                }
                #expect(try await read() == "inherited")
                for policy in ["lazy", "lazyEvictOnRemoteUpdate", "keepDownloaded", "inherited"] {
                    try await set(policy, of: "dir", yonder).expectSuccess()
                    #expect(try await read() == policy)
                }
                #expect(try await set("always", of: "dir", yonder).errors.contains("Invalid argument"))
            }
        }

        @Test("PIN-5: a change on the remote: fetched again, or evicted") func remoteChanges() async throws {
            try await Installation.run { yonder in
                for name in ["kept", "let go", "usual", "unread"] { try yonder.write("old", to: name) }
                try await yonder.mountSource()
                _ = try await Command.shell("cd \"$1\" && cat kept usual 'let go'", yonder.mount.string)
                #expect(try await set("keepDownloaded", of: "kept", yonder).status == 0)
                #expect(try await set("lazyEvictOnRemoteUpdate", of: "let go", yonder).status == 0)
                for name in ["kept", "let go", "usual", "unread"] { try yonder.write("newer", to: name) }
                #expect(try await yonder.yonder("signal", "--wait", yonder.mount.string).status == 0)
                #expect(
                    try await eventually(within: .seconds(10)) {
                        let (kept, usual) = (try await yonder.info("kept"), try await yonder.info("usual"))
                        return kept.size == 5 && usual.size == 5 && kept.content == "materialized"
                            && usual.content == "materialized"
                    })
                #expect(try await content("let go", of: yonder) == "dataless")
                #expect(try await content("unread", of: yonder) == "dataless")
                #expect(try await Command.run("cat", yonder["usual"]).output == "newer")
            }
        }

        @Test("PIN-1 and PIN-5: a file that takes another's place in the source is pinned and here as that was")
        func replacedInTheSource() async throws {
            try await Installation.run { yonder in
                for name in ["pinned", "read", "remote"] { try yonder.write("old", to: name) }
                try await yonder.mountSource()
                #expect(try await yonder.yonder("pin", yonder["pinned"]).status == 0)
                #expect(try await yonder.yonder("favorite", yonder["pinned"]).status == 0)
                #expect(try await yonder.yonder("tag", "--set", "red", yonder["pinned"]).status == 0)
                #expect(try await yonder.shell("cat read; ls") == "oldpinned\nread\nremote\n")
                #expect(
                    try await eventually { try await content("pinned", of: yonder) == "materialized" })
                for name in ["pinned", "read", "remote"] {
                    try yonder.write("newer", to: ".new")
                    _ = try await Command.run(
                        "mv", yonder.source.appending(".new").string, yonder.source.appending(name).string)
                }
                #expect(
                    try await eventually(within: .seconds(10)) {
                        for name in ["pinned", "read"] {
                            let info = try await yonder.info(name)
                            guard info.size == 5, info.content == "materialized" else { return false }
                        }
                        return true
                    })
                let info = try await yonder.info("pinned")
                #expect(info.policy == "keepDownloaded" && info.favoriteRank != nil && info.tags == ["red"])
                #expect(try await content("remote", of: yonder) == "dataless")
            }
        }

        @Test("PIN-3: what was uploaded can be evicted at once") func evictsAfterUploads() async throws {
            try await Installation.mounted(["there": "x"]) { yonder async throws in
                let script = "head -c 100000 /dev/urandom > \"$1\" && yonder wait && yonder evict --strict \"$1\""
                for _ in 0..<3 {
                    try await yonder.run(script, yonder["new"]).expectSuccess()
                    #expect(try await content("new", of: yonder) == "dataless")
                }
            }
        }
    }
}
