import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import yonder

extension RealMount {
    /// `yonder check`: what it finds, what it mends, and that nothing is lost on the way.
    @Suite(.tags(.long)) struct Checking {
        /// Some files, three of them read, and then unmounted.
        private func prepare(_ yonder: Installation) async throws {
            try yonder.write("alpha", to: "a")
            try yonder.write("beta", to: "dir/b")
            try yonder.write("gamma", to: "dir/inner/c")
            try yonder.write("unread", to: "d")
            try await yonder.mountSource()
            _ = try await yonder.shell("cat a dir/b dir/inner/c")
            #expect(try await yonder.yonder("wait", "--downloads", "--timeout", "20").status == 0)
        }

        private func unmount(_ yonder: Installation) async throws {
            #expect(try await yonder.yonder("unmount", "mount").status == 0)
        }

        private func replica(_ yonder: Installation) -> FilePath { yonder.directory["state/domains/mount"] }

        private func check(
            _ yonder: Installation, _ options: String..., expecting status: Int32,
            sourceLocation: SourceLocation = #_sourceLocation
        ) async throws -> [CheckReport.Problem] {
            let outcome = try await Command(
                [Installation.program, "check", "mount", "--json"] + options, environment: yonder.environment,
                seconds: 60
            ).run()
            #expect(
                outcome.status == status, "\(outcome.output)\(outcome.errors)", sourceLocation: sourceLocation)
            let reports = try JSONDecoder().decode([CheckReport].self, from: Data(outcome.outputBytes))
            return reports.flatMap(\.problems)
        }

        /// Runs statements on the database, as a user should not.
        private func sabotage(_ yonder: Installation, _ sql: String) async throws {
            let script = "import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.executescript(sys.argv[2]); d.commit()"
            let path = replica(yonder).appending("replica.sqlite").string
            let outcome = try await Command.run("python3", "-c", script, path, sql)
            try #require(outcome.status == 0, "\(outcome.errors)")
        }

        private func inode(_ yonder: Installation, _ name: String) async throws -> Int64 {
            try await yonder.info(name).inode
        }

        private func recovered(_ yonder: Installation) -> [String] {
            let place = replica(yonder).appending("recovered").string
            return (FileManager.default.enumerator(atPath: place)?.compactMap { $0 as? String } ?? []).filter {
                var isDirectory: ObjCBool = false
                return FileManager.default.fileExists(atPath: "\(place)/\($0)", isDirectory: &isDirectory)
                    && !isDirectory.boolValue
            }
        }

        private func recoveredText(_ yonder: Installation, _ text: String) -> Bool {
            recovered(yonder).contains { name in
                let path = replica(yonder).appending("recovered").string + "/" + name
                return FileManager.default.contents(atPath: path).map { $0 == Data(text.utf8) } ?? false
            }
        }

        /// What was written before the damage is in the mount, and gets to the source.
        private func expectSent(_ yonder: Installation) async throws {
            #expect(try await yonder.yonder("mount", "mount").status == 0)
            #expect(try await yonder.shell("cat dir/mine a; test -L link && test -d new") == "preciousedited")
            #expect(try await yonder.yonder("wait", "mount", "--timeout", "60").status == 0)
            try await expectWhole(yonder)
        }

        /// All that the mount shows is what the source has.
        private func expectWhole(
            _ yonder: Installation, sourceLocation: SourceLocation = #_sourceLocation
        ) async throws {
            #expect(try await yonder.yonder("mount", "mount").status == 0, sourceLocation: sourceLocation)
            let outcome = try await Command.run(
                "diff", "-r", yonder.source.string, yonder.mount.string, seconds: 30)
            #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)", sourceLocation: sourceLocation)
        }

        @Test("CHECK-1: the summary tells the number of changes that are not on the remote yet")
        func tellsWhatIsNotSent() async throws {
            let summaries: [(unsent: Int?, words: String)] = [
                (nil, "all is well"), (0, "all is well"), (1, "all is well; 1 change is not on the remote yet"),
                (2, "all is well; 2 changes are not on the remote yet"),
            ]
            for (unsent, words) in summaries {
                var report = CheckReport(name: "mount")
                report.unsent = unsent
                let (line, isSound) = (Yonder.Check.lines(report).last ?? "", report.isSound)
                #expect(isSound && line.hasSuffix("compared; \(words)"), "\(line)")
            }
            try await Installation.run { yonder in
                try await prepare(yonder)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                _ = try await yonder.shell("echo new >new")
                let text = try await yonder.yonder("check", "mount")
                #expect(text.status == 1 && text.output.contains("nothing is wrong here; "), "\(text.output)")
                #expect(text.output.hasSuffix(" not on the remote yet\n"), "\(text.output)")
            }
        }

        @Test("CHECK-1: where nothing is wrong nothing is found, mounted and unmounted") func findsNothing()
            async throws
        {
            try await Installation.run { yonder in
                try await prepare(yonder)
                #expect(try await check(yonder, expecting: 0).isEmpty)
                #expect(try await check(yonder, "--content", expecting: 0).isEmpty)
                let text = try await yonder.yonder("check", yonder["dir"])
                #expect(text.output.contains("all is well"), "\(text.output)\(text.errors)")
                try await unmount(yonder)
                #expect(try await check(yonder, "--content", expecting: 0).isEmpty)
                #expect(try await yonder.yonder("check", "nowhere").status == 1)
                #expect(recovered(yonder).isEmpty)
                try await expectWhole(yonder)
            }
        }

        @Test("CHECK-1: content that does not fit its row is found, set aside and fetched again")
        func mendsContents() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                let (a, b) = (try await inode(yonder, "a"), try await inode(yonder, "dir/b"))
                try await unmount(yonder)
                let contents = replica(yonder).appending("contents")
                try Data("al".utf8).write(to: URL(fileURLWithPath: contents.appending("\(a)").string))
                try FileManager.default.removeItem(atPath: contents.appending("\(b)").string)
                try Data("stray".utf8).write(to: URL(fileURLWithPath: contents.appending("9999").string))
                let found = try await check(yonder, expecting: 1)
                #expect(Set(found.map(\.kind)) == ["contents"])
                #expect(found.count == 3, "\(found)")
                #expect(try await check(yonder, expecting: 1).count == 3, "looking mends nothing")
                #expect(try await check(yonder, "--repair", expecting: 0).allSatisfy(\.isMended))
                #expect(try await check(yonder, expecting: 0).isEmpty)
                #expect(recoveredText(yonder, "al") && recoveredText(yonder, "stray"))
                try await expectWhole(yonder)
            }
        }

        @Test("CHECK-1: bytes that are not the remote's are found with --content, on a mounted domain, too")
        func comparesBytes() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                let a = try await inode(yonder, "a")
                let file = replica(yonder).appending("contents").appending("\(a)")
                try await unmount(yonder)
                let date = try #require(
                    try FileManager.default.attributesOfItem(atPath: file.string)[.modificationDate] as? Date)
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file.string))
                try handle.write(contentsOf: Data("ALPHA".utf8))
                try handle.close()
                try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: file.string)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await check(yonder, expecting: 0).isEmpty)
                let found = try await check(yonder, "--content", expecting: 1)
                #expect(found.map(\.kind) == ["bytes"])
                #expect(found.first?.path == yonder["a"])
                #expect(try await check(yonder, "--content", "--repair", expecting: 0).allSatisfy(\.isMended))
                #expect(try await yonder.info("a").content == "dataless")
                #expect(try await Command.run("cat", yonder["a"]).output == "alpha")
                #expect(recoveredText(yonder, "ALPHA"))
                #expect(try await check(yonder, "--content", expecting: 0).isEmpty)
            }
        }

        @Test("CHECK-1: orphans, circles and wrong counts are found and mended from the remote")
        func mendsTheTree() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                let (dir, inner) = (try await inode(yonder, "dir"), try await inode(yonder, "dir/inner"))
                try await unmount(yonder)
                try await sabotage(
                    yonder,
                    """
                    PRAGMA foreign_keys = OFF;
                    UPDATE item SET parent = \(inner) WHERE inode = \(dir);
                    UPDATE item SET parent = 7777 WHERE name = 'a';
                    UPDATE inode SET linkCount = 5 WHERE number = 1;
                    UPDATE inode SET subdirectories = 9 WHERE number = 1;
                    DELETE FROM item WHERE name = 'd';
                    """)
                let found = try await check(yonder, expecting: 1)
                #expect(found.contains { $0.kind == "tree" && $0.message.contains("circle") }, "\(found)")
                let mended = try await check(yonder, "--repair", expecting: 0)
                #expect(mended.allSatisfy { $0.isMended }, "\(mended)")
                #expect(try await check(yonder, expecting: 0).isEmpty)
                try await expectWhole(yonder)
            }
        }

        @Test("CMD-22: what a check tells of a repair does not control the terminal") func oddTarget() async throws {
            try await Installation.run { yonder in
                try FileManager.default.createSymbolicLink(
                    atPath: yonder.source.appending("link").string, withDestinationPath: "t\u{1B}[31m\u{9B}")
                try await yonder.mountSource()
                try await yonder.shell("ls")
                try await unmount(yonder)
                try await sabotage(
                    yonder, "PRAGMA foreign_keys = OFF; UPDATE item SET parent = 7777 WHERE name = 'link';")
                let mended = try await yonder.onTerminal(["check", "mount", "--repair"])
                #expect(mended.status == 0 && mended.text.contains(#"it pointed to 't\x{1b}[31m\x{9b}'"#), "\(mended)")
                #expect(!mended.controlsTerminal)
            }
        }

        @Test("CHECK-1: an item of the remote that the replica lacks is found and added") func comparesWithRemote()
            async throws
        {
            try await Installation.run { yonder in
                try await prepare(yonder)
                try await sabotage(
                    yonder,
                    """
                    PRAGMA foreign_keys = OFF; DELETE FROM item WHERE name = 'd';
                    DELETE FROM inode WHERE number NOT IN (SELECT inode FROM item);
                    """)
                let found = try await check(yonder, expecting: 1)
                #expect(found.contains { $0.kind == "remote" && $0.path == "d" }, "\(found)")
                #expect(try await check(yonder, "--repair", expecting: 0).allSatisfy(\.isMended))
                try await expectWhole(yonder)
            }
        }

        @Test("CHECK-1: what was written here and is not on the remote outlives the loss of its row")
        func keepsWhatWasWritten() async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                _ = try await yonder.shell("printf precious > mine; printf edited > a")
                try await unmount(yonder)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await sabotage(yonder, "PRAGMA foreign_keys = OFF; DELETE FROM item WHERE name IN ('mine', 'a');")
                _ = try await check(yonder, expecting: 1)
                #expect(try await check(yonder, "--repair", expecting: 0).allSatisfy(\.isMended))
                #expect(recoveredText(yonder, "precious"))
                #expect(recoveredText(yonder, "edited"))
                try await expectWhole(yonder)
            }
        }

        enum Damage: String, CaseIterable {
            case truncated, halved, garbageInTheMiddle, garbageAtTheStart, emptied, gone

            /// - Parameter end: where the file is cut when it is truncated.
            func inflict(on path: String, cutAt end: UInt64) throws {
                let size = try (FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                defer { try? handle.close() }
                switch self {
                case .truncated: try handle.truncate(atOffset: end)
                case .halved: try handle.truncate(atOffset: UInt64(size / 2))
                case .garbageInTheMiddle:
                    for page in 3..<(size / 4096) where page % 3 == 0 {
                        try handle.seek(toOffset: UInt64(page * 4096))
                        try handle.write(contentsOf: Data(repeating: 0xA5, count: 4096))
                    }
                case .garbageAtTheStart: try handle.write(contentsOf: Data(repeating: 0xA5, count: 4096))
                case .emptied: try handle.truncate(atOffset: 0)
                case .gone: try FileManager.default.removeItem(atPath: path)
                }
            }
        }

        /// Makes the database's file end with pages that belong to the table `finding` alone, which a rebuild does not
        /// read: a cut at the first of them is always the same damage.
        ///
        /// - Returns: where the pages begin.
        private func appendFindings(_ yonder: Installation) async throws -> UInt64 {
            let script = """
                import sqlite3, sys
                database = sqlite3.connect(sys.argv[1])
                # What is appended is not to be in free pages.
                database.execute("VACUUM")
                end, size = (database.execute("PRAGMA " + name).fetchone()[0] for name in ("page_count", "page_size"))
                database.executemany("INSERT INTO finding (foundAt, text) VALUES (0, ?)", [("x" * 3000,)] * 64)
                database.commit()
                database.close()
                print(end * size)
                """
            let outcome = try await Command.python(script, replica(yonder).appending("replica.sqlite").string)
            return try #require(UInt64(outcome.line), "\(outcome.errors)")
        }

        @Test(
            "CHECK-1: a damaged database is said to be, and made anew without losing anything",
            arguments: Damage.allCases)
        func rebuilds(damage: Damage) async throws {
            try await Installation.run { yonder in
                try await prepare(yonder)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                _ = try await yonder.shell(
                    "printf precious > dir/mine; printf edited > a; ln -s a link; mkdir new; rm d")
                try await unmount(yonder)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                let end = damage == .truncated ? try await appendFindings(yonder) : 0
                try damage.inflict(on: replica(yonder).appending("replica.sqlite").string, cutAt: end)
                if damage != .garbageInTheMiddle {
                    let refused = try await yonder.yonder("mount", "mount")
                    #expect(refused.status == 1)
                    #expect(refused.errors.contains("damaged"), "\(refused.errors)")
                    #expect(refused.errors.contains("check mount --repair"), "\(refused.errors)")
                }
                let found = try await check(yonder, expecting: 1)
                #expect(found.contains { $0.kind == "database" && $0.message.contains("damaged") }, "\(found)")
                let mended = try await check(yonder, "--repair", expecting: 0)
                #expect(mended.allSatisfy { $0.isMended }, "\(mended)")
                if mended.contains(where: { $0.message.contains("all its rows could be read") }) {
                    // The lost page was one of an index: all that was pending still is, and is sent.
                    #expect(damage != .truncated)
                    return try await expectSent(yonder)
                }
                #expect(recoveredText(yonder, "precious"))
                #expect(recoveredText(yonder, "edited"))
                if damage == .truncated {
                    // As much as can be known is: also what is no file, and what was to be deleted.
                    #expect(mended.contains { $0.path == "link" } && mended.contains { $0.path == "new" }, "\(mended)")
                    #expect(recovered(yonder).contains { $0.hasSuffix("/dir/mine") }, "\(recovered(yonder))")
                }
                #expect(try await check(yonder, "--content", expecting: 0).isEmpty)
                try await expectWhole(yonder)
            }
        }

        @Test("CHECK-1: a mounted domain's damaged database is made anew, and it is mounted again")
        func rebuildsMounted()
            async throws
        {
            try await Installation.run { yonder in
                for number in 0..<400 { try yonder.write("\(number)", to: "many/f\(number)") }
                try await prepare(yonder)
                _ = try await yonder.shell("ls -R >/dev/null")
                try await unmount(yonder)
                let path = replica(yonder).appending("replica.sqlite").string
                // The page of an index that mounting does not read.
                let script = """
                    import sqlite3, sys
                    query = "select rootpage from sqlite_master where name = 'conflictCopy'"
                    print(sqlite3.connect(sys.argv[1]).execute(query).fetchone()[0])
                    """
                let page = try #require(UInt64(try await Command.run("python3", "-c", script, path).line))
                let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
                try handle.seek(toOffset: (page - 1) * 4096)
                try handle.write(contentsOf: Data(repeating: 0xA5, count: 4096))
                try handle.close()
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                let found = try await check(yonder, expecting: 1)
                #expect(found.contains { $0.kind == "database" }, "\(found)")
                #expect(try await check(yonder, "--repair", expecting: 0).allSatisfy(\.isMended))
                #expect(try await yonder.json([DomainSummary].self, "domains").first?.isMounted == true)
                try await expectWhole(yonder)
                #expect(try await check(yonder, expecting: 0).isEmpty)
            }
        }
    }
}
