import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What changes in the source appears in the mount by itself, kernel caches included.
    @Suite struct RemoteChanges {
        private func output(_ arguments: String...) async throws -> String {
            try await Command(arguments).run().output
        }

        @Test("CHANGE-1: new, changed, renamed and deleted files appear") func filesAppear() async throws {
            try await Installation.mounted(["dir/one": "one"]) { yonder async throws in
                #expect(try await output("ls", yonder["dir"]) == "one\n")
                #expect(try await output("cat", yonder["dir/one"]) == "one")
                // A name that is known not to be there.
                #expect(try await Command.run("stat", yonder["dir/two"]).status == 1)

                try yonder.write("two", to: "dir/two")
                #expect(try await eventually { try await output("ls", yonder["dir"]) == "one\ntwo\n" })
                // It may have been seen before the text was in it.
                #expect(try await eventually { try await output("cat", yonder["dir/two"]) == "two" })

                try yonder.write("one, longer", to: "dir/one")
                #expect(try await eventually { try await output("cat", yonder["dir/one"]) == "one, longer" })
                #expect(try await output("stat", "-c", "%s", yonder["dir/one"]) == "11\n")

                let inode = try await output("stat", "-c", "%i", yonder["dir/two"])
                try FileManager.default.moveItem(
                    atPath: yonder.source.appending("dir/two").string,
                    toPath: yonder.source.appending("dir/three").string)
                #expect(try await eventually { try await output("ls", yonder["dir"]) == "one\nthree\n" })
                #expect(try await output("stat", "-c", "%i", yonder["dir/three"]) == inode)
                #expect(try await output("cat", yonder["dir/three"]) == "two")

                try FileManager.default.removeItem(atPath: yonder.source.appending("dir/one").string)
                #expect(try await eventually { try await output("ls", yonder["dir"]) == "three\n" })
                #expect(try await Command.run("cat", yonder["dir/one"]).errors.contains("No such file"))
            }
        }

        @Test("what comes into directories that were made here appears, too") func followsOwnDirectories() async throws
        {
            try await Installation.mounted { yonder async throws in
                #expect(try await Command.run("mkdir", "-p", yonder["made/deep"]).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "10").status == 0)
                try yonder.write("one", to: "made/one")
                try yonder.write("two", to: "made/deep/two")
                #expect(try await eventually { try await output("ls", yonder["made"]) == "deep\none\n" })
                #expect(try await eventually { try await output("ls", yonder["made/deep"]) == "two\n" })
                #expect(
                    try await eventually {
                        try await output("cat", yonder["made/one"], yonder["made/deep/two"]) == "onetwo"
                    })
            }
        }

        @Test("FOLDER-2: a renamed directory keeps its inodes and its content") func directoriesMove() async throws {
            try await Installation.mounted(["old/sub/file": "deep", "place/empty": ""]) { yonder async throws in
                let look = "cd \"$1\" && find . -printf '%i %P\\n' | sort -k 2"
                #expect(try await output("ls", yonder["place"]) == "empty\n")
                let before = try await Command.shell(look, yonder["old"]).output
                #expect(try await output("cat", yonder["old/sub/file"]) == "deep")
                try FileManager.default.moveItem(
                    atPath: yonder.source.appending("old").string, toPath: yonder.source.appending("place/new").string)
                #expect(try await eventually { try await output("ls", yonder["place"]) == "empty\nnew\n" })
                #expect(try await Command.shell(look, yonder["place/new"]).output == before)
                #expect(try await yonder.info("place/new/sub/file").content == "materialized")
            }
        }

        @Test("mode and times follow") func attributesFollow() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                _ = try await output("ls", yonder.mount.string)
                _ = try await Command.shell(
                    "chmod 750 \"$1\" && touch -d @86400.25 \"$1\"", yonder.source.appending("file").string)
                #expect(
                    try await eventually {
                        try await output("stat", "-c", "%a %.9Y", yonder["file"]) == "750 86400.250000000\n"
                    })
            }
        }

        @Test("what happened while nothing was mounted is there afterwards") func catchesUp() async throws {
            try await Installation.run { yonder in
                for name in ["a", "b", "dir/c"] { try yonder.write("text", to: name) }
                try await yonder.mountSource()
                _ = try await output("ls", "-R", yonder.mount.string)
                #expect(try await output("cat", yonder["b"]) == "text")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                try FileManager.default.removeItem(atPath: yonder.source.appending("a").string)
                try yonder.write("other text", to: "b")
                try yonder.write("new", to: "dir/d")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await output("ls", yonder.mount.string) == "b\ndir\n")
                #expect(try await output("cat", yonder["b"]) == "other text")
                #expect(try await output("ls", yonder["dir"]) == "c\nd\n")
            }
        }
    }
}
