import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What may happen to a folder that is the source, seen from the mount.
    @Suite struct FolderSources {
        @Test("FOLDER-18: a directory that was changed before it is listed shows its present date")
        func dateOfADirectory() async throws {
            try await Installation.mounted([:]) { yonder async throws in
                try await yonder.shell("ls")
                let made = yonder.source.appending("made").string
                try FileManager.default.createDirectory(atPath: made, withIntermediateDirectories: false)
                #expect(try await eventually { try await yonder.shell("ls") == "made\n" })
                try await yonder.expectDone("touch -d @1000000000 \"$1\"/file && touch \"$1\"/other", made)
                #expect(try await yonder.shell("ls made") == "file\nother\n")
                let date = try await Command.run("stat", "-c", "%y", made).output
                #expect(try await eventually { try await yonder.shell("stat -c %y made") == date })
            }
        }

        @Test("Issue 14, 1.5: editing one hard link in the source leaves its siblings readable, and told")
        func hardLinksInTheSource() async throws {
            try await Installation.run { yonder in
                try yonder.write("shared", to: "one")
                for name in ["two", "three"] {
                    try FileManager.default.linkItem(
                        atPath: yonder.source.appending("one").string,
                        toPath: yonder.source.appending(name).string)
                }
                try await yonder.mountSource()
                let inodes = try await yonder.shell("stat -c '%i %n' one two three")
                // As editors save: another file takes the name.
                try yonder.write("replaced", to: ".new")
                _ = try await Command.run(
                    "mv", yonder.source.appending(".new").string, yonder.source.appending("one").string)
                #expect(try await eventually { try await yonder.yonder("signal", "mount", "--wait").status == 0 })
                #expect(try await yonder.shell("cat one two three") == "replacedsharedshared")
                // In place: the others have it, too.
                let handle = try FileHandle(
                    forWritingTo: URL(fileURLWithPath: yonder.source.appending("two").string))
                try handle.write(contentsOf: Data("SHARED!".utf8))
                try handle.close()
                // No process reads meanwhile: a file that is open keeps its version, and the new one gets another inode.
                #expect(try await eventually { try await yonder.shell("stat -c %s two three") == "7\n7\n" })
                #expect(try await yonder.shell("cat two three") == "SHARED!SHARED!")
                let kept = try await yonder.shell("stat -c '%i %n' two three")
                #expect(kept == inodes.split(separator: "\n").dropFirst().joined(separator: "\n") + "\n")
                try await yonder.yonder("check", "mount").expectSuccess()
            }
        }

        @Test("Issue 14, 1.5: an edit on the mount of a file with hard links in the source keeps the inode there")
        func anEditKeepsTheSourcesInode() async throws {
            try await Installation.run { yonder in
                try yonder.write("shared\n", to: "one")
                let source = yonder.source
                try FileManager.default.linkItem(
                    atPath: source.appending("one").string, toPath: source.appending("two").string)
                let before = try await Command.shell("stat -c '%i %h' \"$1\"/one \"$1\"/two", source.string).output
                try await yonder.mountSource()
                try await yonder.shell("cat one two; echo more >> one")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("one") == "shared\nmore\n")
                #expect(yonder.sourceText("two") == "shared\nmore\n")
                #expect(
                    try await Command.shell("stat -c '%i %h' \"$1\"/one \"$1\"/two", source.string).output == before)
                #expect(
                    try await eventually {
                        try await Command.run("cat", yonder["two"]).output == "shared\nmore\n"
                    })
                #expect(try await yonder.conflicts() == [:])
            }
        }

        @Test("N5 (issue 14, 3.7): a file that is open shows what is written through a link that is not in the source")
        func anOpenFileFollowsItsOtherLinks() async throws {
            try await Installation.run { yonder in
                try yonder.write("old", to: "file")
                // Nothing watches this name.
                let outside = yonder.directory["outside"].string
                try FileManager.default.linkItem(atPath: yonder.source.appending("file").string, toPath: outside)
                try await yonder.mountSource()
                #expect(try await yonder.shell("cat file") == "old")
                let before = try await yonder.info("file").contentVersion
                let reader = try await BackgroundProgram("tail", "-f", yonder["file"])
                defer { reader.kill() }
                try Data("newer".utf8).write(to: URL(fileURLWithPath: outside), options: [])
                #expect(
                    await eventually(within: .seconds(15)) {
                        let version = try? await yonder.info("file").contentVersion
                        return version != nil && version != before
                    })
            }
        }

        /// Starts a daemon by mounting another domain, and waits until it has mounted the first one again.
        private func startDaemon(_ yonder: Installation) async throws {
            let (source, other) = (yonder.directory["extra"].string, yonder.directory["other"].string)
            try FileManager.default.createDirectory(atPath: source, withIntermediateDirectories: true)
            #expect(try await yonder.yonder("mount", source, other, "--name", "other").status == 0)
            #expect(
                try await eventually {
                    try await yonder.json([DomainSummary].self, "domains").first { $0.name == "mount" }?.isMounted
                        == true
                })
        }

        @Test(
            "FOLDER-9: a domain whose folder is missing when the daemon starts is mounted, and goes on once it is there",
            arguments: [true, false])
        func isMissingAtTheStart(hasEmptyDirectory: Bool) async throws {
            try await Installation.mounted(["file": "here"]) { yonder async throws in
                #expect(try await yonder.shell("cat file") == "here")
                let (source, away) = (yonder.source.string, yonder.directory["away"].string)
                #expect(try await yonder.yonder("shutdown").status == 0)
                try FileManager.default.moveItem(atPath: source, toPath: away)
                // The mount point of a disk that is not mounted.
                if hasEmptyDirectory {
                    try FileManager.default.createDirectory(atPath: source, withIntermediateDirectories: false)
                }
                try await startDaemon(yonder)
                #expect(try await yonder.shell("cat file; echo new > new") == "here")
                #expect(
                    try await eventually(within: .seconds(10)) {
                        let report = try await yonder.json(StatusReport.self, "status", "mount")
                        return report.domains.first?.connection == .offline
                    })
                if hasEmptyDirectory { #expect(rmdir(source) == 0) }
                try FileManager.default.moveItem(atPath: away, toPath: source)
                #expect(try await yonder.yonder("wait", "mount", "--timeout", "30").status == 0)
                #expect(yonder.sourceText("new") == "new\n")
                #expect(try await yonder.differences() == "")
            }
        }

        /// Mounts the source read-only during `body`, and makes it writable again also when that fails.
        private func withReadOnlySource(
            _ yonder: Installation, _ body: () async throws -> Void
        ) async throws {
            let source = yonder.source.string
            let line = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\""
            #expect(try await Command.shell(line, source).status == 0)
            try await withCleanUp({ () async throws in
                #expect(try await Command.run("umount", "-l", source).status == 0)
            }) {
                try await body()
            }
        }

        @Test(
            "FOLDER-9: a folder that was writable takes changes once it is so again, also over a restart",
            .enabled(if: getuid() == 0, "only root can mount"))
        func isReadOnlyAtTheStart() async throws {
            try await Installation.mounted(["file": "here"]) { yonder async throws in
                #expect(try await yonder.yonder("shutdown").status == 0)
                try await withReadOnlySource(yonder) {
                    try await startDaemon(yonder)
                    try await yonder.shell("echo new > new; echo more >> file")
                    #expect(
                        try await eventually(within: .seconds(10)) {
                            try await yonder.pending()["new"]?.error?.message.contains("ead-only") == true
                        })
                }
                #expect(try await yonder.yonder("wait", "mount", "--timeout", "60").status == 0)
                #expect(yonder.sourceText("new") == "new\n")
                #expect(yonder.sourceText("file") == "heremore\n")
            }
        }

        @Test(
            "FOLDER-9: a folder that was never writable is a read-only remote until it is",
            .enabled(if: getuid() == 0, "only root can mount"))
        func neverWritable() async throws {
            try await Installation.run { yonder in
                try yonder.write("here", to: "file")
                try await withReadOnlySource(yonder) {
                    try await yonder.mountSource()
                    let written = try await Command.shell("echo new > \"$1\"/new", yonder.mount.string)
                    #expect(written.errors.contains("Read-only file system"), "\(written.errors)")
                    let trashed = try await yonder.yonder("trash", "put", yonder["file"])
                    #expect(trashed.status == 1 && !trashed.errors.contains("has no trash"), "\(trashed.errors)")
                    #expect(try await !yonder.yonder("status").output.contains("can be written now"))
                }
                #expect(
                    try await eventually {
                        _ = try await yonder.yonder("signal", "--wait")
                        return try await yonder.yonder("status").output.contains("can be written now")
                    })
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                try await yonder.mountSource()
                try await yonder.shell("echo new > new")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("new") == "new\n")
            }
        }

        @Test("Issue 14, 1.9: a source that is replaced is not touched, status and why say so, and it comes back")
        func aReplacedSource() async throws {
            try await Installation.mounted(["file": "mine", "unread": "unread"]) { yonder async throws in
                #expect(try await yonder.shell("cat file") == "mine")
                let other = try yonder.directory.makeDirectory("other")
                try Data("other".utf8).write(to: URL(fileURLWithPath: other.appending("file").string))
                let away = yonder.directory["away"].string
                try FileManager.default.moveItem(atPath: yonder.source.string, toPath: away)
                try FileManager.default.createSymbolicLink(
                    atPath: yonder.source.string, withDestinationPath: other.string)
                try await yonder.shell("echo changed > file; echo new > new")
                // Before the link was there, the source was missing.
                let isNoticed = try await eventually(within: .seconds(15)) {
                    try await yonder.yonder("status").output.contains("replaced by a symbolic link")
                }
                #expect(isNoticed)
                #expect(try await yonder.status().connection == .offline)
                #expect(try await yonder.yonder("why", yonder["unread"]).output.contains("replaced by a symbolic link"))
                #expect(try await yonder.shell("ls") == "file\nnew\nunread\n")
                #expect(try FileManager.default.contentsOfDirectory(atPath: other.string) == ["file"])
                #expect(
                    try String(contentsOfFile: other.appending("file").string, encoding: .utf8) == "other")
                try FileManager.default.removeItem(atPath: yonder.source.string)
                try FileManager.default.moveItem(atPath: away, toPath: yonder.source.string)
                try await yonder.expectSent()
                #expect(yonder.sourceText("file") == "changed\n")
                #expect(try await yonder.shell("cat unread") == "unread")
            }
        }

        @Test("FOLDER-1: another folder in the place of the source is noticed though nothing is asked of it")
        func noticesAnotherFolder() async throws {
            try await Installation.mounted(["file": "mine"]) { yonder async throws in
                #expect(try await yonder.shell("ls; cat file") == "file\nmine")
                let (source, away) = (yonder.source.string, yonder.directory["away"].string)
                try FileManager.default.moveItem(atPath: source, toPath: away)
                try FileManager.default.createDirectory(atPath: source, withIntermediateDirectories: false)
                #expect(try await eventually { try await yonder.status().connection == .offline })
                #expect(try await yonder.shell("ls; cat file") == "file\nmine")
                try FileManager.default.removeItem(atPath: source)
                try FileManager.default.moveItem(atPath: away, toPath: source)
                #expect(
                    try await eventually(within: .seconds(15)) { try await yonder.status().connection == .online })
                #expect(try await yonder.shell("ls") == "file\n")
            }
        }

        @Test(
            "FOLDER-11: dates of another user's items stay here",
            .ordinaryUser)
        func anothersDirectory() async throws {
            try await OrdinaryUser.run { user in
                let source = user.yonder.source.string
                let made = try await Command.shell(
                    """
                    cd "$1" && mkdir team && echo y > open && chmod 666 open \
                        && chown 0:65534 team && chmod 2775 team && touch -d '2001-01-01' open
                    """, source)
                try #require(made.status == 0, "\(made.errors)")
                let outcome = try await user.shell(
                    """
                    yonder mount "$SOURCE" "$MOUNT" && cd "$MOUNT" && echo mine > team/new && touch open && mv team/new team/name \
                        && yonder wait --timeout 50 && yonder pending && cat "$SOURCE/team/name" && stat -c %y open "$SOURCE/open" | cut -c1-4
                    """, seconds: 90)
                // The date of the mount is the present, that of the source the old one.
                let lines = outcome.output.split(separator: "\n").suffix(3)
                #expect(
                    lines.count == 3 && lines.first == "mine" && lines.dropFirst().first != "2001"
                        && lines.last == "2001", "\(outcome.output)\(outcome.errors)")
            }
        }

        @Test(
            "FOLDER-11: a deletion that a mode denies waits until it is permitted, and one that a sticky bit denies is taken back",
            .ordinaryUser)
        func deniedDeletions() async throws {
            try await OrdinaryUser.run { user in
                let source = user.yonder.source.string
                func asRoot(_ line: String) async throws {
                    let outcome = try await Command.shell("cd \"$1\" && " + line, source)
                    try #require(outcome.status == 0, "\(outcome.errors)")
                }
                try await asRoot("mkdir -m 777 closed sticky && echo x > closed/file && echo y > sticky/file")
                let removed = try await user.shell(
                    """
                    yonder mount "$SOURCE" "$MOUNT" && ls -R "$MOUNT" && yonder pause mount && rm -f "$MOUNT"/*/file
                    """)
                #expect(removed.status == 0, "\(removed.errors)")
                try await asRoot("chmod 755 closed && chmod 1777 sticky")
                let denied = try await user.shell(
                    """
                    yonder resume mount; for i in $(seq 100); do cat "$MOUNT/sticky/file" && yonder pending | grep 'may not change its directory' && break
                    sleep 0.2; done; yonder pending | grep -c closed/file; ls "$MOUNT/closed"
                    """, seconds: 90)
                let lines = denied.output.split(separator: "\n")
                #expect(lines.first == "y" && lines.last == "1", "\(denied.output)\(denied.errors)")
                try await asRoot("test -e closed/file && chmod 777 closed")
                let sent = try await user.shell(
                    "yonder retry >&2 && yonder wait --timeout 50 >&2 && ls \"$SOURCE/closed\"", seconds: 60)
                #expect(sent.status == 0 && sent.output == "", "\(sent.output)\(sent.errors)")
            }
        }

        @Test(
            "FOLDER-4: an edit in a directory that the user may not write waits, says why, and is sent when it may be written",
            .ordinaryUser)
        func deniedEdit() async throws {
            try await OrdinaryUser.run { user in
                let source = user.yonder.source.string
                let made = try await Command.shell(
                    "cd \"$1\" && mkdir closed && echo old > closed/file && chmod 666 closed/file", source)
                try #require(made.status == 0, "\(made.errors)")
                let words = "'file': this user may not change its directory"
                let waits = try await user.shell(
                    """
                    yonder mount "$SOURCE" "$MOUNT" >&2; echo new > "$MOUNT/closed/file"; for i in $(seq 100); do yonder pending | grep -q "\(words)" \
                        && break; sleep 0.1; done; yonder why "$MOUNT/closed/file" | grep -q "\(words)" && echo why
                    cat "$SOURCE/closed/file" "$MOUNT/closed/file"
                    """, seconds: 60)
                #expect(waits.output == "why\nold\nnew\n", "\(waits.output)\(waits.errors)")
                #expect(try await Command.shell("chmod 777 \"$1/closed\"", source).status == 0)
                let sent = try await user.shell(
                    "yonder retry >&2 && yonder wait --timeout 50 >&2 && cat \"$SOURCE/closed/file\"", seconds: 60)
                #expect(sent.output == "new\n", "\(sent.output)\(sent.errors)")
            }
        }

        @Test(
            "FOLDER-4: another user's file with two names is replaced, is this user's then, and status says so",
            .ordinaryUser)
        func anothersLinks() async throws {
            try await OrdinaryUser.run { user in
                let made = try await Command.shell(
                    "cd \"$1\" && echo old > one && chmod 666 one && ln one two", user.yonder.source.string)
                try #require(made.status == 0, "\(made.errors)")
                let outcome = try await user.shell(
                    """
                    yonder mount "$SOURCE" "$MOUNT" >&2 && echo new > "$MOUNT/one" && yonder wait --timeout 50 >&2 \
                        && cat "$SOURCE/one" "$SOURCE/two" && stat -c %u "$SOURCE/one" "$SOURCE/two" \
                        && yonder status | grep -q 'other hard links keep the old content' && echo said
                    """, seconds: 90)
                #expect(outcome.output == "new\nold\n65534\n0\nsaid\n", "\(outcome.output)\(outcome.errors)")
            }
        }

        @Test(
            "FOLDER-14: a directory that denies access for a while holds up nothing else, and what was changed in it is noticed",
            .ordinaryUser)
        func deniesAccess() async throws {
            try await OrdinaryUser.run { user in
                let outcome = try await user.shell(
                    """
                    set -e; mkdir "$SOURCE/d"; echo old > "$SOURCE/d/old"; yonder mount "$SOURCE" "$MOUNT" >&2; ls -R "$MOUNT" >&2
                    yonder pause mount >&2; rm "$SOURCE/d/old"; echo new > "$SOURCE/d/new"; chmod 000 "$SOURCE/d"; echo x > "$SOURCE/other"
                    yonder resume mount >&2; for i in $(seq 100); do test -e "$MOUNT/other" && break; sleep 0.1; done; cat "$MOUNT/other"
                    chmod 755 "$SOURCE/d"; for i in $(seq 100); do test -e "$MOUNT/d/new" && break; sleep 0.1; done; ls "$MOUNT/d"
                    """, seconds: 90)
                #expect(outcome.status == 0 && outcome.output == "x\nnew\n", "\(outcome.output)\(outcome.errors)")
            }
        }

        @Test(
            "FOLDER-14: what is moved into a directory that denies access, or out of it, stays what it is",
            .ordinaryUser)
        func movesWhileDenied() async throws {
            try await OrdinaryUser.run { user in
                let outcome = try await user.shell(
                    """
                    set -e; cd "$SOURCE"; mkdir d e; echo in > d/in; echo out > e/out; yonder mount "$SOURCE" "$MOUNT" >&2; ls -R "$MOUNT" >&2
                    before=$(stat -c %i "$MOUNT/d/in" "$MOUNT/e/out"); yonder pause mount >&2; mv d/in e/in; mv e/out d/out; chmod 000 e; echo x > other
                    yonder resume mount >&2; for i in $(seq 100); do test -e "$MOUNT/other" && break; sleep 0.1; done; cat "$MOUNT/other"
                    chmod 755 e; for i in $(seq 100); do test -e "$MOUNT/e/in" && test -e "$MOUNT/d/out" && break; sleep 0.1; done
                    test "$(stat -c %i "$MOUNT/e/in" "$MOUNT/d/out")" = "$before"; cat "$MOUNT/e/in" "$MOUNT/d/out"
                    """, seconds: 90)
                #expect(outcome.status == 0 && outcome.output == "x\nin\nout\n", "\(outcome.output)\(outcome.errors)")
            }
        }

        @Test(
            "FOLDER-14: what is in the user's trash stays while the source's trash denies access",
            .ordinaryUser)
        func trashDeniesAccess() async throws {
            try await OrdinaryUser.run { user in
                let outcome = try await user.shell(
                    """
                    set -e; echo x > "$SOURCE/trashed"; yonder mount "$SOURCE" "$MOUNT" >&2; yonder trash put "$MOUNT/trashed" >&2
                    yonder wait --timeout 50 >&2; ls "$SOURCE/.Trash-65534/files"; yonder unmount mount >&2; chmod 000 "$SOURCE/.Trash-65534"
                    yonder mount mount >&2; for i in $(seq 100); do yonder status | grep -q 'trash cannot be compared' && break; sleep 0.1; done
                    yonder trash list | grep -c trashed; chmod 700 "$SOURCE/.Trash-65534"
                    """, seconds: 90)
                #expect(outcome.status == 0 && outcome.output == "trashed\n1\n", "\(outcome.output)\(outcome.errors)")
            }
        }

        @Test("Issue 14, 1.9: yonder reimport accepts another folder as the source") func reimportAcceptsAnotherFolder()
            async throws
        {
            try await Installation.mounted(["file": "mine", "directory/inner": "inner"]) { yonder async throws in
                #expect(try await yonder.shell("cat file directory/inner") == "mineinner")
                let away = yonder.directory["away"].string
                try FileManager.default.moveItem(atPath: yonder.source.string, toPath: away)
                _ = try await Command.run("cp", "-a", away, yonder.source.string)
                try yonder.write("only in the new one", to: "another")
                try await yonder.shell("echo new > new")
                // Before the copy was there, the source was missing.
                #expect(
                    try await eventually(within: .seconds(15)) {
                        try await yonder.yonder("status").output.contains("yonder reimport")
                    })
                #expect(try await yonder.status().connection == .offline)
                #expect(yonder.sourceText("new") == nil)
                try await yonder.yonder("reimport", yonder.mount.string, "--wait").expectSuccess()
                try await yonder.expectSentAndReceived()
                #expect(yonder.sourceText("new") == "new\n")
                #expect(try await yonder.shell("cat file directory/inner another") == "mineinneronly in the new one")
            }
        }
    }
}
