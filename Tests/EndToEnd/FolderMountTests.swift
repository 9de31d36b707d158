import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// File systems that are mounted below the folder that is the source.
    @Suite(.enabled(if: getuid() == 0, "only root can mount")) struct FolderMounts {
        /// Runs a test with a file system of its own, which is not mounted in the source yet.
        private func withDisk(_ body: (Installation, _ disk: String) async throws -> Void) async throws {
            try await Installation.run { yonder in
                let disk = yonder.directory["stick"].string
                try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
                try #require(try await Command.run("mount", "-t", "tmpfs", "stick", disk).status == 0)
                let place = yonder.source.appending("disk").string
                try await withCleanUp({
                    _ = try await Command.shell("umount -q -l \"$1\"; umount -l \"$2\"", place, disk)
                }) {
                    try await body(yonder, disk)
                }
            }
        }

        /// Mounts the file system in the source.
        private func insert(_ disk: String, _ yonder: Installation) async throws {
            let place = yonder.source.appending("disk").string
            let mounted = try await Command.shell("mkdir -p \"$2\" && mount --bind \"$1\" \"$2\"", disk, place)
            try #require(mounted.status == 0, "\(mounted.errors)")
        }

        /// As a program that mounts removable disks does: its directory goes with it.
        private func pullOut(_ yonder: Installation, removingDirectory: Bool = true) async throws {
            let place = yonder.source.appending("disk").string
            #expect(try await eventually { try await Command.run("umount", place).status == 0 })
            if removingDirectory { #expect(rmdir(place) == 0) }
        }

        @Test(
            "FOLDER-12: a file system below the folder that is unmounted takes nothing with it, and gets what was changed meanwhile",
            arguments: [true, false])
        func isPulledOut(removingDirectory: Bool) async throws {
            try await withDisk { yonder, disk in
                try await insert(disk, yonder)
                for name in ["here", "there", "old"] { try yonder.write(name, to: "disk/" + name) }
                try yonder.write("inner", to: "disk/directory/inner")
                try yonder.write("beside", to: "file")
                try await yonder.mountSource()
                #expect(
                    try await yonder.shell("cat file disk/here; ls disk") == "besideheredirectory\nhere\nold\nthere\n")
                let before = try await yonder.shell("stat -c '%i %Y %a %n' disk disk/*")

                try await pullOut(yonder, removingDirectory: removingDirectory)
                #expect(try await eventually { try await yonder.yonder("signal", "mount", "--wait").status == 0 })
                #expect(try await yonder.shell("cat disk/here; stat -c '%i %Y %a %n' disk disk/*") == "here" + before)
                #expect(try await yonder.status().connection == .online)
                try await Command.shell("cat \"$1\"", yonder["disk/there"]).expectFailure(saying: "No such device")
                let listing = try await Command.shell("ls \"$1\"", yonder["disk/directory"])
                #expect(listing.errors.contains("No such device"))
                _ = try await yonder.shell("echo new > disk/new; echo more >> disk/here; rm disk/old; echo x > second")
                #expect(await eventually(within: .seconds(20)) { yonder.sourceText("second") == "x\n" })
                // Not every change was tried at this moment.
                #expect(
                    try await eventually(within: .seconds(20)) {
                        try await yonder.yonder("why", yonder["disk/new"]).output.contains("mount it again")
                    })
                // Nothing was written to the directory below the mount.
                let place = yonder.source.appending("disk").string
                #expect(try await Command.shell("ls -A \"$1\"", place).output == "")

                // Also for a daemon that begins while it is away.
                #expect(try await yonder.yonder("shutdown").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.shell("ls disk") == "directory\nhere\nnew\nthere\n")

                try await insert(disk, yonder)
                try await yonder.expectSent()
                #expect(yonder.sourceText("disk/new") == "new\n")
                #expect(yonder.sourceText("disk/here") == "heremore\n")
                #expect(yonder.sourceText("disk/old") == nil)
                #expect(try await yonder.shell("cat disk/there disk/directory/inner") == "thereinner")
                #expect(try await yonder.differences() == "")
                // It is watched again.
                try yonder.write("later", to: "disk/later")
                #expect(try await eventually { try await yonder.shell("ls disk").contains("later") })
            }
        }

        @Test("FOLDER-12: another file system in the same place is not taken for the one that was there")
        func isAnother() async throws {
            try await withDisk { yonder, disk in
                try await insert(disk, yonder)
                try yonder.write("mine", to: "disk/file")
                try await yonder.mountSource()
                #expect(try await yonder.shell("cat disk/file") == "mine")
                try await pullOut(yonder)
                let other = yonder.directory["other"].string
                try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
                try Data("another".utf8).write(to: URL(fileURLWithPath: other + "/file"))
                try await insert(other, yonder)
                #expect(try await eventually { try await yonder.yonder("signal", "mount", "--wait").status == 0 })
                _ = try await yonder.shell("echo edited > disk/file; echo new > disk/new")
                #expect(
                    try await eventually {
                        try await yonder.yonder("why", yonder["disk/new"]).output.contains("yonder reimport")
                    })
                #expect(try await Command.shell("cat \"$1\"/*", other).output == "another")

                try await yonder.yonder("reimport", yonder.mount.string, "--wait").expectSuccess()
                try await yonder.expectSent()
                #expect(try await yonder.shell("cat disk/new") == "new\n")
                let texts = try await Command.shell("sort \"$1\"/*", other).output
                #expect(texts == "another\nedited\nnew\n" || texts == "anotheredited\nnew\n", "\(texts)")
            }
        }

        @Test("FOLDER-12: what is made on an empty file system waits for it")
        func isEmpty() async throws {
            try await withDisk { yonder, disk in
                try await insert(disk, yonder)
                try await yonder.mountSource()
                #expect(try await yonder.shell("ls; ls disk") == "disk\n")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                _ = try await yonder.shell("echo new > disk/new")
                try await pullOut(yonder, removingDirectory: false)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(
                    try await eventually {
                        try await yonder.yonder("why", yonder["disk/new"]).output.contains("mount it again")
                    })
                let place = yonder.source.appending("disk").string
                #expect(try await Command.shell("ls -A \"$1\"", place).output == "")
                try await insert(disk, yonder)
                try await yonder.expectSent()
                #expect(yonder.sourceText("disk/new") == "new\n")
                #expect(try await Command.shell("ls -A \"$1\"", disk).output == "new\n")
            }
        }

        @Test("FOLDER-12: a file system that is mounted on another directory is moved there")
        func isOnAnotherDirectory() async throws {
            try await withDisk { yonder, disk in
                try await insert(disk, yonder)
                try yonder.write("one", to: "disk/one")
                try yonder.write("two", to: "disk/two")
                try await yonder.mountSource()
                #expect(try await yonder.shell("cat disk/one; ls disk") == "oneone\ntwo\n")
                let before = try await yonder.shell("stat -c %i disk disk/one disk/two")
                try await pullOut(yonder, removingDirectory: false)
                #expect(try await eventually { try await yonder.yonder("signal", "mount", "--wait").status == 0 })
                _ = try await yonder.shell("echo new > disk/new")
                // Its name is after that of the first directory, which stays.
                let other = yonder.source.appending("other").string
                let mounted = try await Command.shell(
                    "mkdir \"$2\" && mount --bind \"$1\" \"$2\"", disk, other)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await withCleanUp({ _ = try await Command.run("umount", "-l", other) }) {
                    try await yonder.expectSentAndReceived()
                    #expect(yonder.sourceText("other/new") == "new\n")
                    #expect(try await yonder.shell("stat -c %i other other/one other/two") == before)
                    #expect(try await yonder.shell("cat other/two; ls disk") == "two")
                    let place = yonder.source.appending("disk").string
                    #expect(try await Command.shell("ls -A \"$1\"", place).output == "")
                }
            }
        }

        @Test(
            "FOLDER-12: a disk gets nothing of another one that had its device",
            .enabled(if: FileManager.default.fileExists(atPath: "/dev/loop-control"), "there are no loop devices"))
        func hasTheDeviceOfAnother() async throws {
            try await Installation.run { yonder in
                let place = yonder.source.appending("disk").string
                let made = try await Command.shell(
                    """
                    set -e; cd "$1"; mkdir "$2"
                    for disk in first second; do
                        truncate -s 8M $disk; mkfs.ext4 -q -F -I 128 $disk > /dev/null; mount -o loop $disk "$2"
                        for name in here old; do echo $disk > "$2"/$name; done; umount "$2"
                    done
                    device=$(losetup -f --show first); mount $device "$2"; echo $device
                    """, yonder.directory.path.string, place)
                try #require(made.status == 0, "\(made.errors)")
                let device = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
                try await withCleanUp({
                    _ = try await Command.shell("umount -l \"$1\"; losetup -d \"$2\"", place, device)
                }) {
                    try await yonder.mountSource()
                    #expect(try await yonder.shell("cat disk/here disk/old") == "first\nfirst\n")
                    #expect(try await eventually { try await Command.run("umount", place).status == 0 })
                    #expect(try await eventually { try await yonder.yonder("signal", "mount", "--wait").status == 0 })
                    _ = try await yonder.shell("echo edited > disk/here; rm disk/old; echo new > disk/new")
                    let other = try await Command.shell(
                        """
                        cd "$1" && losetup -d "$3" || exit
                        # The device is free some time after it was given back.
                        for i in $(seq 50); do losetup "$3" second 2>/dev/null && break; sleep 0.1; done
                        mount "$3" "$2"
                        """, yonder.directory.path.string, place, device)
                    #expect(other.status == 0, "\(other.errors)")
                    #expect(try await eventually { try await yonder.yonder("signal", "mount", "--wait").status == 0 })
                    #expect(
                        try await eventually {
                            try await yonder.yonder("why", yonder["disk/new"]).output.contains("yonder reimport")
                        })
                    #expect(
                        try await Command.shell("cd \"$1\" && cat here old && ls -d new", place).output
                            == "second\nsecond\n")
                }
            }
        }
    }
}
