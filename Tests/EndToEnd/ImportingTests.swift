import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Plain folders that become domains.
    @Suite struct Importing {
        @Test(
            "REIMPORT-1: a plain folder becomes a domain: nothing is downloaded, what differs is kept twice, the rest is sent"
        )
        func plainFolder() async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("same", to: "a/same")
                try yonder.write("there", to: "a/both")
                try yonder.write("only there", to: "c/there")
                let folder = try yonder.directory.makeDirectory("folder").string
                let made = try await Command.shell(
                    """
                    cd "$1" && cp -a "$2/a" . && printf here > a/both && mkdir x && printf mine > x/mine && chmod 444 x/mine \
                    && ln -s mine x/link && stat -c %i a/same
                    """, folder, yonder.source.string)
                try #require(made.status == 0, "\(made.errors)")
                let source = try await Command.shell("stat -c '%i %Y %Z' \"$1/a/same\"", yonder.source.string).output
                let report = try await yonder.json(
                    ImportReport.self, "import", folder, yonder.source.string, folder)
                #expect(report.isTaken && report.items == 6 && report.left == [])
                let there = yonder.at(folder)
                #expect(try await there.yonder("wait", "--timeout", "30").status == 0)
                #expect(try await there.info("a/same").content == "materialized")
                #expect(
                    try await there.shell("cat a/both c/there x/mine x/link; stat -c %a x/mine")
                        == "thereonly theremine" + "mine444\n")
                #expect(try await there.conflicts().count == 1)
                #expect(yonder.sourceText("x/mine") == "mine")
                #expect(try await there.differences() == "")
                // What was the same was not touched.
                #expect(
                    try await Command.shell("stat -c '%i %Y %Z' \"$1/a/same\"", yonder.source.string).output == source)
                _ = try await Command.shell("umount -l \"$1\"", folder)
            }
        }

        @Test("IMPORT-2: a recognized file has the source's mode, and the extended attributes that only the folder has")
        func attributes() async throws {
            try await Installation.run { yonder async throws in
                for name in ["ours", "theirs"] { try yonder.write("same", to: name) }
                let folder = try yonder.directory.makeDirectory("folder").string
                let made = try await Command.shell(
                    """
                    cp -p "$2"/* "$1" && cd "$1" && setfattr -n user.note -v ours ours theirs && chmod 600 ours \
                    && setfattr -n user.other -v theirs "$2/theirs" && chmod 644 "$2/ours"
                    """, folder, yonder.source.string)
                try #require(made.status == 0, "\(made.errors)")
                _ = try await yonder.json(ImportReport.self, "import", folder, yonder.source.string, folder)
                let there = yonder.at(folder)
                #expect(try await there.yonder("wait", "--timeout", "30").status == 0)
                for place in [folder, yonder.source.string] {
                    let found = try await Command.shell(
                        """
                        cd "$1" && stat -c %a ours && getfattr --only-values -n user.note ours && echo \
                        && getfattr --only-values -n user.other theirs && ! getfattr -n user.note theirs 2> /dev/null
                        """, place)
                    #expect(found.status == 0 && found.output == "644\nours\ntheirs", "\(place): \(found.errors)")
                }
                _ = try await Command.shell("umount -l \"$1\"", folder)
            }
        }

        @Test("IMPORT-3: an import that copies leaves the folder as it is, and the copy is another file")
        func copies() async throws {
            try await Installation.run { yonder async throws in
                let folder = try yonder.directory.makeDirectory("folder").string
                _ = try await Command.shell("cd \"$1\" && mkdir d && printf here > d/file", folder)
                let same = try await yonder.yonder("import", "--copy", folder, yonder.source.string, folder)
                #expect(same.status == 1 && same.errors.contains("mount on another directory"), "\(same.errors)")
                let report = try await yonder.json(
                    ImportReport.self, "import", "--copy", folder, yonder.source.string, yonder.mount.string)
                #expect(!report.isTaken && report.items == 2 && report.left == [])
                let written = try await Command.shell(
                    "printf else > \"$1/d/file\" && stat -c %h \"$1/d/file\"", folder)
                #expect(written.line == "1")
                #expect(try await Command.run("cat", yonder["d/file"]).output == "here")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(yonder.sourceText("d/file") == "here")
            }
        }

        @Test(
            "IMPORT-2: a folder on another file system is copied, and stays",
            .enabled(if: SmallDisk.isPossible, "only root can mount a small file system"))
        func otherFileSystem() async throws {
            try await SmallDisk.run { yonder, _ in
                let folder = try yonder.directory.makeDirectory("folder").string
                try await yonder.expectDone("cd \"$1\"; mkdir d; printf here > d/file", folder)
                let report = try await yonder.json(
                    ImportReport.self, "import", folder, yonder.source.string, yonder.mount.string)
                #expect(!report.isTaken && report.items == 2 && report.left == [])
                try await yonder.expectDone("printf else > \"$1/d/file\"", folder)
                #expect(try await Command.run("cat", yonder["d/file"]).output == "here")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                #expect(yonder.sourceText("d/file") == "here")
                #expect(try await Command.run("cat", folder + "/d/file").output == "else")
            }
        }

        @Test("IMPORT-2: directories have the folder's dates on the remote after what they contain was sent")
        func directoryDates() async throws {
            try await Installation.run { yonder async throws in
                let folder = try yonder.directory.makeDirectory("folder").string
                try await yonder.expectDone(
                    "cd \"$1\"; mkdir -p d/e/empty; echo 1 > d/e/x; echo 2 > d/y; touch -d @981158400 d/e/empty d/e d",
                    folder)
                try await yonder.importing(folder).expectSuccess()
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                for place in [yonder.source.string, yonder.mount.string] {
                    let dates = try await yonder.expectDone("cd \"$1\"; stat -c %Y d d/e d/e/empty", place)
                    #expect(dates == "981158400\n981158400\n981158400\n", "\(place)")
                }
            }
        }

        @Test("IMPORT-2: hard links of a plain folder become separate files") func hardLinks() async throws {
            try await Installation.run { yonder async throws in
                let folder = try yonder.directory.makeDirectory("folder").string
                try await yonder.expectDone("cd \"$1\"; echo 1 > a; ln a b", folder)
                try await yonder.importing(folder).expectSuccess()
                #expect(try await yonder.shell("stat -c %h a b; cat a b") == "1\n1\n1\n1\n")
            }
        }

        @Test("IMPORT-3: on a terminal an import asks before it moves a folder's files")
        func asks() async throws {
            try await Installation.run { yonder async throws in
                let folder = try yonder.directory.makeDirectory("folder").string
                _ = try await Command.shell("printf here > \"$1/file\"", folder)
                func answer(_ answer: String, _ more: String...) async throws -> Installation.Dialogue {
                    try await yonder.onTerminal(
                        ["import", folder, yonder.source.string, yonder.mount.string] + more, answer: answer)
                }
                for refusal in ["n\n", "\n"] {
                    let said = try await answer(refusal)
                    #expect(said.status == 1 && said.text.contains("nothing was changed"), "\(said)")
                    #expect(try await yonder.yonder("domains").output == "")
                    #expect(try await Command.run("cat", folder + "/file").output == "here")
                }
                let said = try await answer("y\n")
                #expect(said.status == 0 && said.text.contains("and '\(folder)' is removed"), "\(said)")
                #expect(!FileManager.default.fileExists(atPath: folder))
                #expect(try await Command.run("cat", yonder["file"]).output == "here")
                #expect(try await yonder.yonder("remove", "mount", "--keep", "downloaded", "--to", folder).status == 0)
                let unasked = try await answer("", "--yes")
                #expect(unasked.status == 0 && !unasked.asked, "\(unasked)")
            }
        }

        @Test(
            "IMPORT-2: a folder is not imported while a program writes one of its files", arguments: ["append", "map"])
        func beingWritten(how: String) async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("a", to: "a")
                let folder = try yonder.directory.makeDirectory("folder").string
                let program = """
                    import mmap, sys, time
                    with open(sys.argv[1] + '/file', 'wb') as file: file.write(b'x' * 5000)
                    file = open(sys.argv[1] + '/file', 'r+b')
                    if sys.argv[2] == 'map':
                        memory = mmap.mmap(file.fileno(), 5000)
                        file.close()
                    open(sys.argv[3], 'w').close()
                    time.sleep(60)
                    """
                let ready = yonder.directory["ready"].string
                let writer = try await BackgroundProgram("python3", "-c", program, folder, how, ready)
                defer { writer.kill() }
                #expect(await eventually(within: .seconds(20)) { FileManager.default.fileExists(atPath: ready) })
                try await yonder.importing(folder).expectFailure(saying: "folder/file' is open for writing")
                #expect(FileManager.default.fileExists(atPath: folder + "/file"))
                writer.kill()
                #expect(await writer.ends())
                try await yonder.importing(folder).expectSuccess()
                #expect(try await yonder.shell("wc -c < file") == "5000\n")
            }
        }

        @Test("IMPORT-6: a folder in which the state directory lies, or that lies in it, is not imported")
        func stateInTheFolder() async throws {
            try await Installation.run { yonder async throws in
                let state = try yonder.directory.makeDirectory("folder/real").string
                let link = yonder.directory["linked"].string
                try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: state)
                let linked = yonder.with(["YONDER_STATE_DIR": link])
                for folder in [yonder.directory["folder"].string, state, state + "/domains"] {
                    try await linked.importing(folder).expectFailure(saying: "the daemon's own state directory")
                }
                #expect(try await linked.yonder("domains").output == "")
                try await linked.yonder("shutdown").expectSuccess()
            }
        }

        @Test("IMPORT-5: what has an ignored name is recognized where the source has it, and never sent")
        func ignoredNames() async throws {
            try await Installation.run { yonder async throws in
                try "[ignore]\nnames = [\"*.o\", \"built\"]\n".write(
                    toFile: yonder.directory["config.toml"].string, atomically: true, encoding: .utf8)
                for name in ["same.o", "other.o", "d/built/there"] { try yonder.write("there", to: name) }
                let folder = try yonder.directory.makeDirectory("folder").string
                try await yonder.expectDone(
                    """
                    cd "$1"; cp -a "$2"/. .; printf here > other.o; printf mine > own.o; mkdir -p own/built/deep own/x.o
                    printf mine > own/built/deep/file; printf mine > own/x.o/file; printf mine > own/sent
                    """, folder, yonder.source.string)
                let report = try await yonder.json(
                    ImportReport.self, "import", folder, yonder.source.string, yonder.mount.string)
                #expect(report.left == [] && !FileManager.default.fileExists(atPath: folder))
                try await yonder.yonder("wait", "--timeout", "30").expectSuccess()
                #expect(try await yonder.pending().isEmpty)
                for (name, sync) in [
                    ("same.o", "synced"), ("d/built", "synced"), ("d/built/there", "synced"), ("own", "synced"),
                    ("own.o", "excluded"), ("other.o", "excluded"), ("own/built", "excluded"),
                    ("own/built/deep/file", "excluded"), ("own/x.o", "excluded"), ("own/x.o/file", "excluded"),
                ] {
                    #expect(try await yonder.info(name).sync == sync, "\(name)")
                }
                #expect(try await yonder.info("same.o").content == "materialized")
                // One file more than in the folder: the other 'other.o' of the source.
                let files = "find . -path './.Trash*' -prune -o -type f -print | wc -l; ls | wc -l"
                #expect(try await eventually { try await yonder.shell(files) == "8\n6\n" })
                #expect(try await yonder.shell("cat other.o own/built/deep/file own/x.o/file") == "heremine" + "mine")
                let there = try await Command.shell("cd \"$1\" && find . -type f | sort", yonder.source.string).output
                #expect(there == "./d/built/there\n./other.o\n./own/sent\n./same.o\n")
                #expect(yonder.sourceText("other.o") == "there")
            }
        }

        @Test("REIMPORT-1: an import that cannot be done leaves the folder as it was")
        func refused() async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("a", to: "a")
                let folder = try yonder.directory.makeDirectory("folder").string
                _ = try await Command.shell("cd \"$1\" && echo 1 > 1 && mkdir d && echo 2 > d/2 && mkfifo d/p", folder)
                let look = "cd \"$1\" && find . -printf '%p %m %n %s\\n' | sort"
                let before = try await Command.shell(look, folder).output
                func refusal(_ folder: String, _ source: String, _ mount: String) async throws -> String {
                    let outcome = try await yonder.yonder("import", folder, source, mount)
                    #expect(outcome.status == 1)
                    return outcome.errors
                }
                let (source, mount) = (yonder.source.string, yonder.mount.string)
                #expect(try await refusal(folder, source, mount).contains("FIFO"))
                #expect(try await refusal(folder, folder + "/d", mount).contains("contain each other"))
                #expect(try await refusal(folder, source, folder + "/d").contains("contains the directory"))
                #expect(try await refusal(folder + "/none", source, mount).contains("no such folder"))
                #expect(try await Command.shell(look, folder).output == before && before.contains("./d/p "))
                #expect(try await Command.run("cat", folder + "/1", folder + "/d/2").output == "1\n2\n")
                #expect(try await yonder.yonder("domains").output == "")
                #expect(yonder.contentFiles.isEmpty)
            }
        }
    }
}

extension Installation {
    /// Imports a folder without being asked.
    fileprivate func importing(_ folder: String) async throws -> Command.Outcome {
        try await yonder("import", "--yes", folder, source.string, mount.string)
    }
}
