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
    /// Promises that the engine's own tests check order by order, as a shell sees them on a mount.
    @Suite struct ChangeBehaviours {
        private static func tree(_ tree: inout RemoteTree) {
            tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            tree.addDirectory("d", identifier: "d")
            tree.addFile("one", in: "d", content: RemoteContent("1"), identifier: "one")
            tree.addFile("two", in: "d", content: RemoteContent("22"), identifier: "two")
            tree.addFile("three", in: "d", content: RemoteContent("333"), identifier: "three")
        }

        private func bash(_ line: String, _ words: String...) async throws -> Command.Outcome {
            try await Command(["bash", "-c", line, "-"] + words, seconds: 60).run()
        }

        private func sent(_ mount: ProvidedMount, seconds: Int = 20) async throws -> Bool {
            try await mount.host.engine.waitUntilSynced(within: .seconds(seconds))
        }

        private func attribute(_ name: String, _ path: String) async throws -> String {
            try await Command.run("getfattr", "--only-values", "-n", "user.yonder.\(name)", path).output
        }

        @Test("NAME-12: a page that expires in the middle: ls shows every name once") func row6() async throws {
            try await ProvidedMount.run { tree in
                for number in 0..<3500 {
                    tree.addFile("f\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
                }
            } _: { mount async throws in
                mount.provider.faults.add(
                    .fail(FileProviderError(.pageExpired)), to: .enumerate, of: .rootContainer, skipping: 2, times: 1)
                let counted = try await bash(
                    "ls -U \"$1\" | sort | uniq -c | awk '{print $1}' | uniq -c", mount.path.string)
                #expect(counted.line.split(separator: " ") == ["3500", "1"], "\(counted.output)\(counted.errors)")
            }
        }

        @Test("READ-8: while hundreds of files come in the background, one that is read comes at once")
        func row30() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addDirectory("kept", identifier: "kept")
                for number in 0..<400 {
                    tree.addFile(
                        "f\(number)", in: "kept", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
                }
                tree.addFile("wanted", content: RemoteContent("wanted"), identifier: "wanted")
            } _: { mount async throws in
                // No fetch in the background ends before the test lets it: the read that waited for one would not end.
                let gate = Gate()
                for number in 0..<400 {
                    mount.provider.faults.add(.hold(gate), to: .fetch, of: ItemIdentifier("f\(number)"))
                }
                #expect(
                    try await Command.run(
                        "setfattr", "-n", "user.yonder.policy", "-v", "keepDownloaded", mount["kept"]
                    ).status == 0)
                #expect(await eventually(within: .seconds(20)) { gate.waiting >= 4 })
                #expect(try await Command.run("cat", mount["wanted"]).output == "wanted")
                #expect(gate.arrivals < 200)
                mount.provider.faults.clear()
            }
        }

        @Test("WRITE-12: what the remote cannot hold stays as it was set, is not pending, and not sent again")
        func rows52And53() async throws {
            try await ProvidedMount.run(
                options: .with(\.holds, [.contents, .filename, .parentItemIdentifier]), listing: .everything, Self.tree
            ) { mount async throws in
                let show = "stat -c '%a %Y' file; getfattr --only-values -n user.own file"
                let set = try await bash(
                    "cd \"$1\"; cat file; chmod 640 file; setfattr -n user.own -v mine file; touch -d @1000000000 file; "
                        + show, mount.path.string)
                #expect(set.output == "text640 1000000000\nmine", "\(set.errors)")
                #expect(try await sent(mount))
                #expect(try await attribute("sync", mount["file"]) == "synced")
                let calls = mount.provider.log.count(of: .modify)
                // Neither the remote's news nor an eviction take it away.
                mount.provider.change { $0.edit("file") { $0.favoriteRank = 1 } }
                try await mount.host.engine.refresh()
                #expect(await eventually { !mount.host.openInodes.isOpen(number("file", mount)) })
                try await mount.host.evictItem(identifier: "file")
                #expect(try await bash("cd \"$1\"; \(show)", mount.path.string).output == "640 1000000000\nmine")
                #expect(try await sent(mount))
                #expect(mount.provider.log.count(of: .modify) == calls)
                // Nor does an edit, which sends no attribute along.
                let edited = "cd \"$1\"; echo more >> file; stat -c %a file; getfattr --only-values -n user.own file"
                #expect(try await bash(edited, mount.path.string).output == "640\nmine")
                #expect(try await sent(mount))
                let edits = mount.provider.log.calls(of: .modify).dropFirst(calls).compactMap(\.fields)
                #expect(edits.contains { $0.contains(.contents) })
                #expect(edits.allSatisfy { !$0.contains(.extendedAttributes) }, "\(edits)")
                #expect(mount.provider.tree["file"]?.documentSize == 9)
                #expect(try await attribute("sync", mount["file"]) == "synced")
            }
        }

        private func number(_ identifier: ItemIdentifier, _ mount: ProvidedMount) -> InodeNumber {
            (try? mount.host.replica.database.item(identifier))?.inode.number ?? .root
        }

        @Test("SEND-15: what the remote made of a file is what the mount shows then") func row54() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.faults.add(.shouldFetchContent(RemoteContent("as it is kept")), to: .create, times: 1)
                #expect(try await bash("echo as it was sent > \"$1\"", mount["new"]).status == 0)
                #expect(try await sent(mount))
                #expect(
                    try await eventually { try await Command.run("cat", mount["new"]).output == "as it is kept" })
            }
        }

        @Test(
            "ERROR-5 and ERROR-6: what is refused stays here and is listed with the reason; others go, and so does it later"
        )
        func rows55And77() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.faults.add(.refuse(reason: "no such names here"), to: .create, times: 1)
                #expect(try await bash("echo bad > \"$1\"", mount["bad"]).status == 0)
                #expect(await eventually { mount.provider.log.count(of: .create) == 1 })
                #expect(try await eventually { try await attribute("sync", mount["bad"]) == "failed" })
                #expect(try await attribute("error", mount["bad"]).contains("no such names here"))
                #expect(try await bash("echo good > \"$1\"", mount["good"]).status == 0)
                #expect(await eventually(within: .seconds(10)) { mount.provider.tree.text(at: "good") == "good\n" })
                #expect(mount.provider.tree.text(at: "bad") == nil)
                #expect(try await Command.run("cat", mount["bad"]).output == "bad\n")
                // An edit is another try.
                #expect(try await bash("echo better > \"$1\"", mount["bad"]).status == 0)
                #expect(try await sent(mount))
                #expect(mount.provider.tree.text(at: "bad") == "better\n")
                #expect(try await Command.run("getfattr", "-n", "user.yonder.error", mount["bad"]).status != 0)
            }
        }

        @Test(
            "ERROR-5: what the provider excludes stays here, a directory with all that is made in it, and nothing is pending"
        )
        func row55Excluded() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.faults.fail(.create, with: FileProviderError(.excludedFromSync), times: 1)
                #expect(try await bash("mkdir \"$1\"; echo 1 > \"$1/a\"", mount["own"]).status == 0)
                #expect(try await sent(mount))
                #expect(try await bash("mkdir \"$1/b\"; echo 2 > \"$1/b/c\"", mount["own"]).status == 0)
                #expect(try await sent(mount))
                for name in ["own", "own/a", "own/b/c"] {
                    #expect(try await attribute("sync", mount[name]) == "excluded", "\(name)")
                }
                #expect(mount.provider.log.count(of: .create) == 1)
                #expect(try await bash("cat \"$1/a\" \"$1/b/c\"", mount["own"]).output == "1\n2\n")
            }
        }

        @Test(
            "ERROR-5: what the provider excludes on a change is here whole, this machine's own, and gone on the remote")
        func row55Known() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                let inode = try await bash("stat -c %i \"$1\"", mount["d/one"]).line
                mount.provider.faults.fail(.modify, of: "d", with: FileProviderError(.excludedFromSync), times: 1)
                #expect(try await bash("mv \"$1\" \"$2\"", mount["d"], mount["own"]).status == 0)
                #expect(try await eventually { try await attribute("sync", mount["own"]) == "excluded" })
                #expect(try await sent(mount))
                #expect(mount.provider.tree["d"] == nil && mount.provider.tree["one"] == nil)
                #expect(mount.provider.tree["file"] != nil)
                #expect(try await bash("cd \"$1\" && cat one two three", mount["own"]).output == "122333")
                #expect(try await bash("stat -c %i \"$1\"", mount["own/one"]).line == inode)
                // It cannot be evicted: there is no copy to fetch it from.
                _ = try await bash("setfattr -n user.yonder.evict -v 1 \"$1\"", mount.path.string)
                #expect(try await bash("cd \"$1\" && cat one two three", mount["own"]).output == "122333")
            }
        }

        @Test("CONFLICT-8: a deletion that the remote rejects is taken back: name and content are there again")
        func row58() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                let inode = try await bash("cat \"$1\" >/dev/null; stat -c %i \"$1\"", mount["file"]).line
                let gate = mount.provider.faults.hold(.delete, times: 1)
                mount.provider.faults.fail(.delete, with: FileProviderError(.deletionRejected), times: 1)
                #expect(try await Command.run("rm", mount["file"]).status == 0)
                #expect(try await bash("cat \"$1\"", mount["file"]).status != 0)
                gate.open()
                #expect(try await eventually { try await Command.run("cat", mount["file"]).output == "text" })
                #expect(try await Command.run("stat", "-c", "%i", mount["file"]).line == inode)
                #expect(try await bash("echo more >> \"$1\"", mount["file"]).status == 0)
                #expect(try await sent(mount))
                #expect(mount.provider.tree["file"]?.documentSize == 9)
                // It is an item like any other again: a second deletion is sent.
                #expect(try await Command.run("rm", mount["file"]).status == 0)
                #expect(try await sent(mount))
                #expect(mount.provider.tree["file"] == nil)
            }
        }

        @Test("CONFLICT-8: a file that is still open gets another inode when its deletion is rejected")
        func rejectedDeletionOfOpenFile() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                mount.provider.faults.fail(.delete, with: FileProviderError(.deletionRejected), times: 1)
                let script = """
                    import os, sys, time
                    path = sys.argv[1]
                    with open(path, 'r+b', buffering=0) as file:
                        before = os.fstat(file.fileno()).st_ino
                        os.unlink(path)
                        file.write(b'lost')
                        for _ in range(300):
                            if os.path.exists(path): break
                            time.sleep(0.05)
                        file.seek(0)
                        print(os.stat(path).st_ino != before, file.read(), open(path, 'rb').read())
                    """
                #expect(try await Command.python(script, mount["file"]).line == "True b'lost' b'text'")
                #expect(try await sent(mount))
                #expect(mount.provider.tree["file"]?.documentSize == 4)
            }
        }

        @Test("CHANGE-1: changes below a directory that no process has listed cost no listing, no row and no content")
        func row63() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                let known = try mount.host.replica.database.counts().knownItems
                mount.provider.log.clear()
                mount.provider.change { tree in
                    for number in 0..<500 { tree.addFile("n\(number)", in: "d", content: RemoteContent("n")) }
                    tree.write(RemoteContent("other"), to: "one")
                    tree.delete("two")
                }
                try await mount.host.engine.refresh()
                #expect(try mount.host.replica.database.counts().knownItems == known)
                #expect(mount.provider.log.count(of: .enumerate, "d") == 0)
                #expect(mount.provider.log.count(of: .fetch) == 0)
                #expect(try await bash("ls \"$1\" | wc -l; cat \"$1/one\"", mount["d"]).output == "502\nother")
            }
        }

        @Test("CHANGE-3: an expired anchor loses neither inodes, pins nor edits, and what is gone is looked up first")
        func row65() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                let before = try await bash("ls -iR \"$1\"; cat \"$1/d/one\"", mount.path.string).output
                #expect(
                    try await bash("setfattr -n user.yonder.policy -v keepDownloaded \"$1\"", mount["d/two"]).status
                        == 0)
                mount.host.engine.pause(.user)
                #expect(try await bash("echo edited > \"$1\"", mount["d/three"]).status == 0)
                mount.provider.changeSilently { $0.delete("file") }
                mount.provider.log.clear()
                mount.provider.faults.fail(.changes, with: FileProviderError(.syncAnchorExpired), times: 1)
                mount.host.engine.pause(nil)
                try await mount.host.engine.refresh()
                #expect(mount.provider.log.count(of: .item, "file") >= 1)
                #expect(try await eventually { try await Command.run("ls", mount.path.string).output == "d\n" })
                let after = try await bash("ls -iR \"$1\"; cat \"$1/d/one\"", mount.path.string).output
                // Only the line of the file that was deleted is missing.
                let (known, left) = (Set(before.split(separator: "\n")), Set(after.split(separator: "\n")))
                #expect(left.isSubset(of: known) && left.count == known.count - 1, "\(before)\(after)")
                #expect(try await attribute("policy", mount["d/two"]) == "keepDownloaded")
                #expect(try await sent(mount))
                #expect(mount.provider.tree.text(at: "d/three") == "edited\n")
            }
        }

        @Test(
            "CONFLICT-2: deleted on the remote, what is clean or not here goes, and what was changed here is made again"
        )
        func row67() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                _ = try await bash("ls -R \"$1\"; cat \"$1/d/one\"", mount.path.string)
                mount.host.engine.pause(.user)
                #expect(try await bash("echo edited > \"$1\"", mount["d/three"]).status == 0)
                mount.provider.changeSilently { tree in
                    for name in ["one", "two", "three"] { tree.delete(ItemIdentifier(name)) }
                }
                mount.host.engine.pause(nil)
                try await mount.host.engine.refresh()
                #expect(try await eventually { try await Command.run("ls", mount["d"]).output == "three\n" })
                #expect(try await sent(mount))
                #expect(try await Command.run("cat", mount["d/three"]).output == "edited\n")
                #expect(mount.provider.tree.text(at: "d/three") == "edited\n")
                #expect(mount.provider.tree["three"] == nil, "it is a new item")
            }
        }

        @Test("CHANGE-4: a mass deletion is held back and reported, and performed when the user agrees") func row68()
            async throws
        {
            try await Installation.run { yonder async throws in
                for number in 0..<300 { try yonder.write("x", to: "d/\(number)") }
                try yonder.write("x", to: "other")
                try await yonder.mountSource()
                _ = try await yonder.shell("find . >/dev/null")
                // At once: in the folder they go one after the other.
                _ = try await yonder.yonder("pause", yonder.mount.string)
                try await bash("rm -r \"$1\"/d/*", yonder.source.string).expectSuccess()
                try await Task.sleep(for: .milliseconds(500))
                _ = try await yonder.yonder("resume", yonder.mount.string)
                let signal = try await yonder.yonder("signal", "--wait")
                #expect(signal.status == 0 && signal.errors.contains("yonder retry"), "\(signal.errors)")
                #expect(try await yonder.json(SignalReport.self, "signal", "--wait").heldRemovals.count == 1)
                #expect(try await yonder.yonder("why", yonder.mount.string + "/d/7").output.contains("yonder retry"))
                #expect(try await yonder.shell("ls d | wc -l") == "300\n")
                let warnings = try await yonder.status().warnings
                #expect(warnings.contains { $0.contains("retry") }, "\(warnings)")
                // Held until the user agrees; other changes are applied.
                try yonder.write("y", to: "added")
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await yonder.shell("ls d | wc -l; cat added") == "300\ny")
                #expect(try await yonder.yonder("retry", yonder.mount.string).status == 0)
                #expect(try await eventually { try await yonder.shell("ls d | wc -l") == "0\n" })
                #expect(try await yonder.shell("cat other") == "x")
                #expect(try await !yonder.status().warnings.contains { $0.contains("retry") })
            }
        }

        @Test(
            "CONFLICT-7: a name that is taken on the remote: both are shown, the one that was made here under another")
        func row73() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.host.engine.pause(.user)
                #expect(try await bash("echo here > \"$1\"", mount["n.txt"]).status == 0)
                mount.provider.changeSilently { _ = $0.addFile("n.txt", content: RemoteContent("there")) }
                mount.host.engine.pause(nil)
                #expect(try await sent(mount))
                try await mount.host.engine.refresh()
                #expect(try await eventually { try await Command.run("cat", mount["n.txt"]).output == "there" })
                let names = try await bash("cd \"$1\" && ls n*.txt | wc -l && cat n\\ *.txt", mount.path.string)
                #expect(names.output == "2\nhere\n", "\(names.errors)")
                #expect(mount.provider.tree.items(in: .rootContainer).count { $0.filename.hasPrefix("n") } == 2)
            }
        }
    }
}
