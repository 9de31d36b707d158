import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Options for a domain that is known, or mounted already.
    @Suite struct MountOptions {
        private func mount(_ yonder: Installation, _ options: String...) async throws -> Command.Outcome {
            try await Command(
                [Installation.program, "mount", yonder.source.string, yonder.mount.string] + options,
                environment: yonder.environment, seconds: 60
            ).run()
        }

        @Test("CMD-2: what is given replaces what was kept, what is not given stays, and 'none' takes it away")
        func known() async throws {
            try await Installation.run { yonder in
                try yonder.write("x", to: "file")
                try await yonder.mountSource("--cache-limit", "500K", "--read-only", "--ignore", "*.part")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount", "--cache-limit", "300K").status == 0)
                #expect(try await yonder.status().bytes.limit == 300 << 10)
                let refused = try await Command.shell("echo y > \"$1\"", yonder["other"])
                #expect(refused.errors.contains("Read-only"), "\(refused.errors)")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(
                    try await yonder.yonder("mount", "mount", "--no-read-only", "--cache-limit", "none").status == 0)
                #expect(try await yonder.status().bytes.limit == nil)
                try await yonder.shell("echo y > other; echo z > other.part")
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(FileManager.default.fileExists(atPath: yonder.source.appending("other").string))
                #expect(try await yonder.info("other.part").sync == "excluded")
            }
        }

        @Test("CMD-2: on a mounted domain limits, polling, fsync and ignored names hold at once, and are kept")
        func mounted() async throws {
            try await Installation.run { yonder in
                for number in 0..<8 { try yonder.write([UInt8](repeating: 7, count: 100_000), to: "f\(number)") }
                try await yonder.mountSource()
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                #expect(try await yonder.status().bytes.local == 800_000)
                let limited = try await mount(yonder, "--cache-limit", "300K", "--ignore", "*.part", "--poll", "3600")
                #expect(limited.status == 0, "\(limited.errors)")
                #expect(try await eventually { try await yonder.status().bytes.local <= 300 << 10 })
                try await yonder.shell("echo z > a.part")
                #expect(try await yonder.info("a.part").sync == "excluded")
                // fsync that fails while the remote is not to be had shows that it waits for it.
                #expect(try await mount(yonder, "--fsync", "remote").status == 0)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                let synced = try await Command.shell("echo w > \"$1\"; timeout 3 sync \"$1\"", yonder["w"])
                #expect(synced.status != 0)
                #expect(try await mount(yonder, "--fsync", "local").status == 0)
                #expect(try await Command.shell("timeout 3 sync \"$1\"", yonder["w"]).status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await mount(yonder, "--cache-limit", "none").status == 0)
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                // Longer than a round over the limit takes.
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(try await yonder.status().bytes.local >= 800_000)
                // What was said while it was mounted counts at the next mount, too.
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.status().bytes.limit == nil)
                #expect(try await yonder.info("a.part").sync == "excluded")
                // And a name that is not ignored any more is sent.
                #expect(try await mount(yonder, "--ignore", "").status == 0)
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(FileManager.default.fileExists(atPath: yonder.source.appending("a.part").string))
            }
        }

        @Test("CMD-3: what only a new mount can change is refused, says how, and changes nothing")
        func refused() async throws {
            try await Installation.run { yonder in
                try yonder.write("x", to: "file")
                try await yonder.mountSource()
                let outcome = try await mount(yonder, "--read-only", "--cache-limit", "300K")
                #expect(outcome.status == 1)
                #expect(outcome.errors.contains("--read-only"))
                #expect(outcome.errors.contains("yonder unmount mount"))
                #expect(try await yonder.status().bytes.limit == nil)
                try await yonder.shell("echo y > other")
                // As it is already is fine.
                #expect(try await mount(yonder, "--no-read-only").status == 0)
                for wrong in [["--poll", "0"], ["--cache-limit", "much"], ["--cache-time", "-1"]] {
                    let outcome = try await Command(
                        [Installation.program, "mount", "mount"] + wrong, environment: yonder.environment
                    ).run()
                    #expect(outcome.status == 64, "\(wrong): \(outcome.errors)")
                }
            }
        }
    }
}
