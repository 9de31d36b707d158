import Control
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
    /// Commands that act on items, and the manager's calls behind some of them.
    @Suite struct ItemCommands {
        @Test("Issue 14, 3.2: yonder download --range brings that range and no more") func range() async throws {
            try await Installation.run { yonder in
                let size = 64 << 20
                try yonder.write([UInt8](repeating: 7, count: size), to: "file")
                try await yonder.mountSource()
                _ = try await yonder.shell("ls")
                let done = try await yonder.json(
                    TransferSummary.self, "download", "--range", "1048576:4096", yonder["file"])
                #expect(done.items == 1 && done.bytes == 4096 && done.refusals.isEmpty)
                // With the end of the fetch, which may be longer than the range.
                let info = try await { () async throws -> ItemInformation in
                    _ = await eventually { (try? await yonder.info("file").localBytes) ?? 0 > 0 }
                    return try await yonder.info("file")
                }()
                #expect(info.content == "partial")
                #expect(info.localBytes >= 4096 && info.localBytes < Int64(size / 2))
                // To the end, and not beyond.
                let last = try await yonder.json(
                    TransferSummary.self, "download", "--range", "\(size - 10):1000", yonder["file"])
                #expect(last.bytes == 10)
                for wrong in ["x", "1", "-1:5", "5:0", "0:99999999999999999999"] {
                    let outcome = try await yonder.yonder("download", "--range=\(wrong)", yonder["file"])
                    #expect(outcome.status == 64, "\(wrong)")
                }
                let two = try await yonder.yonder("download", "--range", "0:1", yonder["file"], yonder["file"])
                #expect(two.status == 64)
                let beyond = try await yonder.yonder("download", "--range", "\(size):1", yonder["file"])
                #expect(beyond.status == 1 && beyond.errors.contains("the file ends before"))
                let farthest = try await yonder.yonder(
                    "download", "--range", "\(Int64.max):\(Int64.max)", yonder["file"])
                #expect(farthest.status == 1 && farthest.errors.contains("the file ends before"), "\(farthest.errors)")
                #expect(try await yonder.yonder("download", "--range", "0:1", yonder.mount.string).status == 1)
            }
        }

        @Test(
            "CMD-1: a command changes nothing in a directory in which a system call may not",
            .ordinaryUser)
        func deniedByModes() async throws {
            try await OrdinaryUser.run { user in
                let outcome = try await user.shell(
                    """
                    set -e; mkdir "$SOURCE/d"; echo x > "$SOURCE/d/file"; echo y > "$SOURCE/free"; chmod 555 "$SOURCE/d"
                    yonder mount "$SOURCE" "$MOUNT" >&2; ls -R "$MOUNT" >&2
                    try() { yonder "$@" 2>&1 | grep -c 'Permission denied' || true; }
                    try rename "$MOUNT/d/file" name; try move "$MOUNT/d/file" "$MOUNT"; try move "$MOUNT/free" "$MOUNT/d"
                    try mkdir "$MOUNT/d/new"; try add "$SOURCE/free" "$MOUNT/d"; try delete "$MOUNT/d/file"
                    try trash put "$MOUNT/d/file"; ls "$MOUNT"; ls "$MOUNT/d"
                    chmod 755 "$MOUNT/d"; yonder rename "$MOUNT/d/file" name >&2; yonder trash put "$MOUNT/free" >&2; ls "$MOUNT/d"
                    """)
                #expect(
                    outcome.output == String(repeating: "1\n", count: 7) + "d\nfree\nfile\nname\n",
                    "\(outcome.output)\(outcome.errors)")
            }
        }

        @Test("EVICT-7: a file that the remote does not have yet is downloaded already") func downloadsWhatIsHere()
            async throws
        {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell("ls")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo new > unsent; mkdir folder; echo new > folder/unsent")
                let here = TransferSummary(alreadyLocal: [yonder["unsent"]])
                #expect(try await yonder.json(TransferSummary.self, "download", yonder["unsent"]) == here)
                let range = ["download", "--range", "1:2", yonder["unsent"]]
                #expect(try await yonder.yonder(words: range).status == 0)
                let folder = try await yonder.json(TransferSummary.self, "download", yonder["folder"])
                #expect(folder.refusals == [] && folder.alreadyLocal == nil)
                try await yonder.shell("setfattr -n user.yonder.download -v 1 unsent")
                let outcome = try await yonder.yonder("download", yonder["unsent"])
                #expect(outcome.status == 0 && outcome.errors == "", "\(outcome.errors)")
                // On a terminal in words.
                let shown = try await yonder.run(
                    "script -qec \"$1 download $2\" /dev/null", Installation.program, yonder["unsent"])
                #expect(shown.output.contains("is already on this machine") && !shown.output.contains("0 items"))
            }
        }

        @Test("CMD-1: commands act on the name that they are given, also where a file has several")
        func hardLinks() async throws {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell(
                    """
                    mkdir A B; echo x > A/f; ln A/f B/f; echo x > kept; for n in gone moved renamed tagged thrown; do ln kept $n; done
                    """)
                for arguments in [
                    ["delete", yonder["B/f"], yonder["gone"]], ["move", yonder["moved"], yonder["B"]],
                    ["rename", yonder["renamed"], "other"], ["tag", yonder["tagged"], "--set", "a"],
                    ["trash", "put", yonder["thrown"]],
                ] {
                    let outcome = try await yonder.yonder(words: arguments)
                    #expect(outcome.status == 0, "\(arguments): \(outcome.errors)")
                }
                #expect(
                    try await yonder.shell("find A B kept other tagged -type f | sort; ls") == """
                        A/f
                        B/moved
                        kept
                        other
                        tagged
                        A
                        B
                        kept
                        other
                        tagged

                        """)
                let tagged = try await yonder.yonder("info", yonder["tagged"])
                let kept = try await yonder.yonder("info", yonder["kept"])
                #expect(
                    tagged.output.contains("tags") && !kept.output.contains("tags"), "\(tagged.output)\(kept.output)")
                let trashed = try await yonder.yonder("trash", "list")
                #expect(trashed.output.contains(yonder["thrown"]), "\(trashed.output)")
                // A file of the same name in the working directory.
                let restored = try await yonder.run(
                    "cd \"$1\" && echo new > thrown && yonder trash restore thrown > /dev/null && cat thrown 'thrown (2)'",
                    yonder.mount.string)
                #expect(restored.output == "new\nx\n", "\(restored.errors)")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                let names = try FileManager.default.contentsOfDirectory(atPath: yonder.source.string)
                #expect(
                    names.filter { !$0.hasPrefix(".") }.sorted() == [
                        "A", "B", "kept", "other", "tagged", "thrown", "thrown (2)",
                    ])
            }
        }

        @Test("ERROR-2: a command that takes item by item ends when it is interrupted") func interrupted() async throws
        {
            try await Installation.run { yonder in
                for number in 0..<1500 { try yonder.write("", to: "d/\(number)") }
                try await yonder.mountSource()
                // Without a program: under load all may be gone before one has counted them.
                func left() throws -> Int { try FileManager.default.contentsOfDirectory(atPath: yonder["d"]).count }
                #expect(try left() == 1500)
                let deleting = try await BackgroundProgram(
                    "sh", "-c", "exec '\(Installation.program)' delete \"$1\"/*", "sh", yonder["d"],
                    environment: yonder.environment)
                defer { deleting.kill() }
                #expect(
                    await eventually(within: .seconds(30)) { !FileManager.default.fileExists(atPath: yonder["d/0"]) })
                deleting.kill()
                #expect(
                    try await eventually {
                        let before = try left()
                        try await Task.sleep(for: .seconds(1))
                        return try left() == before
                    })
                #expect(try left() > 0)
            }
        }

        @Test("SEND-8: what is to be deleted is listed with its path, also below a directory that is removed here")
        func pathsOfDeletions() async throws {
            try await Installation.mounted(["outer/inner/file": "x"]) { yonder async throws in
                try await yonder.shell("find .")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("rm -r outer")
                let pending = try await yonder.yonder("pending", "mount")
                for path in ["outer", "outer/inner", "outer/inner/file"] {
                    let isListed = pending.output.contains(" \(yonder[path])\n")
                    #expect(isListed, "\(path): \(pending.output)")
                }
                // The reason is the same for all of them.
                let reasons = pending.output.split(separator: "\n").filter { $0.hasPrefix("  ") }
                #expect(reasons.count > 2 && reasons.first?.contains("paused") == true, "\(pending.output)")
                #expect(reasons.dropFirst().allSatisfy { $0 == "  as above" }, "\(pending.output)")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
            }
        }

        @Test("Issue 14, 3.2: yonder upload sends what is pending and waits, and says why something cannot be sent")
        func upload() async throws {
            try await Installation.mounted(["directory/file": "old"]) { yonder async throws in
                try await yonder.shell("cat directory/file; echo new > directory/file; echo other > other")
                #expect(try await yonder.yonder("upload", yonder["directory"], yonder["other"]).status == 0)
                #expect(yonder.sourceText("directory/file") == "new\n")
                #expect(yonder.sourceText("other") == "other\n")
                // Again, though nothing is pending: the field is sent.
                try yonder.write("x", to: "elsewhere")
                let again = try await yonder.yonder(
                    "upload", "--field", "permissions", "--field", "contents", yonder["other"])
                #expect(again.status == 0, "\(again.errors)")
                let wrong = try await yonder.yonder("upload", "--field", "nonsense", yonder["other"])
                #expect(wrong.status == 64 && wrong.errors.contains("favoriteRank"))
                try await yonder.shell("mkfifo pipe")
                try await yonder.yonder("upload", yonder["pipe"]).expectFailure(saying: "never uploaded")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo more >> other")
                #expect(try await yonder.yonder("upload", yonder["other"]).status == 1)
                #expect(yonder.sourceText("other") == "other\n")
            }
        }

        @Test("Issue 14, 3.3: items are made, renamed, moved, added and deleted by command, and the remote follows")
        func actions() async throws {
            try await Installation.mounted(["file": "text", "old/inner": "inner"]) { yonder async throws in
                _ = try await yonder.shell("ls -R")
                typealias Changed = ItemsReport<ItemInformation>
                let outside = try yonder.directory.makeFile("outside.txt", Array("from outside".utf8))
                let made = try await yonder.json(Changed.self, "mkdir", yonder["new"], yonder["old/deeper"])
                #expect(made.items.map(\.path) == [yonder["new"], yonder["old/deeper"]])
                #expect(made.items.map(\.kind) == ["directory", "directory"])
                let renamed = try await yonder.json(Changed.self, "rename", yonder["file"], "renamed")
                #expect(renamed.items.map(\.path) == [yonder["renamed"]])
                let moved = try await yonder.json(Changed.self, "move", yonder["renamed"], yonder["new"])
                #expect(moved.items.map(\.path) == [yonder["new/renamed"]])
                let added = try await yonder.json(Changed.self, "add", outside.string, yonder["new"])
                #expect(added.items.map(\.path) == [yonder["new/outside.txt"]])
                #expect(try await yonder.yonder("delete", yonder["old"]).status == 0)
                let left = try await yonder.shell("find . -mindepth 1 | sort")
                #expect(left == "./new\n./new/outside.txt\n./new/renamed\n")
                #expect(try await yonder.shell("cat new/outside.txt new/renamed") == "from outsidetext")
                try await yonder.expectSent()
                #expect(yonder.sourceText("new/renamed") == "text")
                #expect(yonder.sourceText("new/outside.txt") == "from outside")
                // What cannot be done is said, with the rest done.
                let taken = try await yonder.yonder("mkdir", yonder["new"], yonder["fresh"])
                #expect(taken.status == 1 && taken.errors.contains(yonder["new"]))
                #expect(try await yonder.shell("ls") == "fresh\nnew\n")
                #expect(try await yonder.yonder("rename", yonder["new/renamed"], "a/b").status == 1)
                #expect(try await yonder.yonder("rename", yonder["nothing"], "x").status == 1)
                #expect(try await yonder.yonder("move", yonder["new"]).status == 64)
                #expect(try await yonder.yonder("move", yonder["new"], yonder["new"]).status == 1)
                #expect(try await yonder.yonder("add", "/nonexistent", yonder["new"]).status == 1)
                #expect(try await yonder.yonder("mkdir", "/tmp/not-in-a-mount").status == 69)
            }
        }

        @Test("commands refuse an empty path and files that cannot be copied, and leave nothing behind")
        func refusesOddArguments() async throws {
            try await Installation.mounted(["file": "text", "folder/inner": "inner"]) { yonder async throws in
                // An unset variable in a script must not mean the working directory.
                let empty = try await yonder.run("cd \"$1\" && yonder delete \"\"", yonder.mount.string)
                #expect(empty.status == 64 && yonder.sourceText("file") == "text", "\(empty.errors)")
                let directory = try yonder.directory.makeDirectory("local directory").string
                let fifo = yonder.directory["fifo"].string
                #expect(try await Command.run("mkfifo", fifo).status == 0)
                for source in [directory, fifo, yonder.directory["missing"].string] {
                    let refused = try await yonder.yonder("add", source, yonder.mount.string)
                    #expect(refused.status == 1 && refused.errors.hasPrefix("yonder: \(source): "), "\(refused.errors)")
                }
                #expect(try await yonder.shell("ls") == "file\nfolder\n")
                // The directory was never listed.
                #expect(try await yonder.yonder("move", yonder["file"], yonder["folder"]).status == 0)
                #expect(try await yonder.shell("ls folder") == "file\ninner\n")
                try await yonder.yonder("delete", yonder.mount.string).expectFailure(saying: "the root of a domain")
                let named = try await yonder.yonder("rename", yonder["folder"], "a/b")
                #expect(named.status == 1 && named.errors.contains("'a/b' is not a valid file name"), "\(named.errors)")
            }
        }

        @Test("Issue 14, 3.3: favourites, tags and last use are set, shown by ls and info, and taken away") func marks()
            async throws
        {
            try await Installation.mounted(["file": "text", "plain": "plain"]) { yonder async throws in
                _ = try await yonder.shell("ls")
                #expect(try await yonder.yonder("favorite", "--rank", "3", yonder["file"]).status == 0)
                let tags = ["--set", "red", "--set", "to do", "--set", "red"]
                #expect(try await yonder.yonder(words: ["tag", yonder["file"]] + tags).status == 0)
                #expect(try await yonder.yonder("used", "--at", "2026-01-31T12:00:00Z", yonder["file"]).status == 0)
                let info = try await yonder.info("file")
                #expect(info.favoriteRank == 3)
                #expect(info.tags == ["red", "to do"])
                #expect(info.lastUsed == "2026-01-31T12:00:00.000000000Z")
                let words = try await yonder.yonder("info", yonder["file"]).output
                for text in ["favourite", "red, to do", "2026-01-31T12:00:00"] { #expect(words.contains(text)) }
                let list = try await yonder.yonder("ls", yonder.mount.string).output.split(separator: "\n")
                #expect(
                    list.first?.hasSuffix("[favourite 3; tags red, to do; used 2026-01-31T12:00:00Z]")
                        == true,
                    "\(list)")
                #expect(list.last?.hasSuffix("plain") == true, "\(list)")
                let items = try await yonder.json([ItemInformation].self, "ls", yonder.mount.string)
                #expect(items.first?.favoriteRank == 3 && items.first?.tags == ["red", "to do"])
                #expect(items.last?.favoriteRank == nil && items.last?.tags == nil)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                // They outlive the daemon.
                try await yonder.killDaemon()
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.info("file").tags == ["red", "to do"])
                #expect(try await yonder.yonder("favorite", "--remove", yonder["file"]).status == 0)
                #expect(try await yonder.yonder("tag", "--clear", yonder["file"]).status == 0)
                let bare = try await yonder.info("file")
                #expect(bare.favoriteRank == nil && bare.tags == nil && bare.tagData == nil)
                #expect(try await yonder.yonder("tag", yonder["file"]).status == 64)
                #expect(try await yonder.yonder("used", "--at", "yesterday", yonder["file"]).status == 64)
            }
        }

        @Test("E11 (issue 14, 3.2) a provider evicts, downloads a range and asks for an upload through its manager")
        func theManagersCalls() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("file", content: RemoteContent("0123456789"), identifier: "file")
                tree.addFile("large", content: .pattern(size: 1 << 30, seed: 1), identifier: "large")
            } _: { mount async throws in
                let manager = try #require(mount.provider.manager)
                let database = mount.host.replica.database
                _ = try await Command.run("ls", mount.path.string)
                try await manager.requestDownloadForItem(withIdentifier: "file", requestedRange: nil)
                #expect(try database.item("file")?.inode.content == .materialized)
                try await manager.requestDownloadForItem(withIdentifier: "large", requestedRange: 4096..<8192)
                let ranges = mount.provider.log.calls(of: .fetch, "large").compactMap(\.range)
                #expect(ranges.contains { $0.contains(4096) } && ranges.allSatisfy { $0.count < 1 << 28 }, "\(ranges)")
                try await manager.requestModification(of: [.contents, .permissions], forItemWithIdentifier: "file")
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                let sent = mount.provider.log.calls(of: .modify, "file").compactMap(\.fields)
                #expect(sent.contains { $0.isSuperset(of: [.contents, .permissions]) }, "\(sent)")
                try await manager.evictItem(identifier: "file")
                #expect(try database.item("file")?.inode.content == .dataless)
                await #expect(throws: FileProviderError.self) {
                    try await manager.requestModification(of: .contents, forItemWithIdentifier: "file")
                }
                await #expect(throws: FileProviderError.self) { try await manager.evictItem(identifier: "nothing") }
            }
        }
    }
}
