import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A WebDAV server as the source.
    @Suite(.enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed")) struct WebDAVMounts {
        /// Runs a test with an installation and a server, which may be ended and started again in it.
        private func run(
            _ kind: DAVServer.Kind = .apache, _ admission: DAVServer.Admission = .everybody,
            _ test: (Installation, DAVServer) async throws -> Void
        ) async throws {
            let server = try await DAVServer.start(kind, admission)
            try await withCleanUp({ await server.stop() }) {
                // The user who runs the tests may have credentials.
                try await Installation.run { try await test($0.with(["NETRC": "/nonexistent"]), server) }
            }
        }

        private func mount(_ yonder: Installation, _ source: String, _ more: String = "") async throws
            -> Command.Outcome
        {
            try await yonder.run("yonder mount \"$1\" \"$2\" \(more)", source, yonder.mount.string, seconds: 30)
        }

        /// What distinguishes the mount from the folder on the server.
        private func differences(_ yonder: Installation, _ server: DAVServer) async throws -> String {
            let outcome = try await Command.run(
                "diff", "-r", "-x", ".DAV", yonder.mount.string, server.root.string, seconds: 60)
            return outcome.output + outcome.errors
        }

        private func fill(_ server: DAVServer) async throws {
            let outcome = try await Command.shell(
                """
                cd "$1" && mkdir -p dir/sub empty && echo one > dir/one && echo two > "dir/sub/two & a half" &&
                head -c 3000000 /dev/urandom > large && : > nothing && chmod -R a+rwX . &&
                find . -exec touch -d 2020-01-01 {} +
                """, server.root.string)
            #expect(outcome.status == 0, "\(outcome.errors)")
        }

        @Test("DAV-1: what is on the server is read, written, renamed and deleted as in a folder") func works()
            async throws
        {
            try await run { yonder, server async throws in
                try await fill(server)
                let mounted = try await mount(yonder, server.source)
                try #require(mounted.status == 0, "\(mounted.errors)")
                #expect(try await differences(yonder, server) == "")
                try await yonder.shell(
                    """
                    mkdir -p new/deep && echo text > new/deep/file && cp large copy && mv dir/one dir/uno && rm nothing &&
                    rmdir empty && echo changed > "dir/sub/two & a half" && mv dir/sub new/sub &&
                    for n in 1 2 3 4 5 6 7 8 9; do echo $n > new/$n; done && rm new/5 && echo more >> copy &&
                    echo new > t && mv t large
                    """)
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                let pending = try await yonder.yonder("pending").output
                #expect(pending == "")
                #expect(try await differences(yonder, server) == "")
                let left = try await Command.run("find", server.root.string, "-name", ".yonder-*").output
                #expect(left == "")
            }
        }

        @Test("DAV-12: a large file is on its way while it is written, and is what it was when it was closed")
        func whileItIsWritten() async throws {
            try await run { yonder, server async throws in
                let mounted = try await mount(yonder, server.source)
                try #require(mounted.status == 0, "\(mounted.errors)")
                // Half is sent before the other half is there; of the first file the beginning is another then.
                try await yonder.shell(
                    """
                    head -c 24000000 /dev/urandom > "$2"
                    for name in changed kept; do
                        exec 3> $name; head -c 12000000 "$2" >&3
                        for n in $(seq 200); do
                            if [ -n "$(find "$1" -name '.davfs*' -size +4M)" ]; then break; fi; sleep 0.1
                        done
                        [ $n -lt 200 ]
                        tail -c +12000001 "$2" >&3
                        if [ $name = changed ]; then printf other 1<> $name; fi
                        exec 3>&-
                    done
                    """, server.root.string, server.directory["source"].string, seconds: 60)
                #expect(try await yonder.yonder("wait", "--timeout", "60").status == 0)
                #expect(try await differences(yonder, server) == "")
                let left = try await Command.run("find", server.root.string, "-name", ".*", "-type", "f").output
                #expect(left == "")
            }
        }

        @Test("DAV-8: what others change on the server comes in, and keeps its inode where it was renamed")
        func remoteChanges() async throws {
            try await run { yonder, server async throws in
                try await fill(server)
                #expect(try await mount(yonder, server.source).status == 0)
                #expect(try await Command.run("ls", "-R", yonder.mount.string).status == 0)
                #expect(try await Command.run("cat", yonder["large"]).status == 0)
                let inode = try await Command.run("stat", "-c", "%i", yonder["large"], yonder["dir/sub"]).output
                try await yonder.expectDone(
                    """
                    cd "$1" && mv large dir/huge && mv dir/sub empty/moved && echo new > new && rm nothing &&
                    echo longer than before > dir/one && chmod -R a+rwX .
                    """, server.root.string)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await differences(yonder, server) == "")
                let now = try await Command.run(
                    "stat", "-c", "%i", yonder["dir/huge"], yonder["empty/moved"]
                ).output
                #expect(now == inode)
                #expect(try await yonder.info("dir/huge").content == "materialized")
            }
        }

        @Test("DAV-6: what keeps a source from being mounted is said, and no domain is made of it") func refusals()
            async throws
        {
            try await run(.apache, .basic) { yonder, server async throws in
                let cases: [(source: String, password: String?, words: String)] = [
                    (server.source, nil, "--password-stdin"),
                    (server.source, "user:guess", "does not let 'user' in"),
                    (server.source + "not/there", "user:secret word", "no collection"),
                    ("webdav://127.0.0.1:1/", nil, "cannot be reached"),
                    ("webdav://no-such-host.invalid/", nil, "cannot be reached"),
                ]
                for (source, password, words) in cases {
                    let line =
                        password == nil
                        ? "yonder mount \"$1\" \"$2\""
                        : "printf '%s\\n' \"$3\" | yonder mount \"$1\" \"$2\" --password-stdin"
                    let outcome = try await yonder.run(
                        line, source, yonder.mount.string, password ?? "", seconds: 40)
                    #expect(outcome.status == 1, "\(source)")
                    #expect(outcome.errors.contains(words), "\(source): \(outcome.errors)")
                    #expect(password == nil || !outcome.errors.contains("guess"))
                }
                #expect(try await yonder.yonder("domains").output == "")
            }
        }

        @Test("DAV-21: a password is kept for its owner alone, and nowhere else") func passwords() async throws {
            try await run(.apache, .digest) { yonder, server async throws in
                try await fill(server)
                let source = server.source.replacing("webdav://", with: "webdav://user@")
                let mounted = try await yonder.run(
                    "printf 'secret word\\n' | yonder mount \"$1\" \"$2\" --name cloud --password-stdin", source,
                    yonder.mount.string)
                #expect(mounted.status == 0, "\(mounted.errors)")
                #expect(try await differences(yonder, server) == "")
                #expect(try await yonder.yonder("unmount", "cloud").status == 0)
                #expect(try await yonder.yonder("mount", "cloud").status == 0)
                try await yonder.shell("echo text > file")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await differences(yonder, server) == "")
                let found = try await Command.run("grep", "-rl", "secret word", yonder.directory.path.string).output
                #expect(found == yonder.directory["credentials/cloud"].string + "\n")
                let modes = try await Command.run(
                    "stat", "-c", "%a", yonder.directory["credentials"].string,
                    yonder.directory["credentials/cloud"].string
                ).output
                #expect(modes == "700\n600\n")
            }
        }

        @Test("IMPORT-4: 'yonder import' takes the password as 'yonder mount' does, and keeps it likewise")
        func imports() async throws {
            try await run(.apache, .digest) { yonder, server async throws in
                try await fill(server)
                let folder = try yonder.directory.makeDirectory("folder")
                try await yonder.expectDone(
                    "cp -a \"$1/.\" \"$2\" && echo mine > \"$2/mine\"", server.root.string, folder.string)
                let source = server.source.replacing("webdav://", with: "webdav://user@")
                let line = "printf '%s\\n' \"$4\" | yonder import \"$1\" \"$2\" \"$3\" --name cloud --password-stdin"
                let refused = try await yonder.run(line, folder.string, source, yonder.mount.string, "wrong")
                #expect(refused.status == 1, "\(refused.errors)")
                #expect(FileManager.default.fileExists(atPath: folder.appending("mine").string))
                #expect(!FileManager.default.fileExists(atPath: yonder.directory["credentials/cloud"].string))
                try await yonder.run(line, folder.string, source, yonder.mount.string, "secret word").expectSuccess()
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(try await differences(yonder, server) == "")
                #expect(
                    try String(contentsOfFile: server.root.appending("mine").string, encoding: .utf8) == "mine\n")
                #expect(try await yonder.yonder("unmount", "cloud").status == 0)
                #expect(try await yonder.yonder("mount", "cloud").status == 0)
                #expect(try await Command.run("cat", yonder["mine"]).output == "mine\n")
                let wrong = try await yonder.yonder(
                    "import", folder.string, source, yonder.mount.string, "--region", "x")
                #expect(wrong.status == 64)
            }
        }

        @Test("DAV-7: without the server what is here is here, a known domain is mounted, and nothing is lost")
        func offline() async throws {
            try await run { yonder, first async throws in
                try await fill(first)
                #expect(try await mount(yonder, first.source, "--name away").status == 0)
                #expect(try await Command.run("cat", yonder["large"]).status == 0)
                await first.halt()
                #expect(try await yonder.yonder("unmount", "away").status == 0)
                #expect(try await yonder.yonder("mount", "away").status == 0)
                #expect(try await yonder.shell("ls; wc -c < large").hasSuffix("nothing\n3000000\n"))
                try await yonder.shell("echo text > made && mv large larger")
                #expect(try await Command.run("ls", yonder["dir"], seconds: 20).status != 0)
                #expect(await eventually { (try? await yonder.status().connection) == .offline })
                #expect(try await yonder.status().reason?.contains("cannot be reached") == true)
                // What was changed is kept over a restart.
                try await yonder.killDaemon()
                #expect(try await yonder.yonder("mount", "away").status == 0)
                let second = try await first.again()
                try await withCleanUp({ await second.halt() }) { () async throws in
                    #expect(try await yonder.yonder("retry").status == 0)
                    #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                    #expect(try await differences(yonder, second) == "")
                }
            }
        }

        @Test("WRITE-13: symbolic links stay local and block nothing") func linksStayHere() async throws {
            try await run { yonder, server async throws in
                #expect(try await mount(yonder, server.source).status == 0)
                try await yonder.shell("mkdir d; echo text > d/file; ln -s file d/link; ln -s d way")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.yonder("pending").output == "")
                let kept = try await yonder.yonder("why", yonder["way"]).output
                #expect(kept.contains("cannot hold symbolic links"), "\(kept)")
                try await yonder.shell("mv d e; rm way; ln -s e way")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                _ = try await yonder.yonder("unmount", "mount")
                #expect(try await mount(yonder, server.source).status == 0)
                #expect(try await yonder.shell("cat way/link; readlink e/link way") == "text\nfile\ne\n")
                let there = try FileManager.default.subpathsOfDirectory(atPath: server.root.string)
                    .filter { !$0.contains(".DAV") }
                #expect(there.sorted() == ["e", "e/file"])
            }
        }

        @Test("DAV-2: what a server does not do is told by why", .enabled(if: DAVServer.Kind.nginx.program != nil))
        func remarks() async throws {
            try await run(.nginx) { yonder, server async throws in
                try await fill(server)
                #expect(try await mount(yonder, server.source).status == 0)
                try await yonder.shell("ls; echo text > made")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                let why = try await yonder.yonder("why", yonder["made"]).output
                #expect(why.contains("keeps to no conditions"), "\(why)")
                #expect(why.contains("to the second"))
            }
        }
    }
}
