import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Which shell's variables count: those of the one that mounts.
    @Suite struct DaemonEnvironments {
        private static let keys = [
            "AWS_ACCESS_KEY_ID": ObjectStoreProgram.accessKey, "AWS_SECRET_ACCESS_KEY": ObjectStoreProgram.secretKey,
        ]

        /// Starts a daemon from a shell that has these variables.
        private func startDaemon(_ yonder: Installation, _ variables: [String: String], byHand: Bool) async throws {
            if byHand {
                // 'Installation' ends it.
                _ = try await BackgroundProgram(
                    [Installation.program + "d"], environment: yonder.with(variables).environment)
                #expect(try await eventually { try await yonder.yonder("domains").status == 0 })
            } else {
                let first = yonder.directory["first"].string
                let mounted = try await yonder.with(variables).yonder("mount", yonder.source.string, first)
                try #require(mounted.status == 0, "\(mounted.errors)")
            }
        }

        @Test(
            "ACCESS-6: a daemon that 'yonder mount' starts has no variable of that shell that it does not need",
            .enabled("only root sees the variables of a daemon (ACCESS-3)") { FUSEAvailability.isRoot })
        func startsClean() async throws {
            try await Installation.run { yonder in
                let odd = [
                    "SSL_CERT_FILE": "/nonexistent", "https_proxy": "http://u:secret@127.0.0.1:1", "MY_TOKEN": "secret",
                    "AWS_PROFILE": "secret", "LC_ALL": "C.UTF-8",
                ]
                try await startDaemon(yonder, odd.merging(Self.keys) { $1 }, byHand: false)
                let daemon = try #require(yonder.daemon)
                let environment = try await Command.shell("tr '\\0' '\\n' < /proc/\(daemon)/environ").output
                #expect(environment.contains("YONDER_STATE_DIR=") && environment.contains("LC_ALL=C.UTF-8"))
                for name in ["AWS_", "SSL_", "proxy", "MY_TOKEN"] {
                    #expect(!environment.contains(name), "\(environment)")
                }
                #expect(try await yonder.yonder("unmount", "first").status == 0)
            }
        }

        @Test(
            "ACCESS-6: a bucket that is mounted from a shell without credentials is not opened with those of the daemon's shell",
            arguments: [false, true])
        func credentials(byHand: Bool) async throws {
            try await withBucket { store, yonder, mount in
                try await startDaemon(yonder, Self.keys, byHand: byHand)
                try await yonder.yonder(words: mount).expectFailure(saying: "no credentials for S3")
                try await yonder.with(Self.keys).yonder(words: mount).expectSuccess()
                #expect(try await Command.run("cat", yonder["one"]).output == "one")
                // A shell that has no credentials takes none away.
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                try await yonder.with(["AWS_CONFIG_FILE": "/nonexistent"]).yonder(words: mount).expectSuccess()
                #expect(try await Command.run("cat", yonder["one"]).output == "one")
            }
        }

        @Test("ACCESS-6: a container's credentials are those of the shell that mounts, not of the daemon's shell")
        func container() async throws {
            try await withBucket { store, yonder, mount in
                let address = yonder.directory["address"].string
                let program = try await BackgroundProgram(
                    "python3", "-c",
                    """
                    import http.server, json, os, sys
                    class Answer(http.server.BaseHTTPRequestHandler):
                        def do_GET(self):
                            right = self.path == '/creds' and self.headers['Authorization'] == 'token'
                            body = json.dumps({'AccessKeyId': sys.argv[2], 'SecretAccessKey': sys.argv[3]}).encode()
                            self.send_response(200 if right else 403)
                            self.send_header('Content-Length', str(len(body)))
                            self.end_headers()
                            self.wfile.write(body)
                    server = http.server.HTTPServer(('127.0.0.1', 0), Answer)
                    open(sys.argv[1] + '.new', 'w').write(f'http://127.0.0.1:{server.server_port}/creds')
                    os.rename(sys.argv[1] + '.new', sys.argv[1])
                    server.serve_forever()
                    """, address, ObjectStoreProgram.accessKey, ObjectStoreProgram.secretKey)
                defer { program.kill() }
                #expect(await eventually(within: .seconds(20)) { FileManager.default.fileExists(atPath: address) })
                try await startDaemon(yonder, [:], byHand: false)
                let shell = yonder.with([
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI": try String(contentsOfFile: address, encoding: .utf8),
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN": "token",
                ])
                try await shell.yonder(words: mount).expectSuccess()
                #expect(try await Command.run("cat", yonder["one"]).output == "one")
                _ = try await yonder.yonder("shutdown")
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cp", yonder["one"], yonder["two"]).status == 0)
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
            }
        }

        @Test(
            "ACCESS-6: certificates are those of the shell that mounts, are kept with the domain, and can be taken back",
            .enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed"))
        func certificates() async throws {
            let server = try await DAVServer.start(.apache, isSecure: true)
            try await withCleanUp({ await server.stop() }) {
                try Data("text".utf8).write(to: URL(fileURLWithPath: server.root.appending("file").string))
                try await Installation.run { installation in
                    let yonder = installation.with(["NETRC": "/nonexistent"])
                    let authority = ["SSL_CERT_FILE": server.authorityFile.string]
                    let mount = ["mount", server.source, yonder.mount.string]
                    try await startDaemon(yonder, authority, byHand: false)
                    try await yonder.yonder(words: mount).expectFailure(saying: "no safe connection")
                    try await yonder.with(authority).yonder(words: mount).expectSuccess()
                    // Another daemon, from a shell that knows nothing of it.
                    _ = try await yonder.yonder("shutdown")
                    for again in [["mount", "mount"], mount] {
                        #expect(try await yonder.yonder(words: again).status == 0)
                        #expect(try await Command.run("cat", yonder["file"]).output == "text")
                        // The kernel tells of a close a moment after it.
                        #expect(try await eventually { try await yonder.yonder("evict", yonder["file"]).status == 0 })
                    }
                    #expect(try await yonder.yonder("unmount", "mount").status == 0)
                    #expect(try await yonder.with(["SSL_CERT_FILE": ""]).yonder(words: mount).status == 0)
                    let read = try await Command.run("cat", yonder["file"])
                    #expect(read.errors.contains("No route to host"), "\(read.output)\(read.errors)")
                }
            }
        }

        private func withBucket(
            _ body: (ObjectStoreProgram, Installation, [String]) async throws -> Void
        ) async throws {
            let store = try await ObjectStoreProgram()
            try await withCleanUp({ store.stop() }) {
                let made = try await store.ask(
                    "ask -X PUT \"$at/bucket\" && printf one | ask -T - \"$at/bucket/top/one\"")
                #expect(made.status == 0, "\(made.errors)")
                try await Installation.run { installation in
                    // The shell that runs the tests may have one of its own.
                    let yonder = installation.with([
                        "HOME": installation.directory.path.string, "AWS_CA_BUNDLE": "",
                    ])
                    try await body(
                        store, yonder,
                        [
                            "mount", "s3://bucket/top", yonder.mount.string, "--endpoint", store.endpoint, "--region",
                            ObjectStoreProgram.region,
                        ])
                }
            }
        }
    }
}
