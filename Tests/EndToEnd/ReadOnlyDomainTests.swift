import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A domain that is mounted read-only leaves its remote as it is.
    @Suite struct ReadOnlyDomain {
        @Test("WRITE-15: a read-only domain does not make a file again that was deleted in the source")
        func nothingIsMadeAgain() async throws {
            try await Installation.run { installation async throws in
                try installation.write("text", to: "f")
                try await installation.mountSource("--read-only")
                #expect(try await Command.run("cat", installation["f"]).output == "text")
                #expect(try await installation.yonder("pause", installation.mount.string).status == 0)
                try FileManager.default.removeItem(atPath: installation.source.appending("f").string)
                try await installation.yonder("reimport", installation.mount.string).expectFailure(saying: "read-only")
                #expect(try await installation.yonder("resume", installation.mount.string).status == 0)
                _ = try await installation.yonder("signal", installation.mount.string, "--wait")
                #expect(try await installation.yonder("pending").output == "")
                #expect(installation.sourceText("f") == nil)
            }
        }

        @Test("WRITE-15: a domain that is mounted read-only keeps its changes here and says why")
        func pendingChangesAreExplained() async throws {
            try await Installation.mounted(["f": "text"]) { installation async throws in
                try await installation.shell("cat f")
                #expect(try await installation.yonder("pause", installation.mount.string).status == 0)
                try await installation.shell("echo other > f; echo new > n")
                #expect(try await installation.yonder("unmount", installation.mount.string).status == 0)
                try await installation.mountSource("--read-only")
                _ = try await installation.yonder("resume", installation.mount.string)
                let waited = try await installation.yonder("wait", "--timeout", "3")
                #expect(waited.status == 75)
                #expect(installation.sourceText("f") == "text")
                #expect(installation.sourceText("n") == nil)
                let pending = try await installation.pending()
                #expect(Set(pending.keys).isSuperset(of: ["f", "n"]))
                for item in pending.values { #expect(item.error?.message.contains("read-only") == true) }
                #expect(try await installation.yonder("why", installation["n"]).output.contains("read-only"))
                #expect(try await installation.yonder("unmount", installation.mount.string).status == 0)
                try await installation.mountSource("--no-read-only")
                _ = try await installation.yonder("resume", installation.mount.string)
                try await installation.expectSent()
            }
        }
    }
}
