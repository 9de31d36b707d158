import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import SFTPProvider

@Suite(.tags(.server), .enabled(if: SFTPFolder.isInstalled)) struct SFTPRemovalTests {
    /// Passes messages on to OpenSSH's server, and ends once it has renamed a file to a hidden name, the first time. The options of
    /// that server come last.
    private static let breakingServer = """
        import os, struct, subprocess, sys, threading
        broken = sys.argv[2]
        server = subprocess.Popen([sys.argv[1], *sys.argv[3:]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        def pass_on():
            while True:
                data = os.read(server.stdout.fileno(), 65536)
                if not data: os._exit(1)
                os.write(1, data)
        threading.Thread(target=pass_on, daemon=True).start()
        def read(count):
            data = sys.stdin.buffer.read(count)
            if len(data) < count: os._exit(0)
            return data
        while True:
            length = read(4)
            body = read(struct.unpack(">I", length)[0])
            server.stdin.write(length + body)
            server.stdin.flush()
            if body[0] == 18 and b"removed-" in body and not os.path.exists(broken):
                open(broken, "w").close()
                server.stdin.close()
                server.wait()
                os._exit(1)
        """

    /// Passes messages on to OpenSSH's server, as if its file system took no name of more than 143 bytes: for a renaming to one the
    /// answer is FAILURE, as for a name that is taken.
    private static let shortServer = """
        import os, struct, subprocess, sys
        server = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE)
        def read(count):
            data = sys.stdin.buffer.read(count)
            if len(data) < count:
                server.stdin.close()
                server.wait()
                os._exit(0)
            return data
        while True:
            body = read(struct.unpack(">I", read(4))[0])
            if body[0] == 18:
                end = 9 + struct.unpack(">I", body[5:9])[0]
                if len(body[end + 4:].split(b"/")[-1]) > 143: body = body[:end] + body[5:end]
            server.stdin.write(struct.pack(">I", len(body)) + body)
            server.stdin.flush()
        """

    @Test(
        "SFTP-2: a file with a long name is checked before its removal also where names have at most 143 bytes",
        .timeLimit(.minutes(1)))
    func shortNames() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let program = try scratch.makeFile("server.py", Self.shortServer.utf8)
        let folder = try SFTPFolder("python3 \(program) \(SFTPFolder.program)")
        let name = String(repeating: "n", count: 140)
        try await folder.withRemote { remote in
            let path = RemotePath([name])
            try await folder.write(Array("old".utf8), to: name)
            let old = try await remote.entry(at: path).tag
            try await folder.write(Array("another's".utf8), to: name)
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.connection.changing { try await remote.removeUnchanged(path, old, $0) }
            }
            #expect(failure?.present?.size == 9 && Self.names(folder) == [name])
            let new = try await remote.entry(at: path).tag
            try await remote.connection.changing { try await remote.removeUnchanged(path, new, $0) }
            #expect(Self.names(folder).isEmpty)
        }
    }

    private static func names(_ folder: SFTPFolder) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.root.string)) ?? []).sorted()
    }

    @Test(
        "SFTP-2: a removal that a broken connection has interrupted is ended with the next one",
        .timeLimit(.minutes(1)), arguments: [false, true])
    func brokenConnections(isRewritten: Bool) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let program = try scratch.makeFile("server.py", Self.breakingServer.utf8)
        let folder = try SFTPFolder("python3 \(program) \(SFTPFolder.program) \(scratch["broken"])")
        try await folder.withRemote { remote in
            try await folder.write(Array("old".utf8), to: "file")
            let path = RemotePath(["file"])
            let tag = try await remote.entry(at: path).tag
            if isRewritten { try await folder.write(Array("another's".utf8), to: "file") }
            await #expect(throws: (any Error).self) {
                try await remote.connection.changing { try await remote.removeUnchanged(path, tag, $0) }
            }
            #expect(FileManager.default.fileExists(atPath: scratch["broken"].string))
            #expect(await eventually { Self.names(folder) == (isRewritten ? ["file"] : []) }, "\(Self.names(folder))")
            if isRewritten { #expect(try String(contentsOfFile: folder["file"], encoding: .utf8) == "another's") }
        }
    }

    @Test(
        "SFTP-1: where a connection breaks between the two renames, the old content stays under its other name",
        .timeLimit(.minutes(1)))
    func brokenReplacement() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let server = Self.breakingServer.replacing("removed-", with: "previous version")
        let program = try scratch.makeFile("server.py", server.utf8)
        let folder = try SFTPFolder("python3 \(program) \(SFTPFolder.program) \(scratch["broken"]) -P posix-rename")
        func shown() -> [String] { Self.names(folder).filter { !HiddenName.isOne($0) } }
        try await folder.withRemote { remote in
            try await folder.write(Array("old".utf8), to: "file")
            let path = RemotePath(["file"])
            let tag = try await remote.entry(at: path).tag
            await #expect(throws: (any Error).self) {
                try await withContent(Array("new".utf8)) {
                    try await remote.write($0, to: path, attributes: RemoteAttributes(), if: .unchanged(tag: tag))
                }
            }
            #expect(FileManager.default.fileExists(atPath: scratch["broken"].string))
            let aside = try #require(shown().first)
            #expect(aside.hasPrefix("file (previous version ") && shown() == [aside])
            // Over the next connection it is a file like others.
            #expect(try await remote.entries(in: .root, from: nil, limit: 10).entries.contains { $0.name == aside })
            #expect(shown() == [aside])
            #expect(try String(contentsOfFile: folder[aside], encoding: .utf8) == "old")
        }
    }

    @Test(
        "SFTP-6: where a connection breaks before a new file has lost its hidden name, the next one removes that",
        .timeLimit(.minutes(1)))
    func brokenUnlinking() async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let passing = "    server.stdin.write(length + body)"
        // It ends before it has removed a name, the first time.
        let server = Self.breakingServer.replacing(
            passing,
            with: """
                    if body[0] == 13 and not os.path.exists(broken):
                        open(broken, "w").close()
                        os._exit(1)
                \(passing)
                """)
        let program = try scratch.makeFile("server.py", server.utf8)
        let folder = try SFTPFolder("python3 \(program) \(SFTPFolder.program) \(scratch["broken"])")
        try await folder.withRemote { remote in
            _ = try await withContent(Array("new".utf8)) {
                try await remote.write($0, to: RemotePath(["file"]), attributes: RemoteAttributes(), if: .absent)
            }
            #expect(await eventually { FileManager.default.fileExists(atPath: scratch["broken"].string) })
            #expect(await eventually { Self.names(folder) == ["file"] }, "\(Self.names(folder))")
            #expect(try String(contentsOfFile: folder["file"], encoding: .utf8) == "new")
        }
    }

    private static func withSession(_ body: (SFTPFolder, ProviderSession) async throws -> Void) async throws {
        let folder = try SFTPFolder()
        let manager = TestManager(domain: folder.domain, stateDirectory: folder.stateDirectory)
        let provider = try await folder.makeProvider(for: manager)
        try await withCleanUp({
            await provider.invalidate()
            await folder.dispose()
        }) {
            try await body(folder, ProviderSession(provider: provider, manager: manager))
        }
    }

    @Test("SFTP-2: a listing ends the removals that a killed process has left")
    func abandonedRemovals() async throws {
        try await Self.withSession { folder, session in
            let long = String(repeating: "n", count: 250)
            try await folder.write(Array("free".utf8), to: RemovalName.make(of: "free", tag: Array("1-1".utf8)))
            try await folder.write(Array("long".utf8), to: RemovalName.make(of: long, tag: Array("1-1".utf8)))
            try await folder.write(Array("hidden".utf8), to: RemovalName.make(of: "taken", tag: Array("1-1".utf8)))
            try await folder.write(Array("shown".utf8), to: "taken")
            let removed = RemovalName.make(of: "removed", tag: Array("1000000000-3".utf8))
            try await folder.write([1, 2, 3], to: removed)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_000_000_000)], ofItemAtPath: folder[removed])
            #expect(try await session.list().map(\.filename) == ["taken"])
            #expect(
                await eventually { Self.names(folder).allSatisfy { !HiddenName.isOne($0) } }, "\(Self.names(folder))")
            let contents = try Self.names(folder).map { try String(contentsOfFile: folder[$0], encoding: .utf8) }
            #expect(contents.sorted() == ["free", "hidden", "long", "shown"])
            #expect(try String(contentsOfFile: folder["free"], encoding: .utf8) == "free")
            #expect(try String(contentsOfFile: folder["taken"], encoding: .utf8) == "shown")
            #expect(Self.names(folder).contains { $0.hasPrefix("nnnn") && $0.contains("previous version") })
        }
    }

    @Test(
        "SFTP-2: a directory is not removed with the content of another client that an interrupted removal has hidden")
    func hiddenContentOfOthers() async throws {
        try await SFTPFolder().withRemote { remote in
            let directory = RemotePath(["directory"])
            _ = try await remote.makeDirectory(at: directory, attributes: RemoteAttributes())
            let name = RemovalName.make(of: "file", tag: Array("1-1".utf8))
            _ = try await withContent(Array("another's".utf8)) {
                try await remote.write(
                    $0, to: directory.appending(name), attributes: RemoteAttributes(), if: .absent)
            }
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(directory, kind: .directory, if: .empty)
            }
            #expect(try await remote.entry(at: directory.appending("file")).size == 9)
        }
    }

    @Test("SFTP-2: a directory or link that another client has put in a file's place gets its name back")
    func otherKinds() async throws {
        try await Self.withSession { folder, session in
            func hidden(_ name: String) -> String { RemovalName.make(of: name, tag: Array("1-1".utf8)) }
            try await folder.makeDirectory(hidden("directory"))
            try FileManager.default.createSymbolicLink(
                atPath: folder[hidden("link")], withDestinationPath: "elsewhere")
            #expect(try await session.list().isEmpty)
            #expect(await eventually { Self.names(folder) == ["directory", "link"] }, "\(Self.names(folder))")
        }
    }

    @Test("SFTP-2: a directory is not removed with a directory of another client that a removal has hidden")
    func hiddenDirectoryOfOthers() async throws {
        try await SFTPFolder().withRemote { remote in
            let outer = RemotePath(["outer"])
            _ = try await remote.makeDirectory(at: outer, attributes: RemoteAttributes())
            let name = RemovalName.make(of: "inner", tag: Array("1-1".utf8))
            _ = try await remote.makeDirectory(at: outer.appending(name), attributes: RemoteAttributes())
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(outer, kind: .directory, if: .empty)
            }
            #expect(try await remote.entry(at: outer.appending("inner")).kind == .directory)
        }
    }

    @Test func names() throws {
        for name in ["a", "a-b - c", "\u{301}accent", String(repeating: "ä", count: 150)] {
            let hidden = RemovalName.make(of: name, tag: Array("12-34".utf8))
            #expect(HiddenName.isOne(hidden) && hidden.utf8.count <= 255)
            let removal = try #require(RemovalName(hidden))
            #expect(removal.tag == Array("12-34".utf8))
            let short = RemovalName.make(of: name, tag: Array("12-34".utf8), length: RemovalName.shortLength)
            #expect(RemovalName(short) != nil && short.utf8.count <= 143)
            #expect(name.hasPrefix(removal.original) && removal.isWhole == (removal.original == name))
        }
        #expect(RemovalName(HiddenName.make()) == nil)
    }
}
