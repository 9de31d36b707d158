import Control
import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What a shell writes on a mounted folder, and what becomes of it in the folder.
    @Suite struct Writing {
        @Test("a shell session writes all kinds of things, and the source is as the mount") func arrives() async throws
        {
            try await Installation.run { yonder in
                for number in 0..<20 { try yonder.write("old \(number)\n", to: "old/\(number)") }
                try yonder.write("#!/bin/sh\necho ran\n", to: "program")
                try yonder.write(Array(repeating: 7, count: 300_000), to: "big")
                try await yonder.mountSource()
                try await yonder.shell(
                    """
                    echo made > made; mkdir -p new/deeper/still empty; echo deep > new/deeper/still/file
                    head -c 2000000 /dev/urandom > random; : > nothing; echo more >> old/1; sed -i s/old/new/ old/2
                    printf X | dd of=big bs=1 seek=100000 conv=notrunc status=none; truncate -s 100 old/3
                    truncate -s 1000000 sparse; mv old/4 old/renamed; mv old/5 new/deeper/moved; mv old/6 old/7
                    rm old/8; rm -r old/9 old/10; chmod 600 old/11; chmod 755 made; chmod 2750 empty
                    touch -d '1999-12-31 23:59:59.123456789 UTC' old/12 empty; touch -d '1960-01-01 UTC' nothing
                    ln -s made link; ln -s nowhere dangling; ln -sfn nothing link; ln made 'second name'
                    cp -a old 'a copy'; mv 'a copy' new/copy; mkdir 'odd'; echo x > "odd/$(printf 'line\\nbreak')"
                    echo x > "odd/$(printf 'caf\\303\\251')"; echo y > "odd/$(printf 'cafe\\314\\201')"
                    echo z > 'odd/*?[]{}$`"\\'; echo e > 'odd/🌍'
                    """)
                #expect(try await yonder.shell("./made || true; stat -c %h made") == "2\n")
                #expect(
                    try await yonder.shell("cat old/7 new/deeper/moved; ls new/copy | wc -l") == "old 6\nold 5\n15\n")
                try await yonder.expectSent()
                #expect(yonder.sourceText("old/7") == "old 6\n")
                #expect(yonder.sourceText("old/2") == "new 2\n")
                #expect(yonder.sourceText("second name") == "made\n")
                #expect(try await yonder.info("made").sync == "synced")
                #expect(try await yonder.conflicts() == [:])
                // And once more, over what is there now.
                try await yonder.shell(
                    """
                    rm -r old; mv new old; echo more >> made; rm link; mkdir link; echo x > link/file
                    mv odd old/deeper; chmod 644 made; rmdir empty; echo x > empty
                    """)
                try await yonder.expectSent()
                #expect(yonder.sourceText("second name") == "made\nmore\n")
            }
        }

        @Test("MOUNT-6: df shows the room that the remote has, and asks it seldom") func remoteRoom() async throws {
            try await ProvidedMount.run(
                options: .with(\.quota, RemoteQuota(free: 300 << 20, total: 1000 << 20)), { _ in }
            ) { mount async throws in
                func df() async throws -> String {
                    try await Command.run("df", "-BM", "--output=size,avail", mount.path.string).output
                }
                let shows = await eventually(within: .seconds(10)) { (try? await df().contains("1000M")) == true }
                #expect(shows)
                for _ in 0..<5 { #expect(try await df().hasSuffix("1000M  300M\n")) }
                #expect(mount.provider.log.count(of: .quota) == 1)
                // A remote that does not answer delays no process.
                mount.provider.faults.add(.delay(.seconds(30)), to: .quota)
                #expect(try await df().hasSuffix("1000M  300M\n"))
            }
        }

        @Test("a file that gets another date keeps its content") func datesAreNotContent() async throws {
            try await Installation.mounted(["file": "content"]) { yonder async throws in
                func look() async throws -> String {
                    let contents = yonder.directory["state/domains/mount/contents"].string
                    return try await yonder.shell("stat -c '%y %z' file; ls -i $1", contents)
                }
                try await yonder.shell("cat file; touch -d '2001-02-03 UTC' file")
                var before = try await look()
                try await yonder.expectSent()
                #expect(try await look() == before)
                // Also where it is open, and what waited for the close comes after it.
                let opened = try await yonder.run(
                    "cd \"$1\" && exec 3<file && touch -d '2002-03-04 UTC' file && yonder wait mount && exec 3<&-",
                    yonder.mount.string)
                #expect(opened.status == 0, "\(opened.errors)")
                before = try await yonder.shell("stat -c '%y %z' file")
                #expect(try await yonder.yonder("evict", yonder["file"]).status == 0)
                #expect(try await yonder.shell("stat -c '%y %z' file") == before)
                #expect(try await yonder.shell("cat file") == "content")
            }
        }

        @Test("SEND-8: pending tells what waits, in the documented fields") func pendingFields() async throws {
            try await Installation.run { yonder in
                for name in ["edited", "renamed", "moved", "removed", "mode", "time", "own"] {
                    try yonder.write(name, to: name)
                }
                try await yonder.mountSource()
                #expect(try await Command.run("cat", yonder["edited"]).output == "edited")
                #expect(try await yonder.yonder("pending").output == "")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell(
                    """
                    mkdir dir; echo x > dir/file; ln -s x link; echo x >> edited; mv renamed other; mv moved dir/moved
                    rm removed; chmod 600 mode; touch -d 2001-01-01 time; setfattr -n user.own -v 1 own
                    """)
                // Until the kernel has forgotten it, the removed file counts as open.
                #expect(
                    try await eventually {
                        try await yonder.pending()["removed"]?.error?.message.contains("paused") == true
                    })
                let pending = try await yonder.pending()
                #expect(
                    pending.keys.sorted()
                        == [
                            yonder.mount.string, "dir", "dir/file", "dir/moved", "edited", "link", "mode", "other",
                            "own",
                            "removed", "time",
                        ].sorted())
                #expect(pending["dir/file"]?.fields.contains("contents") == true)
                #expect(pending["dir/file"]?.identifier == nil)
                #expect(pending["dir"]?.fields.contains("contents") == false)
                #expect(pending["edited"]?.fields.sorted() == ["contentModificationDate", "contents"])
                #expect(pending["edited"]?.identifier != nil)
                #expect(pending["other"]?.fields == ["filename"])
                #expect(pending["dir/moved"]?.fields == ["parentItemIdentifier"])
                #expect(pending["mode"]?.fields == ["permissions"])
                #expect(pending["time"]?.fields == ["contentModificationDate"])
                #expect(pending["own"]?.fields == ["extendedAttributes"])
                #expect(pending["removed"]?.fields == ["deletion"])
                #expect(pending["removed"]?.inode == nil)
                for item in pending.values {
                    #expect(item.error?.message.contains("paused") == true)
                    #expect(item.error?.attempts == 0)
                    #expect(item.since.hasSuffix("Z"))
                }
                #expect(try await yonder.info("edited").sync == "pending")
                #expect(try await yonder.info("edited").pendingFields.sorted() == pending["edited"]?.fields.sorted())
                #expect(try await yonder.status().pending.items == pending.count)
                #expect(try await yonder.status().connection == .paused)
                // Absent is null, and there.
                let raw = try await yonder.yonder("pending", "--json").output
                for key in ["path", "inode", "identifier", "fields", "since", "error"] {
                    #expect(raw.contains("\"\(key)\""), "\(key)")
                }
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await yonder.expectSent()
                #expect(try await yonder.info("edited").sync == "synced")
            }
        }

        @Test("SEND-12: while paused nothing is sent, wait gives up with 75; resuming sends it") func pauses()
            async throws
        {
            try await Installation.mounted(["file": "old"]) { yonder async throws in
                #expect(try await Command.run("cat", yonder["file"]).output == "old")
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo new > file; echo x > other; cat file other")
                let waited = try await yonder.yonder("wait", "--timeout", "1.5")
                #expect(waited.status == 75, "\(waited.errors)")
                #expect(waited.duration < .seconds(5))
                #expect(yonder.sourceText("file") == "old")
                #expect(yonder.sourceText("other") == nil)
                #expect(try await yonder.yonder("evict", yonder["file"]).errors.contains("not on the remote"))
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await yonder.expectSent()
                #expect(yonder.sourceText("file") == "new\n")
                // Nothing is held back any longer. The kernel tells of the comparison's close a moment after it.
                #expect(try await eventually { try await yonder.yonder("evict", yonder["file"]).status == 0 })
                #expect(try await Command.run("cat", yonder["file"]).output == "new\n")
            }
        }

        @Test("READ-7: with the source away everything works, pending says why, and it drains when it is back")
        func worksOffline() async throws {
            try await Installation.mounted(["dir/file": "old"]) { yonder async throws in
                #expect(try await Command.run("cat", yonder["dir/file"]).output == "old")
                let away = yonder.directory["away"].string
                try FileManager.default.moveItem(atPath: yonder.source.string, toPath: away)
                try await yonder.shell(
                    "echo new > dir/file; mkdir made; echo x > made/here; mv dir moved; cat moved/file")
                #expect(
                    try await eventually(within: .seconds(10)) { try await yonder.status().connection == .offline })
                let status = try await yonder.status()
                #expect(status.reason != nil)
                #expect(status.pending.items >= 4)
                let pending = try await yonder.pending()
                #expect(pending["moved/file"]?.error?.code == "serverUnreachable")
                #expect(pending["made/here"]?.error?.message == status.reason)
                #expect(try await yonder.yonder("pending").output.contains("cannot be opened"))

                try FileManager.default.moveItem(atPath: away, toPath: yonder.source.string)
                let isDrained = try await eventually(within: .seconds(20)) {
                    try await yonder.pending().isEmpty
                }
                #expect(isDrained)
                #expect(try await yonder.differences() == "")
                #expect(yonder.sourceText("moved/file") == "new\n")
            }
        }

        @Test("CONFLICT-1: what was edited here and in the source is kept both") func keepsBoth() async throws {
            try await Installation.mounted([
                "dir/file.txt": "first", "dir/removed.txt": "first",
            ]) { yonder async throws in
                #expect(try await Command.shell("cat \"$1\"/dir/*", yonder.mount.string).output == "firstfirst")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell(
                    "echo mine > dir/file.txt; echo mine > dir/made.txt; echo mine > dir/removed.txt")
                try yonder.write("theirs", to: "dir/file.txt")
                try yonder.write("theirs", to: "dir/made.txt")
                try FileManager.default.removeItem(atPath: yonder.source.appending("dir/removed.txt").string)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(
                    try await eventually(within: .seconds(10)) { try await yonder.conflicts().count == 2 })
                try await yonder.expectSent()
                let conflicts = try await yonder.conflicts()
                for name in ["dir/file.txt", "dir/made.txt"] {
                    #expect(yonder.sourceText(name) == "theirs")
                    #expect(try await Command.run("cat", yonder[name]).output == "theirs")
                    let copy = try #require(conflicts[name])
                    #expect(copy.hasSuffix(".txt") && copy.contains("conflict"), "\(copy)")
                    #expect(yonder.sourceText(copy) == "mine\n")
                    #expect(try await Command.run("cat", yonder[copy]).output == "mine\n")
                }
                // What is written here outlives its removal there.
                #expect(yonder.sourceText("dir/removed.txt") == "mine\n")
                // A copy that is gone is no conflict any more.
                for copy in conflicts.values { try await yonder.shell("rm \"$1\"", copy) }
                #expect(try await yonder.conflicts() == [:])
                try await yonder.expectSent()
            }
        }

        @Test("SEND-6: an atomic save changes the item, and makes no other") func savesAtomically() async throws {
            try await ProvidedMount.run { tree in
                tree.addFile("file", content: RemoteContent("old"), identifier: "file")
            } _: { mount async throws in
                #expect(try await Command.run("cat", mount["file"]).output == "old")
                mount.provider.log.clear()
                let saved = try await Command.shell(
                    "cd \"$1\" && echo new > .file.swp && mv .file.swp file && cat file", mount.path.string)
                #expect(saved.output == "new\n", "\(saved.errors)")
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(mount.provider.log.count(of: .create) == 0)
                #expect(mount.provider.log.count(of: .delete) == 0)
                #expect(mount.provider.log.count(of: .modify, "file") >= 1)
                #expect(
                    try await Command.shell("cd \"$1\" && ls -A && cat file", mount.path.string).output == "file\nnew\n"
                )
            }
        }

        @Test("WRITE-13: what no remote can hold stays here, and is not pending") func keepsSpecialFilesHere()
            async throws
        {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                try await yonder.shell(
                    """
                    mkfifo special-pipe
                    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("special-socket")'
                    """)
                // ACCESS-5 says where a device may be opened.
                let hasDevice = FUSEAvailability.isRoot
                if hasDevice { try await yonder.shell("mknod special-device c 1 3") }
                try await yonder.expectSent(excluding: "special-*")
                #expect(try await Command.run("ls", yonder.source.string).output == "file\n")
                for kind in (hasDevice ? ["device"] : []) + ["pipe", "socket"] {
                    #expect(try await yonder.info("special-\(kind)").sync == "excluded", "\(kind)")
                }
                // A pipe is one.
                #expect(try await yonder.shell("(echo through > special-pipe &) ; cat special-pipe") == "through\n")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                let kinds = (hasDevice ? "character special file\n" : "") + "fifo\nsocket\n"
                #expect(try await yonder.shell("stat -c %F special-*") == kinds)
                try await yonder.shell("rm special-*")
                try await yonder.expectSent()
            }
        }
    }
}
