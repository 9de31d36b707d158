import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The example provider, as a user has it.
    @Suite struct Archives {
        @Test("a tar archive is a folder that cannot be written, and follows the archive") func mountsAnArchive()
            async throws
        {
            try await Installation.run { yonder in
                try yonder.write("one", to: "one")
                try yonder.write("two", to: "dir/two")
                let archive = yonder.directory["archive.tar"].string
                #expect(try await Command.run("tar", "-C", yonder.source.string, "-cf", archive, ".").status == 0)
                let mounted = try await yonder.yonder("mount", "tar://" + archive, yonder.mount.string, "--poll", "1")
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await Command.run("diff", "-r", yonder.source.string, yonder.mount.string).expectSuccess()
                #expect(try await Command.shell("echo x > \"$1\"", yonder["new"]).errors.contains("Read-only"))
                try yonder.write("three", to: "dir/three")
                try await Command.run("tar", "-C", yonder.source.string, "-rf", archive, "./dir/three").expectSuccess()
                #expect(try await eventually { try await Command.run("cat", yonder["dir/three"]).output == "three" })
                #expect(try await yonder.yonder("check", "mount", "--content").status == 0)
                try await yonder.yonder("mount", "tar:///no/such.tar", yonder.directory["other"].string)
                    .expectFailure(saying: "there is no '/no/such.tar'")
            }
        }
    }
}
