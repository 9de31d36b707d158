import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Mounts of servers that report what has changed.
    @Suite(.enabled(if: DAVServer.Kind.reporting.program != nil, "php-sabre-dav or php-sqlite3 is not installed"))
    struct ReportedChanges {
        /// How many listings a server was asked for.
        private func listings(_ server: DAVServer) -> Int { server.requests.count { $0.hasPrefix("PROPFIND 1") } }

        /// Waits until two looks in a row were nothing but the question.
        private func isSettled(_ server: DAVServer) async -> Bool {
            let look = ["PROPFIND 0 /", "REPORT 0 /"]
            return await eventually(within: .seconds(30)) { server.requests.suffix(4) == (look + look)[...] }
        }

        @Test("DAV-25: what has not changed is not listed, also by the next daemon, and what has comes in")
        func works() async throws {
            let server = try await DAVServer.start(.reporting)
            try await withCleanUp({ await server.stop() }) {
                try await Installation.run { yonder async throws in
                    let yonder = yonder.with(["NETRC": "/nonexistent"])
                    try await yonder.expectDone(
                        "cd \"$1\" && mkdir -p a/b/c d/e && for n in a a/b a/b/c d d/e; do echo 1 > $n/file; done",
                        server.root.string)
                    let line = "yonder mount \"$1\" \"$2\" --poll 1"
                    #expect(try await yonder.run(line, server.source, yonder.mount.string).status == 0)
                    #expect(try await Command.run("ls", "-R", yonder.mount.string).status == 0)
                    #expect(await isSettled(server), "\(server.requests.suffix(20))")
                    let why = try await yonder.run("yonder why \"$1\"", yonder.mount.string)
                    #expect(why.output.contains("asked what has changed, for all directories at once"))

                    try await yonder.expectDone(
                        "cd \"$1\" && echo 22 > a/b/c/file && mv d/e a/moved && mkdir d/new && echo 3 > d/new/f && rm a/file",
                        server.root.string)
                    let isThere = await eventually(within: .seconds(20)) {
                        (try? await Command.run("diff", "-r", yonder.mount.string, server.root.string).status) == 0
                    }
                    #expect(isThere)

                    // The next daemon goes on where this one was.
                    #expect(await isSettled(server), "\(server.requests.suffix(20))")
                    #expect(try await yonder.run("yonder shutdown").status == 0)
                    _ = try await Command.shell("echo 333 > \"$1\"/a/b/file", server.root.string)
                    let before = listings(server)
                    #expect(try await yonder.run(line, server.source, yonder.mount.string).status == 0)
                    let isNews = await eventually(within: .seconds(20)) {
                        (try? String(contentsOfFile: yonder["a/b/file"], encoding: .utf8)) == "333\n"
                    }
                    #expect(isNews)
                    #expect(listings(server) - before <= 2)

                    // A server that has forgotten its log is no reason to forget anything.
                    _ = try server.directory.makeFile("forgotten", "".utf8)
                    _ = try await Command.shell("echo 4444 > \"$1\"/d/file", server.root.string)
                    let isAnew = await eventually(within: .seconds(20)) {
                        (try? String(contentsOfFile: yonder["d/file"], encoding: .utf8)) == "4444\n"
                    }
                    #expect(isAnew)
                    #expect(try await Command.run("diff", "-r", yonder.mount.string, server.root.string).output == "")
                }
            }
        }

        @Test(
            "DAV-24: where versions of directories cover what is below, a look at what has not changed is one question")
        func versions() async throws {
            try await Installation.run { yonder async throws in
                let yonder = yonder.with(["NETRC": "/nonexistent"])
                let log = yonder.directory["requests"].string
                let server = try await ScriptedServer("file_id_server.py", log)
                defer { server.stop() }
                let base = "http://127.0.0.1:\(server.port)/remote.php/dav/files/user/"
                let filled = try await Command.shell(
                    """
                    for d in a a/b a/b/c d; do curl -sS --fail -X MKCOL "$1$d"; echo 1 | curl -sS --fail -T - "$1$d/file"; done
                    """, base)
                #expect(filled.status == 0, "\(filled.errors)")
                let mounted = try await yonder.run(
                    "yonder mount \"webdav${1#http}\" \"$2\" --poll 1", base, yonder.mount.string)
                #expect(mounted.status == 0, "\(mounted.errors)")
                #expect(try await Command.run("ls", "-R", yonder.mount.string).status == 0)
                func asked() -> [String] {
                    let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
                    return text.split(separator: "\n").map(String.init)
                }
                let root = "PROPFIND 0 /remote.php/dav/files/user/"
                let isSettled = await eventually(within: .seconds(30)) { asked().suffix(3) == [root, root, root] }
                #expect(isSettled, "\(asked().suffix(10))")
                let before = asked().count
                _ = try await Command.shell("echo 22 | curl -sS --fail -T - \"$1a/b/c/file\"", base)
                let isThere = await eventually(within: .seconds(20)) {
                    (try? String(contentsOfFile: yonder["a/b/c/file"], encoding: .utf8)) == "22\n"
                }
                #expect(isThere)
                #expect(!asked().dropFirst(before).contains { $0.hasPrefix("PROPFIND 1") && $0.hasSuffix("/d/") })
            }
        }
    }
}
