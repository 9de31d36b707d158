import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// Mounts of what programs serve.
    @Suite(.tags(.server)) struct ProgramMounts {
        private static let repository = FilePath(#filePath).removingLastComponent().appending("../..")

        /// Runs a test with a program of the repository as `yonder-provider-NAME`.
        private func run(
            _ name: String, _ program: String, _ test: (Installation) async throws -> Void
        ) async throws {
            try await Installation.run { installation in
                let folder = try installation.directory.makeDirectory("config/yonder/providers")
                try FileManager.default.createSymbolicLink(
                    atPath: folder.appending("yonder-provider-\(name)").string,
                    withDestinationPath: Self.repository.appending(program).string)
                try await test(installation.with(["XDG_CONFIG_HOME": installation.directory["config"].string]))
            }
        }

        @Test("a revision of a Git repository is a read-only mount, and shows new commits") func git() async throws {
            try await run("git", "Examples/Programs/yonder-provider-git") { yonder in
                let repository = yonder.source.string
                let commit = "git -C \"$1\" add . && git -C \"$1\" -c user.name=a -c user.email=a@b commit -qm text"
                let made = try await Command.shell(
                    "cd \"$1\" && git init -q . && mkdir d && echo one > d/file && ln -s d/file link && "
                        + "head -c 20000000 /dev/urandom > large && \(commit)", repository)
                try #require(made.status == 0, "\(made.errors)")
                let mounted = try await yonder.yonder("mount", "git:\(repository)", yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await Command.run("diff", "-r", "--exclude=.git", repository, yonder.mount.string).expectSuccess()
                #expect(try await Command.shell("echo x > \"$1/new\"", yonder.mount.string).status != 0)
                try await Command.shell("echo two > \"$1/d/file\" && \(commit)", repository).expectSuccess()
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await Command.run("cat", yonder["link"]).output == "two\n")
            }
        }

        @Test("PROGRAM-3: a mount of a program is written as any other, also while the program is killed")
        func writes() async throws {
            try await run("folder", "Tests/ProgramProviderTests/Programs/folder.py") { yonder in
                let remote = yonder.source.string
                let mounted = try await yonder.yonder("mount", "folder:\(remote)", yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                for round in 0..<5 {
                    try await yonder.shell(
                        "mkdir d\(round) && for i in 1 2 3 4 5 6 7 8; do echo $i > d\(round)/$i; done && mv d\(round)/1 d\(round)/one"
                    )
                    for process in try programs(below: yonder) { Foundation.kill(process, SIGKILL) }
                }
                try await yonder.yonder("wait", "--timeout", "60").expectSuccess()
                try await Command.run("diff", "-r", remote, yonder.mount.string).expectSuccess()
                #expect(try await yonder.yonder("conflicts").output == "")
                let log = try String(contentsOfFile: yonder.directory["state/yonderd.log"].string, encoding: .utf8)
                let ends = log.split(separator: "\n").filter { $0.contains("has ended (signal 9)") }
                #expect(!ends.isEmpty && ends.allSatisfy { $0.contains("domain=mount: ") }, "\(ends)")
            }
        }

        @Test(
            "a directory of an FTP server is a mount like any other, with a password that only the program gets",
            .enabled(if: FTPServer.python != nil, "pyftpdlib is not installed"))
        func ftp() async throws {
            try await run("ftp", "Examples/Programs/yonder-provider-ftp") { yonder in
                let server = try await FTPServer()
                defer { server.stop() }
                let (source, remote) = (server.source, server.top.string)
                let line = "printf '%s\\n' \"$3\" | yonder mount \"$1\" \"$2\" --secret password"
                let refused = try await yonder.run(line, source, yonder.mount.string, "guess")
                #expect(refused.status == 1 && refused.errors.contains("does not let 'user' in"), "\(refused.errors)")
                let mounted = try await yonder.run(line, source, yonder.mount.string, "secret word")
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await yonder.shell(
                    "mkdir -p a/b && echo one > a/b/one && head -c 20000000 /dev/urandom > large && touch -d @1700000000 large "
                        + "&& cp large copy && mv a/b c && rm copy && echo two >> c/one && mkdir gone && touch gone/x && rm -r gone"
                )
                try await yonder.yonder("wait", "--timeout", "60").expectSuccess()
                try await Command.run("diff", "-r", remote, yonder.mount.string).expectSuccess()
                let date = try await Command.run("stat", "-c", "%Y", remote + "/large").output
                #expect(date == "1700000000\n")
                // What another client wrote is downloaded again.
                try await Command.shell("echo other > \"$1/c/one\"", remote).expectSuccess()
                #expect(try await yonder.yonder("evict", yonder["large"]).status == 0)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await Command.run("cat", yonder["c/one"]).output == "other\n")
                try await Command.run("cmp", remote + "/large", yonder["large"]).expectSuccess()
                #expect(try await yonder.yonder("conflicts").output == "")
            }
        }

        @Test("CMD-22: a version that a program gives does not control the terminal") func oddVersions() async throws {
            try await run("folder", "Tests/ProgramProviderTests/Programs/folder.py") { yonder in
                try yonder.write("x", to: "file")
                try await yonder.yonder(
                    "mount", "folder:\(yonder.source)", yonder.mount.string, "--option", "fault=odd-tags"
                ).expectSuccess()
                try await yonder.shell("ls")
                let shown = try await yonder.onTerminal(["info", yonder["file"]])
                #expect(shown.status == 0 && shown.text.contains(#"\x{9b}31m\x{202e}"#), "\(shown)")
                #expect(!shown.controlsTerminal)
                try await yonder.yonder("set", "mount", "fault=none")
                    .expectFailure(saying: "it is mounted with another value of the option 'fault'")
            }
        }

        @Test("IMPORT-2: a folder is imported to a program's remote; a refused import leaves no password behind")
        func imports() async throws {
            try await run("folder", "Tests/ProgramProviderTests/Programs/folder.py") { yonder in
                let folder = try yonder.directory.makeDirectory("folder").string
                let file = try yonder.directory.makeFile("folder/file", Array("here".utf8)).string
                let kept = yonder.directory["credentials/d"].string
                func imported(_ fault: String) async throws -> Command.Outcome {
                    try await yonder.run(
                        "echo hush | yonder import --yes \"$1\" \"folder:$2\" \"$3\" --name d --secret password -o fault=$4",
                        folder, yonder.source.string, yonder.mount.string, fault)
                }
                try await imported("readonly").expectFailure(saying: "cannot be written")
                #expect(!FileManager.default.fileExists(atPath: kept))
                #expect(FileManager.default.fileExists(atPath: file))
                try await imported("none").expectSuccess()
                #expect(FileManager.default.fileExists(atPath: kept))
                try await yonder.yonder("wait", "--timeout", "60").expectSuccess()
                #expect(yonder.sourceText("file") == "here")
                #expect(try await Command.run("cat", yonder["file"]).output == "here")
                try await yonder.yonder("remove", "d").expectSuccess()
                #expect(!FileManager.default.fileExists(atPath: kept))
            }
        }

        @Test("PROGRAM-8: a program learns at each start that its domain is read-only") func readOnly() async throws {
            try await run("folder", "Tests/ProgramProviderTests/Programs/folder.py") { yonder in
                let mounted = try await yonder.yonder(
                    "mount", "folder:\(yonder.source)", yonder.mount.string, "--read-only", "--option", "fault=dump")
                try #require(mounted.status == 0, "\(mounted.errors)")
                #expect(try await Command.run("ls", yonder.mount.string).status == 0)
                let dump = try String(contentsOfFile: yonder.source.string + ".dump", encoding: .utf8)
                let said = dump.split(separator: "\n").filter { ["True", "False"].contains($0) }
                #expect(said == ["True", "True"])
            }
        }

        @Test("PROGRAM-9: a thumbnailer gets what the program makes, and downloads nothing") func thumbnails()
            async throws
        {
            try await run("folder", "Tests/ProgramProviderTests/Programs/folder.py") { installation in
                let yonder = installation.with(["XDG_CACHE_HOME": installation.directory["cache"].string])
                // So large a picture of this format is shown only if the remote makes a thumbnail.
                let picture = """
                    import os, struct, sys, zlib
                    def chunk(kind, data):
                        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
                    lines = b"".join(b"\\0" + os.urandom(600) for _ in range(200))
                    with open(sys.argv[1], "wb") as file:
                        file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 200, 200, 8, 2, 0, 0, 0))
                                   + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
                    """
                let name = "picture.png"
                try await Command.python(picture, yonder.source.appending(name).string).expectSuccess()
                let thumbnailer = yonder.directory["my-thumbnailer"].string
                try FileManager.default.copyItem(atPath: "/bin/cat", toPath: thumbnailer)
                let mounted = try await yonder.yonder("mount", "folder:\(yonder.source)", yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                #expect(try await Command.run("ls", yonder.mount.string).status == 0)
                let refused = try await Command.run(thumbnailer, yonder[name])
                #expect(refused.status == 1 && refused.output == "", "\(refused.errors)")
                let cache = try #require(ThumbnailCache(environment: yonder.environment))
                let date = try await Command.run("stat", "-c", "%Y", yonder[name]).output.dropLast()
                let subject = ThumbnailCache.Subject(
                    yonder.mount.appending(name), modifiedAt: try #require(Int64(date)))
                #expect(await eventually(within: .seconds(20)) { cache.images(of: subject) != nil })
                #expect(try await yonder.info(name).content == "dataless")
            }
        }

        @Test("PROGRAM-6: an item store is a mount with a trash, and two mounts of it follow each other") func store()
            async throws
        {
            try await run("store", "Examples/Programs/yonder-provider-store") { yonder in
                let source = "store:\(yonder.directory["store"])"
                let mounted = try await yonder.yonder("mount", source, yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await yonder.shell(
                    "mkdir -p a/b && echo one > a/b/one && ln -s b/one a/link && head -c 20000000 /dev/urandom > large "
                        + "&& cp large copy && mv a/b a/c && rm copy && chmod 640 large && touch -d @1700000000.123456789 large"
                )
                try await yonder.yonder("wait", "--timeout", "60").expectSuccess()
                let other = try yonder.directory.makeDirectory("other")
                let second = try await yonder.yonder("mount", source, other.string, "--name", "other")
                try #require(second.status == 0, "\(second.errors)")
                let same = try await Command.run("diff", "-r", "--no-dereference", yonder.mount.string, other.string)
                #expect(same.status == 0, "\(same.output)\(same.errors)")
                let facts = try await Command.run("stat", "-c", "%a %.9Y", other.appending("large").string).output
                #expect(facts == "640 1700000000.123456789\n")
                for process in try programs(below: yonder) { Foundation.kill(process, SIGKILL) }
                try await yonder.expectDone(
                    "echo two >> \"$1/a/c/one\" && mv \"$1/large\" \"$1/a\"", other.string)
                #expect(
                    try await eventually(within: .seconds(60)) {
                        try await Command.run("cat", yonder["a/c/one"]).output == "one\ntwo\n"
                            && FileManager.default.fileExists(atPath: yonder["a/large"])
                    })
                #expect(try await yonder.yonder("trash", "put", yonder["a/c"]).status == 0)
                #expect(
                    await eventually(within: .seconds(60)) {
                        !FileManager.default.fileExists(atPath: other.appending("a/c").string)
                    })
                let lists = try await yonder.yonder("trash", "list", "other")
                #expect(lists.output.contains("c"), "\(lists.output)\(lists.errors)")
                #expect(try await yonder.yonder("conflicts").output == "")
            }
        }

        @Test("'yonder provider check' names each fault of a program of the level items", .tags(.long))
        func checkItems()
            async throws
        {
            try await run("faulty", "Tests/ProgramProviderTests/Programs/faulty-store.py") { yonder in
                let source = "faulty:\(yonder.directory["store"])"
                for (fault, failing) in [
                    ("size", "contentIsExact"), ("half", "newItemsAreStored"), ("silent", "changesAreReported"),
                    ("renames", "itemsAreRenamedAndMoved"), ("conceals", "staleUploadsConflict"),
                    ("unnamed", "takenNamesCollide"), ("forgets", "metadataIsStored"),
                    ("ignores-version", "staleFetchesAreRefused"), ("blind", "thumbnailsAreOfPresentContent"),
                    ("repeats", "pagesCoverTheListing"),
                ] {
                    let bad = try await yonder.yonder(
                        "provider", "check", source, "fault=\(fault)", "--only", failing, seconds: 240)
                    #expect(bad.status == 1 && bad.errors.contains(failing), "\(fault): \(bad.errors)")
                }
            }
        }

        @Test("what a check of a program leaves is removed, or named as what the next one fails for", .tags(.long))
        func leftovers() async throws {
            try await run("faulty", "Tests/ProgramProviderTests/Programs/faulty-store.py") { yonder in
                func check(_ fault: String) async throws -> Command.Outcome {
                    try await yonder.yonder(
                        "provider", "check", "faulty:\(yonder.directory[fault])", "fault=\(fault)", "--only",
                        "listingsAreComplete", "--only", "pagesCoverTheListing", seconds: 240)
                }
                // An item that cannot be shown is deleted after the check, too.
                let nameless = try await check("nameless")
                #expect(nameless.status == 1 && nameless.output.contains("1 of 2"), "\(nameless)")
                #expect(nameless.errors.contains("listingsAreComplete: '' cannot be shown"), "\(nameless.errors)")
                let kept = try await check("keeps")
                #expect(kept.status == 1 && kept.output.contains("1 of 2"), "\(kept)")
                #expect(kept.errors.contains("pagesCoverTheListing: not run, because the location"), "\(kept.errors)")
            }
        }

        @Test(
            "'yonder provider check' names each requirement that a program does not meet, and deletes nothing of others",
            .tags(.long))
        func check() async throws {
            try await run("folder", "Tests/ProgramProviderTests/Programs/folder.py") { yonder in
                let source = "folder:\(yonder.source)"
                let good = try await yonder.yonder("provider", "check", source, seconds: 300)
                #expect(good.status == 0 && good.output.contains("45 of 45"), "\(good.output)\(good.errors)")
                for (fault, failing) in [
                    ("size", "contentIsExact"), ("overwrites", "takenNamesCollide"), ("half", "newItemsAreStored"),
                    ("no-if-tag", "staleWritesAreRefused"),
                    ("no-if-tag", "staleDeletionsAreRefused"), ("overwrites", "takenPathsAreRefused"),
                    ("no-hidden", "onlyEmptyDirectoriesAreDeleted"),
                    ("conceals", "hiddenNamesAreListed"), ("forgets", "announcedAttributesAreStored"),
                    ("ignores-tag", "staleReadsAreRefused"), ("repeats", "entriesAreListedOnce"),
                    ("stale-thumbnails", "thumbnailsAreOfPresentContent"),
                    ("cuts-thumbnails", "thumbnailsAreOfPresentContent"),
                ] {
                    let bad = try await yonder.yonder(
                        "provider", "check", source, "fault=\(fault)", "--only", failing, seconds: 300)
                    #expect(bad.status == 1 && bad.errors.contains(failing), "\(fault): \(bad.errors)")
                }
                try yonder.write("mine", to: "file")
                let none = try await yonder.yonder("provider", "check", source, "--only", "none")
                #expect(none.status == 64 && none.errors.contains("rootExists"), "\(none.errors)")
                try await yonder.yonder("provider", "check", source).expectFailure(saying: "not empty")
                #expect(yonder.sourceText("file") == "mine")
            }
        }

        @Test("ACCESS-8: 'yonder provider check' asks for a secret without echo, and takes no empty one")
        func secretOfCheck()
            async throws
        {
            try await run("folder", "Tests/ProgramProviderTests/Programs/folder.py") { yonder in
                let words = [
                    "provider", "check", "folder:\(yonder.source)", "fault=dump", "--secret", "key", "--only",
                    "rootExists",
                ]
                let asked = try await yonder.onTerminal(words, answer: "secret word\n")
                #expect(asked.asked && asked.restored && asked.status == 0, "\(asked)")
                #expect(asked.text.contains("yonder: key: ") && !asked.text.contains("secret word"), "\(asked)")
                let dump = try String(contentsOfFile: yonder.source.string + ".dump", encoding: .utf8)
                #expect(dump.contains(#"{"key": "secret word"}"#), "\(dump)")
                let empty = try await yonder.onTerminal(words, answer: "\n")
                #expect(empty.asked && empty.restored && empty.status == 64, "\(empty)")
                try await yonder.run("yonder provider check \"$1\" --secret key < /dev/null", words[2])
                    .expectFailure(64, saying: "no key on standard input")
            }
        }

        @Test("a source whose program is missing is refused with the places that were searched") func missing()
            async throws
        {
            try await Installation.run { yonder in
                try await yonder.yonder("mount", "nothing://here", yonder.mount.string)
                    .expectFailure(saying: "no program 'yonder-provider-nothing'")
                let path = try await yonder.yonder("mount", "nothing:here", yonder.mount.string)
                #expect(
                    path.status == 1 && path.errors.contains("no program 'yonder-provider-nothing'"), "\(path.errors)")
            }
        }

        /// The processes that the daemon of a test has started.
        private func programs(below yonder: Installation) throws -> [Int32] {
            guard let daemon = yonder.daemon else { return [] }
            let tasks = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon)/task")
            return tasks.flatMap { task in
                let text = (try? String(contentsOfFile: "/proc/\(daemon)/task/\(task)/children", encoding: .utf8)) ?? ""
                return text.split(separator: " ").compactMap { Int32($0) }
            }
        }
    }
}
