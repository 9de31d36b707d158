import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Secrets that `yonder mount` asks for on a terminal.
    @Suite struct SecretPrompts {
        @Test(
            "ACCESS-8: a password that a server requires is asked for without echo, and the terminal is restored",
            .enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed"))
        func password() async throws {
            let server = try await DAVServer.start(.apache, .basic)
            try await withCleanUp({ await server.stop() }) {
                try await Installation.run { installation in
                    let yonder = installation.with(["NETRC": "/nonexistent"])
                    let source = server.source.replacing("webdav://", with: "webdav://user@")
                    let mount = ["mount", source, yonder.mount.string, "--name", "cloud"]
                    for (answer, status) in [("secret\u{3}", 130), ("\n", 64), ("TERM", 143)] as [(String, Int32)] {
                        let ended = try await yonder.onTerminal(mount, answer: answer)
                        #expect(ended.asked && ended.restored && ended.status == status, "\(status): \(ended)")
                        #expect(try await yonder.yonder("domains").output == "")
                    }
                    let silent = try await yonder.run(
                        "yonder mount \"$1\" \"$2\"", source, yonder.mount.string)
                    #expect(silent.status == 1 && silent.errors.contains("--password-stdin"))
                    // Backspace takes a character back.
                    let mounted = try await yonder.onTerminal(mount, answer: "secret wor\u{7F}rd\n")
                    #expect(mounted.asked && mounted.restored && mounted.status == 0, "\(mounted)")
                    #expect(mounted.text.contains("password of 'user': ") && !mounted.text.contains("secret"))
                    let found = try await Command.run("grep", "-rl", "secret word", yonder.directory.path.string).output
                    #expect(found == yonder.directory["credentials/cloud"].string + "\n")
                    // A known password is not asked for again.
                    #expect(try await yonder.yonder("unmount", "cloud").status == 0)
                    let again = try await yonder.onTerminal(["mount", "cloud"])
                    #expect(!again.asked && again.status == 0, "\(again)")
                }
            }
        }

        @Test("ACCESS-8: the secret key of an access key is asked for, and used after a restart")
        func secretKey() async throws {
            let store = try await ObjectStoreProgram()
            defer { store.stop() }
            try await store.ask("ask -X PUT \"$at/bucket\" && printf one | ask -T - \"$at/bucket/one\"").expectSuccess()
            try await Installation.run { installation in
                let yonder = installation.with([
                    "HOME": installation.directory.path.string, "AWS_EC2_METADATA_DISABLED": "true",
                ])
                let mount = [
                    "mount", "s3://bucket", yonder.mount.string, "--endpoint", store.endpoint, "--region",
                    ObjectStoreProgram.region, "--access-key", ObjectStoreProgram.accessKey,
                ]
                let mounted = try await yonder.onTerminal(mount, answer: "\(ObjectStoreProgram.secretKey)\n")
                #expect(mounted.asked && mounted.restored && mounted.status == 0, "\(mounted)")
                #expect(mounted.text.contains("secret key of '\(ObjectStoreProgram.accessKey)': "))
                #expect(!mounted.text.contains(ObjectStoreProgram.secretKey))
                _ = try await yonder.yonder("shutdown")
                let again = try await yonder.onTerminal(["mount", "mount"])
                #expect(!again.asked && again.status == 0, "\(again)")
                #expect(try await Command.run("cat", yonder["one"]).output == "one")
                let kept = try await Command.shell(
                    "! grep -rqF '\"\(ObjectStoreProgram.secretKey)\"' \"$1/state\"", yonder.directory.path.string)
                #expect(kept.status == 0)
            }
        }
    }
}
