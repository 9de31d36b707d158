import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A mount of a server with a trash bin, as Nextcloud documents its own; none is here.
    @Suite struct WebDAVTrash {
        /// Where the files and the bin of a server are, asked as any other client does.
        private struct Server {
            let port: Int
            var files: String { "http://127.0.0.1:\(port)/remote.php/dav/files/user/" }
            var bin: String { "http://127.0.0.1:\(port)/remote.php/dav/trashbin/user/" }

            /// What is in the bin, by what it is called there.
            func binned() async throws -> [String] {
                let line =
                    "curl -sS -X PROPFIND -H 'Depth: 1' \"$1\" | grep -o 'trash/[^<]*\\.d[0-9]*' | cut -d/ -f2 | sort"
                return try await Command.shell(line, bin + "trash/").output.split(separator: "\n").map(String.init)
                    .filter { !$0.hasPrefix(".yonder") }
            }

            func content(of path: String) async throws -> String {
                try await Command.run("curl", "-sS", "--fail", files + path).output
            }

            func request(_ method: String, _ url: String, _ more: String...) async throws {
                let outcome = try await Command(["curl", "-sS", "--fail", "-X", method, url] + more).run()
                #expect(outcome.status == 0, "\(method) \(url): \(outcome.errors)")
            }
        }

        /// Runs a test with the server mounted.
        private func run(_ test: (Installation, Server) async throws -> Void) async throws {
            try await Installation.run { installation async throws in
                let program = try await ScriptedServer("file_id_server.py")
                defer { program.stop() }
                let (yonder, server) = (installation.with(["NETRC": "/nonexistent"]), Server(port: program.port))
                try await mount(yonder, server)
                try await test(yonder, server)
            }
        }

        private func mount(_ yonder: Installation, _ server: Server) async throws {
            let source = "webdav" + server.files.dropFirst(4)
            let outcome = try await yonder.run(
                "yonder mount \"$1\" \"$2\"", source, yonder.mount.string, seconds: 30)
            try #require(outcome.status == 0, "\(outcome.errors)")
        }

        private func settled(_ yonder: Installation) async throws {
            #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
            #expect(try await yonder.yonder("pending").output == "")
        }

        @Test(
            "BIN-1: put, listed, restored and emptied, the mount's trash is the server's bin, from the first mount on")
        func works() async throws {
            try await run { yonder, server async throws in
                try await yonder.shell("mkdir -p d/sub && echo one > d/one && echo two > two && echo deep > d/sub/deep")
                try await settled(yonder)
                let inode = try await Command.run("stat", "-c", "%i", yonder["two"]).output
                let put = try await yonder.json(
                    ItemsReport<TrashedItem>.self, "trash", "put", yonder["d/one"], yonder["two"])
                #expect(put.refusals.isEmpty)
                try await settled(yonder)
                #expect(try await server.binned().map { String($0.prefix(3)) } == ["one", "two"])
                #expect(try await Command.run("cat", yonder.trashed("two")).output == "two\n")
                let listed = try await yonder.json([TrashedItem].self, "trash", "list", "mount")
                #expect(listed.map(\.originalPath) == [yonder["d/one"], yonder["two"]])
                #expect(try await yonder.yonder("trash", "restore", "two", "--to", yonder["d"]).status == 0)
                // By hand, under another name.
                try await Command.run("mv", yonder.trashed("one"), yonder["back"]).expectSuccess()
                try await settled(yonder)
                #expect(try await server.binned().isEmpty)
                #expect(try await server.content(of: "d/two") == "two\n")
                #expect(try await server.content(of: "back") == "one\n")
                #expect(try await Command.run("stat", "-c", "%i", yonder["d/two"]).output == inode)
                // A directory, by hand, and its content where it is then.
                let files = ".Trash-\(getuid())/files"
                try await yonder.shell("mv d/sub \(files)/sub && cat \(files)/sub/deep")
                try await settled(yonder)
                #expect(try await server.binned().map { String($0.prefix(3)) } == ["sub"])
                #expect(try await yonder.yonder("trash", "empty", "mount").status == 0)
                try await settled(yonder)
                #expect(try await server.binned().isEmpty)
            }
        }

        @Test("BIN-2: what rm deletes is in the server's bin, and not in the mount's trash") func deletes() async throws
        {
            try await run { yonder, server async throws in
                try await yonder.shell("mkdir d && echo one > d/one && echo two > two && echo three > three")
                try await settled(yonder)
                try await yonder.shell("rm -r d two")
                #expect(try await yonder.yonder("trash", "put", yonder["three"]).status == 0)
                try await settled(yonder)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await yonder.json([TrashedItem].self, "trash", "list", "mount").map(\.name) == ["three"])
                #expect(
                    try await server.binned().map { String($0.split(separator: ".")[0]) } == [
                        "d", "one", "three", "two",
                    ])
                // Nor is it for the next daemon.
                #expect(try await yonder.yonder("shutdown").status == 0)
                try await mount(yonder, server)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await yonder.json([TrashedItem].self, "trash", "list", "mount").map(\.name) == ["three"])
                #expect(try await yonder.yonder("trash", "empty", "mount").status == 0)
                try await settled(yonder)
                #expect(try await yonder.json([TrashedItem].self, "trash", "list", "mount").isEmpty)
                #expect(try await server.binned().map { String($0.split(separator: ".")[0]) } == ["d", "one", "two"])
            }
        }

        @Test("BIN-3: what is thrown away in the browser is in the mount's trash, and comes back from either side")
        func others() async throws {
            try await run { yonder, server async throws in
                try await yonder.shell("mkdir d && echo one > d/one && echo two > d/two")
                try await settled(yonder)
                try await server.request("DELETE", server.files + "d/one")
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await Command.run("cat", yonder.trashed("one")).output == "one\n")
                #expect(try await Command.run("ls", yonder["d"]).output == "two\n")
                #expect(try await yonder.yonder("trash", "restore", "one").status == 0)
                try await settled(yonder)
                #expect(try await server.content(of: "d/one") == "one\n")
                #expect(try await yonder.yonder("trash", "put", yonder["d"]).status == 0)
                try await settled(yonder)
                let place = try #require(try await server.binned().first)
                try await server.request(
                    "MOVE", server.bin + "trash/" + place, "-H", "Destination: \(server.bin)restore/\(place)")
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await Command.run("cat", yonder["d/one"], yonder["d/two"]).output == "one\ntwo\n")
                #expect(try await yonder.json([TrashedItem].self, "trash", "list", "mount").isEmpty)
            }
        }

        @Test("BIN-3: what is trashed here while another client trashes its directory is in the trash with that")
        func trashedWithItsDirectory() async throws {
            try await run { yonder, server async throws in
                try await yonder.shell("mkdir d && echo one > d/one && echo two > d/two")
                try await settled(yonder)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                #expect(try await yonder.yonder("trash", "put", yonder["d/one"]).status == 0)
                try await server.request("DELETE", server.files + "d")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                try await settled(yonder)
                let inTrash = try await Command.run("cat", yonder.trashed("d/one"), yonder.trashed("d/two"))
                #expect(inTrash.output == "one\ntwo\n", "\(inTrash.errors)")
                #expect(try await yonder.yonder("trash", "restore", "d").status == 0)
                try await settled(yonder)
                #expect(try await server.content(of: "d/one") == "one\n")
            }
        }

        @Test("BIN-6: what the server's bin does not take is still here") func notTaken() async throws {
            try await run { yonder, server async throws in
                try await yonder.shell("echo something > file")
                try await settled(yonder)
                try await server.request("POST", "http://127.0.0.1:\(server.port)/faults/limit/5", "-d", "")
                #expect(try await yonder.yonder("trash", "put", yonder["file"]).status == 0)
                let isSaid = await eventually(within: .seconds(40)) {
                    (try? await yonder.yonder("pending").output.contains("does not take")) == true
                }
                #expect(isSaid)
                #expect(try await Command.run("cat", yonder.trashed("file")).output == "something\n")
                _ = try await yonder.yonder("signal", "--wait")
                #expect(try await Command.run("cat", yonder.trashed("file")).output == "something\n")
                // Taken after all, all is as it should be.
                try await server.request("POST", "http://127.0.0.1:\(server.port)/faults/limit/1000", "-d", "")
                #expect(try await yonder.yonder("retry").status == 0)
                try await settled(yonder)
                #expect(try await server.binned().map { String($0.prefix(4)) } == ["file"])
            }
        }
    }
}
