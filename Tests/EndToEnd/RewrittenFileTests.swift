import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Files of the source that are rewritten in place with the same size, and get their old time.
    @Suite struct RewrittenFiles {
        private func rewrite(_ yonder: Installation, _ name: String, _ text: String) async throws {
            try await yonder.expectDone(
                "cd \"$1\"; touch -r \"$2\" ../date; printf %s \"$3\" > \"$2\"; touch -r ../date \"$2\"",
                yonder.source.string, name, text)
        }

        private func text(_ yonder: Installation, _ name: String) async throws -> String {
            try await Command.run("cat", yonder[name]).output
        }

        @Test("FOLDER-17: a file that was read shows its new bytes, and an open one keeps the old ones")
        func showsTheNewBytes() async throws {
            try await Installation.mounted(["a": "alpha", "b": "beta"]) { yonder async throws in
                #expect(try await text(yonder, "a") == "alpha")
                #expect(try await text(yonder, "b") == "beta")
                let reader = try FileHandle(forReadingFrom: URL(fileURLWithPath: yonder["b"]))
                defer { try? reader.close() }
                #expect(try reader.read(upToCount: 1) == Data("b".utf8))
                try await rewrite(yonder, "a", "ALPHA")
                try await rewrite(yonder, "b", "BETA")
                #expect(try await eventually { try await text(yonder, "a") == "ALPHA" })
                #expect(try await eventually { try await text(yonder, "b") == "BETA" })
                #expect(try reader.readToEnd() == Data("eta".utf8))
            }
        }

        @Test("FOLDER-17: what was rewritten while the domain was not mounted is noticed")
        func whileUnmounted() async throws {
            try await Installation.mounted(["a": "alpha"]) { yonder async throws in
                #expect(try await text(yonder, "a") == "alpha")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                try await rewrite(yonder, "a", "ALPHA")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await eventually { try await text(yonder, "a") == "ALPHA" })
            }
        }

        @Test("FOLDER-17: a file that is rewritten just before it is deleted here comes back")
        func deleted() async throws {
            try await Installation.mounted(["a": "alpha"]) { yonder async throws in
                #expect(try await text(yonder, "a") == "alpha")
                try await yonder.expectDone(
                    "cd \"$1\"; touch -r a ../date; printf ALPHA > a; touch -r ../date a; rm \"$2\"",
                    yonder.source.string, yonder["a"])
                #expect(try await yonder.yonder("wait", "mount", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("a") == "ALPHA")
                #expect(try await eventually { try await text(yonder, "a") == "ALPHA" })
            }
        }

        @Test("FOLDER-17: while a deletion waits, another mode or name does not bring the file back, and a write does")
        func deletionsThatWait() async throws {
            try await Installation.mounted(["a": "alpha", "b": "beta", "c": "gamma", "e": "epsilon"]) {
                yonder async throws in
                #expect(try await text(yonder, "a") == "alpha")
                #expect(try await text(yonder, "b") == "beta")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("rm a b c e")
                try await yonder.expectDone("chmod 600 \"$1/a\"; mv \"$1/e\" \"$1/f\"", yonder.source.string)
                try await rewrite(yonder, "b", "BETA")
                try await rewrite(yonder, "c", "GAMMA")
                try await yonder.expectDone("mv \"$1/c\" \"$1/d\"", yonder.source.string)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "mount", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("a") == nil && yonder.sourceText("f") == nil)
                #expect(yonder.sourceText("b") == "BETA" && yonder.sourceText("d") == "GAMMA")
                #expect(try await eventually { try await text(yonder, "b") == "BETA" })
                #expect(try await eventually { try await text(yonder, "d") == "GAMMA" })
                #expect(!FileManager.default.fileExists(atPath: yonder["a"]))
            }
        }

        @Test(
            "FOLDER-17: an edit of the old bytes does not replace the new ones",
            arguments: ["printf o | dd of=a bs=1 conv=notrunc", "printf olpha > new && mv new a"])
        func edited(how: String) async throws {
            try await Installation.mounted(["a": "alpha"]) { yonder async throws in
                #expect(try await text(yonder, "a") == "alpha")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell(how)
                try await rewrite(yonder, "a", "ALPHA")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "mount", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("a") == "ALPHA")
                let copy = try #require(try await yonder.conflicts()["a"])
                #expect(try await text(yonder, copy) == "olpha")
            }
        }
    }
}
