import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Items that are moved on the remote into, or out of, directories that were never listed here.
    @Suite struct MovedAway {
        private func move(_ yonder: Installation, _ name: String, to place: String) throws {
            try FileManager.default.moveItem(
                atPath: yonder.source.appending(name).string, toPath: yonder.source.appending(place).string)
        }

        private func prepare(_ yonder: Installation) async throws -> Int64 {
            try yonder.write("alpha", to: "a")
            try yonder.write("other", to: "never/other")
            try yonder.write("deep", to: "never/deep/er/file")
            try await yonder.mountSource()
            #expect(try await yonder.shell("ls; cat a") == "a\nnever\nalpha")
            #expect(try await yonder.yonder("wait", "--downloads", "--timeout", "20").status == 0)
            return try await yonder.info("a").inode
        }

        private func expectMoved(
            _ yonder: Installation, to place: String, _ inode: Int64, _ text: String,
            sourceLocation: SourceLocation = #_sourceLocation
        ) async throws {
            let isGone = try await eventually { try await yonder.shell("ls") == "never\n" }
            #expect(isGone, sourceLocation: sourceLocation)
            // `info` lists nothing, and there nothing has been listed.
            try await yonder.shell("stat \(place)")
            let moved = try await yonder.info(place)
            #expect(moved.inode == inode, "the inode of '\(place)'", sourceLocation: sourceLocation)
            #expect(moved.content == "materialized", sourceLocation: sourceLocation)
            #expect(try await yonder.shell("cat \(place)") == text, sourceLocation: sourceLocation)
        }

        @Test(
            "FOLDER-2: what is moved on the remote into a directory that was never listed keeps its inode and content",
            arguments: ["never/a", "never/deep/er/renamed"])
        func movesIntoUnlisted(place: String) async throws {
            try await Installation.run { yonder in
                let inode = try await prepare(yonder)
                try move(yonder, "a", to: place)
                try await expectMoved(yonder, to: place, inode, "alpha")
                // And back out of it.
                try move(yonder, place, to: "a")
                #expect(try await eventually { try await yonder.shell("ls") == "a\nnever\n" })
                #expect(try await yonder.info("a").inode == inode)
                #expect(try await yonder.info("a").content == "materialized")
            }
        }

        @Test("FOLDER-2: the same for a file with an edit that was not sent: the edit is sent to where the file is now")
        func movesEdited() async throws {
            try await Installation.run { yonder in
                let inode = try await prepare(yonder)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("printf edited > a")
                try move(yonder, "a", to: "never/deep/er/a")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await expectMoved(yonder, to: "never/deep/er/a", inode, "edited")
                try await yonder.expectSent()
                let sent = yonder.source.appending("never/deep/er/a").string
                #expect(FileManager.default.contents(atPath: sent) == Data("edited".utf8))
            }
        }

        @Test("FOLDER-2: the same for a directory with all below it, and while nothing is mounted")
        func movesDirectoriesWhileUnmounted() async throws {
            try await Installation.mounted(["d/sub/file": "below", "never/other": "other"]) { yonder async throws in
                #expect(try await yonder.shell("ls; cat d/sub/file") == "d\nnever\nbelow")
                #expect(try await yonder.yonder("wait", "--downloads", "--timeout", "20").status == 0)
                let inode = try await yonder.info("d/sub/file").inode
                try move(yonder, "d", to: "never/d")
                try await expectMoved(yonder, to: "never/d/sub/file", inode, "below")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                try FileManager.default.createDirectory(
                    atPath: yonder.source.appending("never/new/er").string, withIntermediateDirectories: true)
                try move(yonder, "never/d", to: "never/new/er/d")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(
                    try await eventually {
                        try await Command.run("ls", yonder["never/new/er/d/sub"]).output == "file\n"
                    })
                #expect(try await yonder.info("never/new/er/d/sub/file").inode == inode)
                #expect(try await yonder.info("never/new/er/d/sub/file").content == "materialized")
            }
        }

        @Test("what is moved out of the source is gone, however large the rest is") func movesOutOfTheSource()
            async throws
        {
            try await Installation.run { yonder in
                _ = try await prepare(yonder)
                try FileManager.default.moveItem(
                    atPath: yonder.source.appending("a").string, toPath: yonder.directory["elsewhere"].string)
                #expect(try await eventually { try await yonder.shell("ls") == "never\n" })
                #expect(try await yonder.yonder("check", "mount").status == 0)
            }
        }
    }
}
