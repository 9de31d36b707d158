import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Rates that a user allows.
    @Suite struct TransferLimits {
        private static let size = 1_500_000

        @Test(
            "LIMIT-5: content is sent and received at the rates that are allowed", arguments: FarRemote.Kind.installed)
        func rates(_ kind: FarRemote.Kind) async throws {
            try await FarRemote.run(kind) { remote, yonder in
                func run(_ script: String) async throws -> (output: String, time: Duration) {
                    let start = ContinuousClock.now
                    let outcome = try await yonder.run("cd \"$1\" && \(script)", yonder.mount.string)
                    try #require(outcome.status == 0, "\(outcome.errors)")
                    return (outcome.output, .now - start)
                }
                try await remote.mount(yonder, "--limit-up", "512K", "--limit-down", "512K")
                let sent = try await run("head -c \(Self.size) /dev/urandom > file && sha256sum < file && yonder wait")
                #expect(sent.time >= .seconds(2))
                _ = try await run("yonder evict file")
                let received = try await run("sha256sum < file")
                #expect(received.time >= .seconds(2))
                #expect(sent.output.hasPrefix(received.output))
                // A limit that is taken away holds no transfer up that is under way.
                let freed = try await run(
                    """
                    yonder set mount limit-up=32K limit-down=32K > /dev/null && yonder evict file && {
                    sha256sum < file & sleep 0.5; yonder set mount limit-up=none limit-down=none > /dev/null; wait; }
                    """)
                #expect(freed.output.hasPrefix(received.output))
            }
        }

        @Test("LIMIT-5: a rate is bytes a second, and is refused where servers would end the transfer")
        func refused() async throws {
            try await Installation.run { yonder in
                for rate in ["1", "31K", "-5M", "fast"] {
                    let outcome = try await yonder.yonder(
                        "mount", yonder.source.string, yonder.mount.string, "--limit-up", rate)
                    #expect(outcome.status == 64, "\(rate)")
                }
                try await yonder.mountSource("--limit-up", "2M/s", "--limit-down", "1G")
                let shown = try await yonder.yonder("show", "mount").output
                #expect(shown.contains("limit-up=2097152\n"), "\(shown)")
                #expect(shown.contains("limit-down=1073741824\n"), "\(shown)")
            }
        }
    }
}
