import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The directory of a domain while the domain is not mounted.
    @Suite struct UnmountedDirectories {
        @Test(
            "MOUNT-9: an ordinary user cannot write to the directory of a domain while nothing is mounted there",
            .ordinaryUser)
        func protected() async throws {
            try await OrdinaryUser.run { user in
                func check(_ line: String, _ status: Int32 = 0) async throws {
                    let outcome = try await user.shell(line)
                    #expect(outcome.status == status, "\(line): \(outcome.errors)")
                }
                try await check("yonder mount \"$SOURCE\" \"$MOUNT\" && touch \"$MOUNT/first\"")
                for _ in 0..<2 {
                    try await check("yonder unmount \"$MOUNT\"")
                    try await check("touch \"$MOUNT/lost\"", 1)
                    // One on another directory that is refused leaves it, too.
                    try await check("yonder mount --name mount \"$SOURCE\" \"$SOURCE/inside\"", 1)
                    try await check("touch \"$MOUNT/lost\"", 1)
                    // A mount that fails leaves it as it was; where this one does not, it is taken back.
                    try await check("yonder mount mount --allow-other; yonder unmount mount; true")
                    try await check("touch \"$MOUNT/lost\"", 1)
                    try await check(
                        "yonder mount mount --no-allow-other && touch \"$MOUNT/other\" && ls \"$MOUNT\" | wc -l")
                }
                try await user.yonder.killDaemon()
                try await check("fusermount3 -u \"$MOUNT\"")
                try await check("touch \"$MOUNT/lost\"", 1)
                let elsewhere = "yonder mount --name mount \"$SOURCE\" \"$HOME/elsewhere\""
                try await check("yonder mount mount && yonder unmount mount && \(elsewhere)")
                try await check("touch \"$MOUNT/own\" && rm \"$MOUNT/own\"")
                try await check("yonder unmount mount && yonder mount --name mount \"$SOURCE\" \"$MOUNT\"")
                try await check("touch \"$HOME/elsewhere/own\"")
                // One whose removal is refused is known still.
                try await check("yonder pause mount && touch \"$MOUNT/unsent\" && yonder unmount mount")
                try await check("yonder remove mount --keep none", 1)
                try await check("touch \"$MOUNT/lost\"", 1)
                try await check("yonder remove mount")
                try await check("touch \"$MOUNT/own\"")
            }
        }

        @Test(
            "MOUNT-9: files that were written while the domain was not mounted are moved into the mount, and none is written over",
            .enabled("an ordinary user cannot write there") { FUSEAvailability.isRoot })
        func found() async throws {
            try await Installation.run { yonder in
                let large = [UInt8](repeating: 7, count: 3 << 20)
                try yonder.write(large, to: "same")
                try yonder.write("theirs", to: "notes.txt")
                try yonder.write("file", to: "name")
                try await yonder.mountSource()
                try await yonder.shell("mkdir kept; echo one > kept/one")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                let made = try await Command.shell(
                    """
                    cd "$1" && mkdir kept new name && echo two > kept/two && echo deep > new/deep && ln -s deep new/link \
                        && echo x > name/x && cp "$2/same" same && echo ours > notes.txt && mkfifo pipe \
                        && touch -d @1500000000.123456789 new/deep && chmod 600 new/deep && chmod 750 new
                    """, yonder.mount.string, yonder.source.string)
                try #require(made.status == 0, "\(made.errors)")
                try await yonder.yonder("mount", "mount").expectFailure(saying: "--move-found")
                let mounted = try await yonder.yonder("mount", "mount", "--move-found")
                #expect(mounted.status == 1 && mounted.output.contains("6 files moved"), "\(mounted.output)")
                #expect(mounted.errors.contains("pipe: left below the mount"), "\(mounted.errors)")
                let listed = try await yonder.shell(
                    "find . | LC_ALL=C sort; cat kept/one kept/two notes.txt 'notes (found 1).txt' new/link name 'name (found 1)/x'"
                )
                #expect(
                    listed == """
                        .
                        ./kept
                        ./kept/one
                        ./kept/two
                        ./name
                        ./name (found 1)
                        ./name (found 1)/x
                        ./new
                        ./new/deep
                        ./new/link
                        ./notes (found 1).txt
                        ./notes.txt
                        ./same
                        one
                        two
                        theirsours
                        deep
                        filex

                        """)
                #expect(
                    try await yonder.shell("stat -c '%a %.9Y' new/deep; stat -c %a new")
                        == "600 1500000000.123456789\n750\n")
                try await yonder.expectSent()
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try FileManager.default.contentsOfDirectory(atPath: yonder.mount.string) == ["pipe"])
            }
        }

        @Test("MOUNT-9: a directory with files is no place for a mount, and the refusal names them")
        func occupied() async throws {
            try await Installation.run { yonder in
                let directory = yonder.mount.string
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
                for name in ["a", "b", "c", "d", "e"] {
                    try Data().write(to: URL(fileURLWithPath: directory + "/" + name))
                }
                try await yonder.yonder("mount", yonder.source.string, directory)
                    .expectFailure(saying: "it has 'a', 'b', 'c' and 2 more")
                #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 5)
            }
        }
    }
}
