import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Buckets on servers of other makes (Tests/S3ProviderTests/Programs/strict_store.py).
    @Suite struct OtherStores {
        private func withMount(
            _ options: String..., body: (StrictStoreProgram, Installation) async throws -> Void
        ) async throws {
            try await StrictStoreProgram.run(options) { store in
                try await Installation.run { installation in
                    let yonder = installation.with([
                        "AWS_ACCESS_KEY_ID": ObjectStoreProgram.accessKey,
                        "AWS_SECRET_ACCESS_KEY": ObjectStoreProgram.secretKey,
                        "HOME": installation.directory.path.string,
                    ])
                    let mounted = try await Command(
                        [
                            Installation.program, "mount", "s3://bucket/top", yonder.mount.string, "--endpoint",
                            store.endpoint, "--region", ObjectStoreProgram.region,
                        ], environment: yonder.environment, seconds: 60
                    ).run()
                    try #require(mounted.status == 0, "\(mounted.errors)")
                    try await body(store, yonder)
                }
            }
        }

        /// What people wrote; what the provider keeps under hidden names is not counted.
        private func shown(_ store: StrictStoreProgram) async throws -> [String] {
            try await store.keys().filter { !$0.contains("/.yonder-") }
        }

        @Test("CHANGE-10: a new file is there within ten seconds on another mount for who asks for its name")
        func otherMount() async throws {
            try await withMount { store, yonder in
                let other = yonder.directory["other"].string
                let mounted = try await Command(
                    [
                        Installation.program, "mount", "s3://bucket/top", other, "--name", "other", "--endpoint",
                        store.endpoint, "--region", ObjectStoreProgram.region,
                    ], environment: yonder.environment, seconds: 60
                ).run()
                try #require(mounted.status == 0, "\(mounted.errors)")
                #expect(try await Command.run("ls", other).output == "")
                _ = try await Command.shell("echo text > \"$1/new\"", yonder.mount.string)
                #expect(try await yonder.yonder("wait", "--timeout", "15").status == 0)
                let start = ContinuousClock.now
                let seen = try await Command.shell(
                    "for i in $(seq 300); do [ -e \"$1/new\" ] && exit 0; sleep 0.1; done; exit 1", other, seconds: 60)
                let elapsed = ContinuousClock.now - start
                #expect(seen.status == 0 && elapsed < .seconds(10), "\(elapsed)")
                #expect(try await Command.run("cat", other + "/new").output == "text\n")
            }
        }

        @Test(
            "S3-6, CONFLICT-3: a file that is written again and again has one name on every server, and no conflict",
            arguments: ["plain", "unquoted", "refuses=right", "lists=other", "answers=other", "encrypts"])
        func oneName(on server: String) async throws {
            try await withMount(server) { store, yonder in
                for number in 1...4 {
                    try await yonder.expectDone(
                        "echo \"round $2\" > \"$1/file\"", yonder.mount.string, "\(number)")
                    try await yonder.yonder("wait", "--timeout", "15").expectSuccess()
                    _ = try await yonder.yonder("signal", "--wait")
                    #expect(try await Command.run("cat", yonder["file"]).output == "round \(number)\n")
                }
                #expect(try await shown(store) == ["top/file"])
                #expect(try await Command.run("ls", yonder.mount.string).output == "file\n")
                #expect(try await store.ask("curl -sS \"$at/bucket/top/file\"") == "round 4\n")
                #expect(try await yonder.yonder("pending").output == "")
                #expect(try await yonder.yonder("conflicts").output == "")
                let why = try await yonder.yonder("why", yonder["file"]).output
                let sentence: String? =
                    switch server {
                    case "unquoted": "without quotes"
                    case "refuses=right": "does not accept an object's own ETag"
                    case "lists=other": "lists other ETags"
                    default: nil
                    }
                if let sentence { #expect(why.contains(sentence), "\(why)") }
            }
        }
    }
}
