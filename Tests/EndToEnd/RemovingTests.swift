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
                    """
                    exec 9<"$1/a/f1"; timeout 60 '\(Installation.program)' remove home; echo $?
                    yonder remove home --force 9<&-
                    """,
                    yonder.mount.string)
                #expect(outcome.output.hasPrefix("1\n'home' is removed"), "\(outcome.output)\(outcome.errors)")
                // What has it open is the shell, and not what has inherited it.
                let who = "a/f1: it is open by sh (pid "
                #expect(outcome.errors.contains(who) && !outcome.errors.contains("timeout"), "\(outcome.errors)")
                #expect(!outcome.errors.contains("yonder (pid"), "\(outcome.errors)")
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
                    try await eventually(within: .seconds(20)) {
                        try FileManager.default.contentsOfDirectory(atPath: removed).isEmpty
                    })
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
}

extension Installation {
    /// The same with another mount.
    func at(_ path: String) -> Installation {
        Installation(directory: directory, source: source, mount: FilePath(path), environment: environment)
    }
}
