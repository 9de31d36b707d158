import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Domains that are removed, with what is kept of them, and taken back.
    @Suite struct Removing {
        /// Runs a test with eight files mounted, of which three were read.
        private func prepared(_ test: (Installation) async throws -> Void) async throws {
            try await Installation.run { yonder async throws in
                for number in 1...4 {
                    try yonder.write("file \(number)", to: "a/f\(number)")
                    try yonder.write("deep \(number)", to: "a/b/g\(number)")
                }
                try await yonder.mountSource("--name", "home")
                try await yonder.shell("find . >/dev/null; cat a/f1 a/f2 a/b/g1 >/dev/null")
                try await test(yonder)
            }
        }

        private func makeDirty(_ yonder: Installation) async throws {
            _ = try await yonder.yonder("pause", "home")
            try await yonder.shell(
                """
                echo dirty > a/f2; echo new > a/new; mv a/f3 moved; rm a/f4; chmod 640 a/b/g2
                ln a/new a/hard; ln -s f1 a/link; setfattr -n user.k -v v a/b/g3 2>/dev/null || true
                """)
        }

        private func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }

        private func expectMerged(_ yonder: Installation, sourceLocation: SourceLocation = #_sourceLocation)
            async throws
        {
            try await yonder.expectSent(sourceLocation: sourceLocation)
            #expect(yonder.sourceText("a/f2") == "dirty\n", sourceLocation: sourceLocation)
            #expect(yonder.sourceText("a/new") == "new\n", sourceLocation: sourceLocation)
            #expect(yonder.sourceText("moved") == "file 3", sourceLocation: sourceLocation)
            #expect(
                yonder.sourceText("a/f3") == nil && yonder.sourceText("a/f4") == nil, sourceLocation: sourceLocation)
            #expect(
                try await Command.run("stat", "-c", "%a", yonder.source.appending("a/b/g2").string).output == "640\n",
                sourceLocation: sourceLocation)
            let links = try await yonder.shell("stat -c '%i %h' a/new a/hard | sort -u | wc -l; readlink a/link")
            #expect(links == "1\nf1\n", sourceLocation: sourceLocation)
        }

        @Test("REMOVE-1: content that was changed here is kept also if its item lies in no directory")
        func withoutDirectory() async throws {
            try await Installation.mounted { yonder async throws in
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo mine > file")
                #expect(try await yonder.yonder("shutdown").status == 0)
                try await yonder.expectDone(
                    """
                    python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute(sys.argv[2])' \
                        "$1"/*/replica.sqlite "UPDATE item SET parent = NULL, baseName = name, name = '/' || id WHERE name = 'file'"
                    """, yonder.directory["state/domains"].string)
                let kept = yonder.directory["kept"].string
                let removed = try await yonder.yonder("remove", "mount", "--to", kept)
                #expect(removed.status == 0, "\(removed.errors)")
                let found = try await Command.shell("cat \"$1\"/recovered/file*", kept)
                #expect(found.output == "mine\n", "\(removed.output)\(found.errors)")
            }
        }

        @Test("REMOVE-1: mode dirty keeps what the remote has not got, and an import of it takes it back")
        func dirty() async throws {
            try await prepared { yonder async throws in
                try await makeDirty(yonder)
                let kept = yonder.directory["kept"].string
                let report = try await yonder.json(RemoveReport.self, "remove", "home", "--to", kept)
                #expect(report.keep == .dirty && report.directory == kept)
                #expect(text(kept + "/files/a/f2") == "dirty\n" && text(kept + "/files/a/hard") == "new\n")
                #expect(!FileManager.default.fileExists(atPath: kept + "/files/a/f1"))
                let document = try JSONSerialization.jsonObject(
                    with: Data(contentsOf: URL(fileURLWithPath: kept + "/manifest.json")))
                #expect((document as? [String: Any])?["format"] as? String == "yonder-manifest")
                #expect(try await yonder.yonder("domains").output == "")
                #expect(yonder.sourceText("a/f2") == "file 2")
                try await yonder.yonder("import", kept, yonder.source.string, yonder.mount.string).expectSuccess()
                #expect(!FileManager.default.fileExists(atPath: kept))
                try await expectMerged(yonder)
            }
        }

        @Test("REMOVE-1: what was edited in the kept files is taken back, also when the removal is finished after that")
        func editedBeforeTheEnd() async throws {
            try await prepared { yonder async throws in
                let kept = yonder.directory["kept"].string
                let removed = try await yonder.yonder("remove", "home", "--keep", "downloaded", "--to", kept)
                #expect(removed.status == 0, "\(removed.errors)")
                #expect(try await yonder.yonder("shutdown").status == 0)
                try await Command.shell("printf 'FILE 1' > \"$1\"/files/a/f1", kept).expectSuccess()
                // As a removal leaves it that was killed before it had given the files their attributes.
                let left = try yonder.directory.makeDirectory("state/removed").appending("home-1")
                try FileManager.default.createDirectory(atPath: left.string, withIntermediateDirectories: true)
                try Data(kept.utf8).write(to: URL(fileURLWithPath: left.appending("kept").string))
                try await yonder.yonder("import", kept, yonder.source.string, yonder.mount.string).expectSuccess()
                #expect(!FileManager.default.fileExists(atPath: left.string))
                try await yonder.expectSent()
                #expect(yonder.sourceText("a/f1") == "FILE 1" && yonder.sourceText("a/f2") == "file 2")
            }
        }

        @Test("REMOVE-1: of a kept file with two names one is replaced: both texts are taken back")
        func replacedLink() async throws {
            try await prepared { yonder async throws in
                try await yonder.shell("ln a/f1 a/other")
                try await yonder.expectSent()
                let kept = yonder.directory["kept"].string
                try await yonder.yonder("remove", "home", "--keep", "downloaded", "--to", kept).expectSuccess()
                let replaced = try await Command.shell(
                    "cd \"$1\"/files/a && printf 'FILE 1' > new && touch -r f1 new && mv new other && stat -c %h f1",
                    kept)
                #expect(replaced.output == "1\n", "\(replaced.errors)")
                try await yonder.yonder("import", kept, yonder.source.string, yonder.mount.string).expectSuccess()
                try await yonder.expectSent()
                #expect(yonder.sourceText("a/f1") == "file 1" && yonder.sourceText("a/other") == "FILE 1")
                #expect(try await yonder.shell("cat a/f1 a/other") == "file 1FILE 1")
            }
        }

        @Test("REMOVE-1: what a repair has set aside is kept, too, with the directories that it lies in")
        func recovered() async throws {
            try await prepared { yonder async throws in
                let aside = yonder.directory["state/domains/home/recovered/database-1/a"]
                try FileManager.default.createDirectory(atPath: aside.string, withIntermediateDirectories: true)
                try Data("precious".utf8).write(to: URL(fileURLWithPath: aside.appending("mine").string))
                // A name that is not UTF-8.
                try await Command.shell("printf odd > \"$1/$(printf 'm\\377')\"", aside.string).expectSuccess()
                let kept = yonder.directory["kept"].string
                try await yonder.yonder("remove", "home", "--to", kept).expectSuccess()
                #expect(text(kept + "/recovered/database-1/a/mine") == "precious")
                #expect(try await Command.shell("cat \"$1\"/m?", kept + "/recovered/database-1/a").output == "odd")
            }
        }

        @Test("REMOVE-1: what was moved into the trash and not told yet is trashed on the remote when it is taken back")
        func trashed() async throws {
            try await prepared { yonder async throws in
                try yonder.write("other", to: "c/other")
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                try await yonder.shell("find . >/dev/null; cat c/other >/dev/null")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                _ = try await yonder.yonder("pause", "home")
                _ = try await yonder.yonder("trash", "put", yonder["a/f1"], yonder["a/b"], yonder["c/other"])
                try await yonder.shell("echo another > a/f1")
                let kept = yonder.directory["kept"].string
                #expect(try await yonder.json(RemoveReport.self, "remove", "home", "--to", kept).keep == .dirty)
                #expect(yonder.sourceText("a/f1") == "file 1" && yonder.sourceText("c/other") == "other")
                try await yonder.yonder("import", kept, yonder.source.string, yonder.mount.string).expectSuccess()
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.conflicts() == [:])
                #expect(yonder.sourceText("a/f1") == "another\n" && yonder.sourceText("c/other") == nil)
                #expect(yonder.sourceText("a/b/g1") == nil && yonder.sourceText("a/f2") == "file 2")
                let trash = try await yonder.yonder("trash", "list", yonder.mount.string).output
                #expect(trash.split(separator: "\n").count == 3, "\(trash)")
                try await yonder.yonder("trash", "restore", "b", "other", "f1").expectSuccess()
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("a/b/g1") == "deep 1" && yonder.sourceText("c/other") == "other")
                #expect(yonder.sourceText("a/f1 (2)") == "file 1" && yonder.sourceText("a/f1") == "another\n")
                try await yonder.expectSent(excluding: "/.Trash*")
            }
        }

        @Test(
            "TRASH-7: what was written in the trash is kept, and the item is trashed on the remote as the remote has it"
        )
        func writtenInTheTrash() async throws {
            try await prepared { yonder async throws in
                _ = try await yonder.yonder("pause", "home")
                _ = try await yonder.yonder("trash", "put", yonder["a/f1"])
                try await yonder.shell("echo longer than before > .Trash-$(id -u)/files/f1")
                let kept = yonder.directory["kept"].string
                let report = try await yonder.json(RemoveReport.self, "remove", "home", "--to", kept)
                #expect(report.keep == .dirty && text(kept + "/trash/f1") == "longer than before\n")
                try await yonder.yonder("import", kept, yonder.source.string, yonder.mount.string).expectSuccess()
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("a/f1") == nil)
                #expect(text(kept + "/trash/f1") == "longer than before\n")
                #expect(try await yonder.yonder("trash", "restore", "f1").status == 0)
                try await yonder.expectSent(excluding: "/.Trash*")
                #expect(try await yonder.shell("cat a/f1") == "file 1")
                #expect(yonder.sourceText("a/f1") == "file 1")
            }
        }

        @Test("REMOVE-1: what cannot be kept is named with its path, and the exit status is 1") func notKept()
            async throws
        {
            try await prepared { yonder async throws in
                _ = try await yonder.yonder("pause", "home")
                _ = try await yonder.yonder("trash", "put", yonder["a/f1"])
                try await yonder.shell(
                    """
                    echo new > a/new &&
                    python3 -c 'import os, socket; socket.socket(socket.AF_UNIX).bind(f".Trash-{os.getuid()}/socket")'
                    """)
                let kept = yonder.directory["kept"].string
                let removed = try await yonder.yonder("remove", "home", "--to", kept)
                removed.expectFailure(saying: "yonder: \(kept)/trash/socket: not kept: it is a socket\n")
                #expect(removed.output.contains(kept) && text(kept + "/files/a/new") == "new\n")
            }
        }

        @Test("REMOVE-1: mode downloaded keeps all that is here, and an import of it downloads nothing again")
        func downloaded() async throws {
            try await prepared { yonder async throws in
                try await makeDirty(yonder)
                let report = try await yonder.json(
                    RemoveReport.self, "remove", yonder.mount.string, "--keep", "downloaded")
                let kept = try #require(report.directory)
                #expect(kept.hasPrefix(yonder.directory["state"].string))
                #expect(text(kept + "/files/a/f1") == "file 1" && text(kept + "/files/a/f2") == "dirty\n")
                // Changes of the files in the meantime count.
                try "edited".write(toFile: kept + "/files/a/f1", atomically: false, encoding: .utf8)
                try "added".write(toFile: kept + "/files/a/added", atomically: false, encoding: .utf8)
                try await yonder.yonder("import", kept, yonder.source.string, yonder.mount.string).expectSuccess()
                #expect(try await yonder.info("a/b/g1").content == "materialized")
                #expect(try await yonder.info("a/b/g4").content == "dataless")
                try await expectMerged(yonder)
                #expect(yonder.sourceText("a/f1") == "edited" && yonder.sourceText("a/added") == "added")
            }
        }

        @Test("REMOVE-1: mode none keeps nothing, and refuses what only this machine has without --force")
        func none() async throws {
            try await prepared { yonder async throws in
                try await makeDirty(yonder)
                try await yonder.yonder("remove", "home", "--keep", "none").expectFailure(saying: "--force")
                #expect(try await yonder.shell("cat a/f2") == "dirty\n")
                let done = try await yonder.json(RemoveReport.self, "remove", "home", "--keep", "none", "--force")
                #expect(done.directory == nil)
                #expect(try await yonder.yonder("domains").output == "")
                #expect(yonder.contentFiles.isEmpty)
                #expect(yonder.sourceText("a/f2") == "file 2")
            }
        }

        @Test("R7 a domain that was removed is added again")
        func addedAgain() async throws {
            try await prepared { yonder async throws in
                let removed = try await yonder.yonder("remove", "home")
                #expect(removed.output == "'home' is removed; nothing was kept\n")
                #expect(try await yonder.yonder("status", "home").status == 69)
                #expect(try await yonder.yonder("remove", "home").status == 1)
                try await yonder.mountSource("--name", "home")
                #expect(try await yonder.shell("cat a/f2") == "file 2")
                #expect(try await yonder.info("a/f1").content == "dataless")
            }
        }

        @Test func openFilesAreNamed() async throws {
            try await prepared { yonder async throws in
                let outcome = try await yonder.run(
                    "exec 9<\"$1/a/f1\"; yonder remove home; echo $?; yonder remove home --force 9<&-",
                    yonder.mount.string)
                #expect(outcome.output.hasPrefix("1\n'home' is removed"), "\(outcome.output)\(outcome.errors)")
                #expect(outcome.errors.contains("a/f1: it is open by"))
            }
        }

        @Test("REMOVE-1: a removal that is cut short leaves the domain as it was, or finishes at the next start")
        func cutShort() async throws {
            try await Installation.run { yonder async throws in
                for number in 0..<600 { try yonder.write("content \(number)", to: "d\(number % 10)/f\(number)") }
                try await yonder.mountSource("--name", "home")
                try await yonder.shell("cat */* >/dev/null")
                _ = try await yonder.yonder("pause", "home")
                try await yonder.shell("echo dirty > d1/f1")
                let kept = yonder.directory["kept"].string
                var isRemoved = false
                for attempt in 0..<6 where !isRemoved {
                    async let removal = yonder.yonder("remove", "home", "--keep", "downloaded", "--to", kept)
                    try await Task.sleep(for: .milliseconds(60 + attempt * 120))
                    try await yonder.killDaemon()
                    _ = try await removal
                    let domains = try await yonder.run("yonder remove nothing 2>/dev/null; yonder domains").output
                    isRemoved = domains == ""
                    if !isRemoved {
                        try await yonder.mountSource("--name", "home")
                        #expect(try await yonder.shell("cat d1/f1") == "dirty\n")
                        _ = try await yonder.yonder("pause", "home")
                    }
                }
                if !isRemoved {
                    try await yonder.yonder("remove", "home", "--keep", "downloaded", "--to", kept).expectSuccess()
                }
                #expect(text(kept + "/files/d1/f1") == "dirty\n")
                #expect(text(kept + "/files/d9/f599") == "content 599")
                let removed = yonder.directory["state/removed"].string
                #expect(
                    try await eventually { try FileManager.default.contentsOfDirectory(atPath: removed).isEmpty })
            }
        }

        @Test("REMOVE-4: the next daemon removes the credentials of a removal or an import that was cut short")
        func credentialsAfterCutShort() async throws {
            try await Installation.run { yonder async throws in
                let credentials = yonder.directory["credentials"].string
                // A kill after a domain was forgotten, and one while a folder was imported. One name was used again, one is none of
                // this state's.
                try await yonder.expectDone(
                    """
                    mkdir -p -m 700 "$1" "$1/domains" "$1/removed" "$1/staging" "$2"
                    mkdir "$1/removed/home-$3" "$1/staging/imported-$3" "$1/removed/again-$3" "$1/domains/again"
                    touch "$2/home" "$2/imported" "$2/again" "$2/elsewhere"
                    """, yonder.directory["state"].string, credentials, UUID().uuidString)
                let domains = try await yonder.run("yonder remove nothing 2>/dev/null; yonder domains")
                #expect(domains.status == 0 && domains.output == "", "\(domains.errors)")
                let left = try FileManager.default.contentsOfDirectory(atPath: credentials).sorted()
                #expect(left == ["again", "elsewhere"])
            }
        }
    }

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
                #expect(try await eventually { FileManager.default.fileExists(atPath: ready) })
                try await yonder.importing(folder).expectFailure(saying: "folder/file' is open for writing")
                #expect(FileManager.default.fileExists(atPath: folder + "/file"))
                writer.kill()
                #expect(await writer.ends())
                try await yonder.importing(folder).expectSuccess()
                #expect(try await yonder.shell("wc -c < file") == "5000\n")
            }
        }

        @Test("REIMPORT-1: an import that cannot be done leaves the folder as it was")
        func refused() async throws {
            try await Installation.run { yonder async throws in
                try yonder.write("a", to: "a")
                let folder = try yonder.directory.makeDirectory("folder").string
                _ = try await Command.shell("cd \"$1\" && echo 1 > 1 && mkdir d && echo 2 > d/2 && mkfifo d/p", folder)
                let before = try await Command.shell("cd \"$1\" && find . -printf '%p %i %m %n\\n' | sort", folder)
                    .output
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
                let after = try await Command.shell("cd \"$1\" && find . -printf '%p %m %n\\n' | sort", folder).output
                #expect(after.split(separator: "\n").count == before.split(separator: "\n").count)
                #expect(try await Command.run("cat", folder + "/1", folder + "/d/2").output == "1\n2\n")
                #expect(try await yonder.yonder("domains").output == "")
                #expect(yonder.contentFiles.isEmpty)
            }
        }
    }
}

extension Installation {
    /// The same with another mount.
    func at(_ path: String) -> Installation {
        Installation(directory: directory, source: source, mount: FilePath(path), environment: environment)
    }
}

extension Installation {
    /// Imports a folder without being asked.
    fileprivate func importing(_ folder: String) async throws -> Command.Outcome {
        try await yonder("import", "--yes", folder, source.string, mount.string)
    }
}
