import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What goes wrong with a remote that has been mounted: it is said, nothing is lost by it, and all goes on when it is
    /// put right.
    @Suite(.tags(.long)) struct LaterTroubles {
        /// How a trouble shows.
        private struct Signs {
            var connection: DomainStatus.Connection
            /// What `yonder status` and the reader of what is not here are told.
            var words: String
            var errno: String
        }

        private static let away = "No route to host"

        // MARK: - WebDAV

        private func withServer(
            _ admission: DAVServer.Admission = .everybody, isSecure: Bool = false,
            _ test: (Installation, DAVServer) async throws -> Void
        ) async throws {
            let server = try await DAVServer.start(.apache, admission, isSecure: isSecure)
            try await withCleanUp({ await server.stop() }) {
                try await Installation.run { installation in
                    var environment = ["NETRC": "/nonexistent"]
                    if isSecure { environment["SSL_CERT_FILE"] = server.directory["trusted.pem"].string }
                    try await test(installation.with(environment), server)
                }
            }
        }

        private func fill(_ folder: FilePath) async throws {
            let made = try await Command.shell(
                """
                cd "$1" && mkdir -p here away/below && echo 1 > here/1 && echo 2 > here/2 && echo 3 > away/below/3 &&
                echo old > rewritten && echo old > renamed && echo old > removed && chmod -R a+rwX . &&
                find . -exec touch -d 2020-01-01 {} +
                """, folder.string)
            try #require(made.status == 0, "\(made.errors)")
        }

        /// Has some of it here, and the server's habits found out.
        private func settle(_ yonder: Installation) async throws {
            try await yonder.shell("cat here/1 renamed; ls; echo first > made-before")
            try #require(try await yonder.yonder("wait", "--timeout", "30").status == 0)
        }

        /// Works on the mount while the remote is in trouble, and looks at what is said.
        private func meet(_ signs: Signs, _ yonder: Installation) async throws {
            let reading = try await Command.run("cat", yonder["here/2"], seconds: 60)
            #expect(reading.status != 0 && reading.output == "", "\(reading.output)")
            // It may have met the server just after its end, and before the trouble.
            let isNoticed = try await eventually(within: .seconds(20)) {
                let status = try await yonder.status()
                return status.connection == signs.connection && status.reason?.contains(signs.words) == true
            }
            let reason = try await yonder.status().reason ?? ""
            #expect(isNoticed, "\(reason)")
            let listing = try await Command.run("ls", yonder["away/below"], seconds: 60)
            #expect(listing.errors.contains(signs.errno), "\(listing.errors)")
            let again = try await Command.run("cat", yonder["here/2"], seconds: 60)
            #expect(again.errors.contains(signs.errno), "\(again.errors)")
            // What is here is here, and can be worked with.
            let found = try await yonder.shell("cat here/1; ls -d here/* away renamed rewritten removed")
            #expect(found == "1\naway\nhere/1\nhere/2\nremoved\nrenamed\nrewritten\n")
            try await yonder.shell(
                "echo new > made; mkdir dir; echo in > dir/in; echo new > new; mv new rewritten; mv renamed moved; rm removed"
            )
            _ = try await yonder.yonder("wait", "--timeout", "6")
            _ = try await yonder.yonder("signal", "--wait")
            let pending = try await yonder.yonder("pending").output
            for name in ["made", "dir", "in", "rewritten", "moved", "removed"] {
                #expect(pending.contains(name), "\(name): \(pending)")
            }
            let why = try await yonder.yonder("why", yonder["made"]).output
            #expect(why.contains(signs.words), "\(why)")
            let there = try await yonder.shell("cat here/1; ls -d here/* away; cat made rewritten moved dir/in")
            #expect(there == "1\naway\nhere/1\nhere/2\nnew\nnew\nold\nin\n")
        }

        /// All that was done arrives without a command, and nothing else has changed.
        private func recover(_ yonder: Installation, _ folder: FilePath) async throws {
            let isRead = await eventually(within: .seconds(30)) {
                (try? await Command.run("cat", yonder["here/2"], seconds: 60).output) == "2\n"
            }
            #expect(isRead)
            let isSent = await eventually(within: .seconds(75)) {
                (try? await yonder.yonder("pending").output) == ""
            }
            #expect(isSent)
            #expect(try await yonder.yonder("signal", "--wait").status == 0)
            #expect(try await yonder.yonder("conflicts").output == "")
            let outcome = try await Command.run("diff", "-r", "-x", ".DAV", yonder.mount.string, folder.string)
            #expect(outcome.output + outcome.errors == "")
            let names = try await Command.shell("cd \"$1\" && find . -type f ! -path '*/.DAV/*' | sort", folder.string)
            #expect(
                names.output
                    == "./away/below/3\n./dir/in\n./here/1\n./here/2\n./made\n./made-before\n./moved\n./rewritten\n")
            #expect(try await yonder.status().connection == .online)
        }

        @Test(
            "PATH-18: a password that is changed on the server is asked for, and nothing is lost",
            .timeLimit(.minutes(5)))
        func password() async throws {
            try await withServer(.digest) { yonder, server async throws in
                try await fill(server.root)
                let source = server.source.replacing("webdav://", with: "webdav://user@")
                let mounted = try await yonder.run(
                    "printf 'secret word\\n' | yonder mount \"$1\" \"$2\" --name cloud --password-stdin", source,
                    yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await settle(yonder)
                let people = server.directory["people"].string
                // The password is "other word".
                _ = try await Command.shell(
                    "printf 'user:the realm:%s\\n' $(printf 'user:the realm:other word' | md5sum | cut -c-32) > \"$1\"",
                    people)
                try await meet(
                    Signs(connection: .unauthenticated, words: "does not let 'user' in", errno: "Key was rejected"),
                    yonder)
                // As the message says.
                let credentials = yonder.directory["credentials/cloud"].string
                let kept = try String(contentsOfFile: credentials, encoding: .utf8)
                try kept.replacing("secret word", with: "other word")
                    .write(toFile: credentials, atomically: true, encoding: .utf8)
                try await recover(yonder, server.root)
            }
        }

        @Test("PATH-18: another certificate is not believed, until it is", .timeLimit(.minutes(5)))
        func certificate() async throws {
            try await withServer(isSecure: true) { yonder, server async throws in
                try await fill(server.root)
                let trusted = server.directory["trusted.pem"].string
                _ = try await Command.shell("cp \"$1\" \"$2\"", server.authorityFile.string, trusted)
                let mounted = try await yonder.run("yonder mount \"$1\" \"$2\"", server.source, yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await settle(yonder)
                let replaced = try await Command.shell(
                    """
                    cd "$1" && umask 022 && cp server.pem kept.pem && openssl req -x509 -newkey rsa:2048 -nodes -days 2 \
                        -subj "/CN=localhost" -addext "subjectAltName=DNS:localhost" -keyout k -out c && cat k c > server.pem
                    """, server.directory.path.string)
                try #require(replaced.status == 0, "\(replaced.errors)")
                await server.halt()
                let second = try await server.again()
                try await withCleanUp({ await second.halt() }) {
                    try await meet(
                        Signs(connection: .offline, words: "no safe connection", errno: Self.away), yonder)
                }
                _ = try await Command.shell("cd \"$1\" && cp kept.pem server.pem", server.directory.path.string)
                let third = try await server.again()
                try await withCleanUp({ await third.halt() }) { try await recover(yonder, server.root) }
            }
        }

        @Test(
            "PATH-15: a collection that is moved away takes nothing with it", .timeLimit(.minutes(5)))
        func collection() async throws {
            try await withServer { yonder, server async throws in
                let top = server.root.appending("top")
                _ = try await Command.shell("mkdir -m 777 \"$1\"", top.string)
                try await fill(top)
                let mounted = try await yonder.run(
                    "yonder mount \"$1\" \"$2\"", server.source + "top", yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await settle(yonder)
                _ = try await Command.shell("mv \"$1\" \"$1.away\"", top.string)
                try await meet(
                    Signs(connection: .offline, words: "not there on the remote", errno: Self.away), yonder)
                _ = try await Command.shell("mv \"$1.away\" \"$1\"", top.string)
                try await recover(yonder, top)
            }
        }

        @Test("PATH-16: a page to log in is no answer to anything", .timeLimit(.minutes(5)))
        func portal() async throws {
            try await FarRemote.run(.webDAV) { remote, yonder async throws in
                let folder = try #require(remote.folder)
                try await fill(folder)
                try await remote.mount(yonder)
                try await settle(yonder)
                try await remote.relay.tell("page")
                try await meet(Signs(connection: .offline, words: "a page to log in", errno: Self.away), yonder)
                try await remote.relay.tell("heal")
                try await recover(yonder, folder)
            }
        }

        @Test("PATH-17: what the server forbids below a directory is forbidden there, and the rest goes on")
        func forbidden() async throws {
            try await withServer { yonder, server async throws in
                try await fill(server.root)
                let mounted = try await yonder.run("yonder mount \"$1\" \"$2\"", server.source, yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await settle(yonder)
                try await yonder.shell("ls away; cat here/1")
                let config = server.directory["config"].string
                let whole = try String(contentsOfFile: config, encoding: .utf8)
                func restart(_ more: String) async throws -> DAVServer {
                    try (whole + more).write(toFile: config, atomically: true, encoding: .utf8)
                    return try await server.again()
                }
                await server.halt()
                let second = try await restart("<Location \"/away\">\nRequire all denied\n</Location>\n")
                try await withCleanUp({ await second.halt() }) {
                    #expect(try await yonder.yonder("retry").status == 0)
                    // A look that began while the server was away may have found it away.
                    let isBack = await eventually(within: .seconds(40)) {
                        (try? await yonder.status().connection) == .online
                    }
                    #expect(isBack)
                    let listing = try await Command.run("ls", yonder["away/below"], seconds: 60)
                    #expect(listing.errors.contains("Permission denied"), "\(listing.errors)")
                    try await yonder.shell("echo new > away/new; echo new > made; ls away")
                    #expect(await eventually(within: .seconds(20)) { server.holds("made") })
                    _ = try await yonder.yonder("signal", "--wait")
                    let isSaid = await eventually(within: .seconds(20)) {
                        (try? await yonder.yonder("pending").output.contains("does not permit")) == true
                    }
                    #expect(isSaid)
                    let why = try await yonder.yonder("why", yonder["away/new"]).output
                    #expect(why.contains("does not permit"), "\(why)")
                    #expect(try await yonder.status().connection == .online)
                    #expect(try await yonder.shell("ls away; cat here/2 away/new") == "below\nnew\n2\nnew\n")
                }
                let third = try await restart("")
                try await withCleanUp({ await third.halt() }) { () async throws in
                    #expect(await eventually(within: .seconds(70)) { server.holds("away/new") })
                    #expect(try await yonder.shell("cat away/below/3") == "3\n")
                    #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                }
            }
        }

        // MARK: - Buckets

        @Test(
            "PATH-18: credentials that a bucket refuses, later, are said, and nothing is lost", .timeLimit(.minutes(5)))
        func bucketCredentials() async throws {
            try await FarRemote.run(.s3) { remote, yonder async throws in
                let profile = yonder.directory["home/.aws/credentials"].string
                let yonder = yonder.with(["HOME": yonder.directory["home"].string])
                func write(_ secret: String) throws {
                    try FileManager.default.createDirectory(
                        atPath: yonder.directory["home/.aws"].string, withIntermediateDirectories: true)
                    let text =
                        "[mine]\naws_access_key_id = \(ObjectStoreProgram.accessKey)\naws_secret_access_key = \(secret)\n"
                    try text.write(toFile: profile, atomically: true, encoding: .utf8)
                }
                try write(ObjectStoreProgram.secretKey)
                try await remote.mount(yonder, "--profile", "mine")
                try await yonder.shell("mkdir dir; echo 1 > dir/1; echo 2 > dir/2")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(try await yonder.yonder("evict", yonder["dir/2"]).status == 0)
                try write("wrong")
                #expect(try await yonder.yonder("unmount", yonder.mount.string).status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                try await yonder.shell("echo new > made; cat dir/1; ls dir")
                let reading = try await Command.run("cat", yonder["dir/2"], seconds: 60)
                #expect(reading.errors.contains("Key was rejected"), "\(reading.errors)")
                #expect(await eventually { (try? await yonder.status().connection) == .unauthenticated })
                #expect(try await yonder.status().reason?.contains("S3 refuses the credentials") == true)
                #expect(try await yonder.yonder("pending").output.contains("made"))
                try write(ObjectStoreProgram.secretKey)
                let isRead = await eventually(within: .seconds(75)) {
                    (try? await Command.run("cat", yonder["dir/2"], seconds: 60).output) == "2\n"
                }
                #expect(isRead)
                #expect(await eventually(within: .seconds(75)) { (try? await remote.has("made")) == true })
            }
        }

        @Test("PATH-15: a bucket that is not there any more takes nothing with it", .timeLimit(.minutes(5)))
        func bucket() async throws {
            try await FarRemote.run(.s3) { remote, yonder async throws in
                let store = try #require(remote.store)
                try await remote.mount(yonder)
                try await yonder.shell("mkdir dir; echo 1 > dir/1; echo 2 > dir/2; ls dir")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(try await yonder.yonder("evict", yonder["dir/2"]).status == 0)
                let emptied = try await store.ask(
                    """
                    for key in $(ask "$at/bucket?format=plain"); do ask -X DELETE "$at/bucket/$key"; done
                    ask -X DELETE "$at/bucket"
                    """)
                #expect(emptied.status == 0, "\(emptied.errors)")
                let reading = try await Command.run("cat", yonder["dir/2"], seconds: 60)
                #expect(reading.errors.contains(Self.away), "\(reading.errors)")
                #expect(await eventually { (try? await yonder.status().connection) == .offline })
                #expect(try await yonder.status().reason?.contains("no bucket 'bucket'") == true)
                try await yonder.shell("echo new > made")
                _ = try await yonder.yonder("signal", "--wait")
                #expect(try await yonder.shell("ls . dir; cat dir/1") == ".:\ndir\nmade\n\ndir:\n1\n2\n1\n")
                let made = try await store.ask("ask -X PUT \"$at/bucket\" && ask -X PUT -d '' \"$at/bucket/top/\"")
                #expect(made.status == 0, "\(made.errors)")
                #expect(await eventually(within: .seconds(75)) { (try? await remote.has("made")) == true })
            }
        }
    }
}

extension DAVServer {
    /// Whether something of a name is in the folder.
    fileprivate func holds(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: root.appending(name).string)
    }
}
