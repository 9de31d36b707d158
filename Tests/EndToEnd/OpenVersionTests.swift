import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A file that changes on the remote while processes have it open.
    @Suite struct OpenVersions {
        /// How the source gets its new content: the folder provider knows a file by its inode.
        enum Change: String, CaseIterable {
            case rewritten
            case replaced
        }

        /// Runs some Python that has `old` open before the source gets `second, longer`, and afterwards the news.
        private func run(
            _ yonder: Installation, mode: String, change: Change = .rewritten, before: String = "",
            isShown: Bool = true, _ after: String
        ) async throws -> Command.Outcome {
            let place = change == .rewritten ? "source" : "source + '.new'"
            let rename = change == .rewritten ? "" : "os.rename(source + '.new', source)"
            let program = """
                import os, subprocess, sys
                path, source, yonder = sys.argv[1:]
                old = open(path, '\(mode)')
                \(before)
                with open(\(place), 'wb') as g: g.write(b'second, longer')
                \(rename)
                # The watcher of the folder may not have read the event when the first signal comes.
                for _ in range(\(isShown ? 100 : 1)):
                    subprocess.run([yonder, 'signal', '--wait'], check=True)
                    if os.stat(path).st_size == 14: break
                \(after)
                """
            return try await Command(
                [
                    "python3", "-c", program, yonder["file"], yonder.source.appending("file").string,
                    Installation.program,
                ],
                environment: yonder.environment
            ).run()
        }

        private func run(
            passthrough: String, _ test: (Installation) async throws -> Void
        ) async throws {
            let environment = ["YONDER_PASSTHROUGH": passthrough]
            try await Installation.mounted(["file": "first"], environment: environment) { yonder async throws in
                #expect(try await Command.run("cat", yonder["file"]).output == "first")
                try await test(yonder)
                #expect(
                    try await eventually { try await Command.run("cat", yonder["file"]).output == "second, longer" })
            }
        }

        @Test(
            "OPEN-1: OPEN-3: a new open sees the newest version while a reader keeps the one that it opened",
            arguments: ["0", "1"], Change.allCases)
        func newOpensSeeTheNewestVersion(passthrough: String, change: Change) async throws {
            try await run(passthrough: passthrough) { yonder in
                let outcome = try await run(
                    yonder, mode: "rb", change: change,
                    """
                    assert os.stat(path).st_size == 14, os.stat(path)
                    with open(path, 'rb') as new: assert new.read() == b'second, longer'
                    assert os.fstat(old.fileno()).st_size == 5, os.fstat(old.fileno())
                    assert old.read() == b'first'
                    with open(f'/proc/self/fd/{old.fileno()}', 'rb') as same: assert same.read() == b'first'
                    with open(path, 'rb') as new:
                        os.pwrite(os.open(path, os.O_WRONLY), b'S', 0)
                        assert new.read() == b'Second, longer'
                    with open(path, 'r+b') as new: new.write(b's')
                    old.close()
                    """)
                #expect(outcome.status == 0, "\(outcome.errors)")
                try await yonder.expectSent()
                #expect(yonder.sourceText("file") == "second, longer")
                #expect(try await yonder.conflicts().isEmpty)
                // The old version goes with its last use.
                #expect(await eventually { yonder.contentFiles.count == 1 }, "\(yonder.contentFiles)")
            }
        }

        @Test("OPEN-3: tail -f keeps the version that it opened, and tail -F prints the new one from its beginning")
        func followedByTail() async throws {
            try await run(passthrough: "1") { yonder in
                let outcome = try await run(
                    yonder, mode: "rb",
                    before: """
                        import atexit
                        tails = []
                        for how in ('-f', '-F'):
                            command = ['timeout', '60', 'tail', '-n', '+1', '-s', '0.1', how, path]
                            tails.append(
                                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
                            # timeout passes SIGTERM on.
                            atexit.register(tails[-1].terminate)
                        for tail in tails: assert tail.stdout.read(5) == b'first'
                        """,
                    """
                    assert tails[1].stdout.read(14) == b'second, longer'
                    for tail in tails:
                        tail.terminate()
                        assert tail.stdout.read() == b''
                    """)
                #expect(outcome.status == 0, "\(outcome.errors)")
            }
        }

        @Test(
            "OPEN-1: an open file that no process has read from follows the remote to its new version",
            arguments: ["0", "1"])
        func unreadFilesFollow(passthrough: String) async throws {
            let environment = ["YONDER_PASSTHROUGH": passthrough]
            try await Installation.mounted(["file": "first"], environment: environment) { yonder async throws in
                let outcome = try await run(
                    yonder, mode: "rb",
                    """
                    assert os.fstat(old.fileno()).st_size == 14, os.fstat(old.fileno())
                    assert os.fstat(old.fileno()).st_ino == os.stat(path).st_ino
                    assert old.read() == b'second, longer'
                    with open(source, 'wb') as g: g.write(b'third')
                    for _ in range(100):
                        subprocess.run([yonder, 'signal', '--wait'], check=True)
                        if os.stat(path).st_size == 5: break
                    assert os.pread(old.fileno(), 100, 0) == b'second, longer'
                    """)
                #expect(outcome.status == 0, "\(outcome.errors)")
            }
        }

        @Test("OPEN-1: a process that has read what the kernel had cached of a partial file has read from the file")
        func readFromTheKernelsPages() async throws {
            try await Installation.mounted(["file": "first"]) { yonder async throws in
                let program = """
                    import errno, os, subprocess, sys
                    path, source, yonder = sys.argv[1:]
                    def change(text, size):
                        with open(source, 'r+b') as g:
                            for place in (0, 3 << 30):
                                g.seek(place)
                                g.write(text)
                            g.truncate(size)
                        # The watcher of the folder may not have read the event when the first signal comes.
                        for _ in range(100):
                            subprocess.run([yonder, 'signal', '--wait'], check=True)
                            if os.stat(path).st_size == size: break
                    change(b'first', 5 << 30)
                    # The kernel keeps the page after the close.
                    earlier = os.open(path, os.O_RDONLY)
                    assert os.pread(earlier, 5, 0) == b'first'
                    os.close(earlier)
                    old = os.open(path, os.O_RDONLY)
                    assert os.pread(old, 5, 0) == b'first'
                    change(b'other', 6 << 30)
                    assert os.fstat(old).st_ino != os.stat(path).st_ino
                    try: assert os.pread(old, 5, 3 << 30) == b'first'
                    except OSError as error: assert error.errno == errno.ESTALE, error
                    """
                try await Command(
                    [
                        "python3", "-c", program, yonder["file"], yonder.source.appending("file").string,
                        Installation.program,
                    ],
                    environment: yonder.environment, seconds: 60
                ).run().expectSuccess()
            }
        }

        @Test("OPEN-1: a file that changes on the remote between its listing and its first read is read, not ESTALE")
        func changesBeforeTheFirstRead() async throws {
            try await Installation.mounted(["file": "0"]) { yonder async throws in
                let program = """
                    import os, sys
                    path, source = sys.argv[1:]
                    # The file is empty for a moment while it is rewritten.
                    texts = [b'0', b'']
                    for number in range(200):
                        os.stat(path)
                        text = bytes([97 + number % 26]) * (1 + number * 7919 % 1000)
                        texts.append(text)
                        if number % 2:
                            with open(source, 'wb') as g: g.write(text)
                            f = open(path, 'rb')
                        else:
                            f = open(path, 'rb')
                            with open(source, 'wb') as g: g.write(text)
                        got = f.read()
                        # The kernel may not know the new size in the moment of the change.
                        if got not in texts: got = os.pread(f.fileno(), 2000, 0)
                        f.close()
                        # The watcher of the folder may lag behind.
                        assert got in texts, (number, len(text), got)
                    """
                try await Command(
                    ["python3", "-c", program, yonder["file"], yonder.source.appending("file").string],
                    environment: yonder.environment
                ).run().expectSuccess()
            }
        }

        @Test(
            "OPEN-1: a first read that finds a file grown goes on to its new end",
            arguments: FarRemote.Kind.installed.filter { $0 != .s3 })
        func grownBeforeTheFirstRead(kind: FarRemote.Kind) async throws {
            try await FarRemote.run(kind) { remote, yonder in
                let folder = try #require(remote.folder).string
                let made = try await yonder.run(
                    #"for i in $(seq 20); do mkdir "$1"/$i && head -c 30000 /dev/zero > "$1"/$i/f; done"#, folder)
                #expect(made.status == 0, "\(made.errors)")
                try await remote.mount(yonder, "--poll", "3600")
                #expect(
                    try await yonder.run(#"stat -c %s "$1"/*/f | uniq"#, yonder.mount.string).output == "30000\n")
                // Each has a directory of its own, so that none is fetched ahead. A file of this size that was written within the
                // last seconds is waited for: these are older.
                let outcome = try await yonder.run(
                    """
                    for i in $(seq 20); do
                        head -c 1100000 /dev/zero > "$2"/.new && touch -d '1 minute ago' "$2"/.new
                        mv "$2"/.new "$2"/$i/f && cat "$1"/$i/f | wc -c; sleep 0.$((i % 4))
                    done | sort | uniq -c | tr -s ' '
                    """, yonder.mount.string, folder)
                #expect(outcome.output == " 20 1100000\n", "\(outcome.errors)")
            }
        }

        @Test(
            "OPEN-4: what is written through a handle that was opened before the news is kept beside the remote's text",
            arguments: ["0", "1"])
        func writingToAnOldVersionIsAConflict(passthrough: String) async throws {
            try await run(passthrough: passthrough) { yonder in
                let outcome = try await run(
                    yonder, mode: "r+b",
                    """
                    with open(path, 'rb') as new: assert new.read() == b'second, longer'
                    old.write(b'ours')
                    old.close()
                    """)
                #expect(outcome.status == 0, "\(outcome.errors)")
                try await expectConflictCopy(in: yonder, "ourst")
            }
        }

        @Test("OPEN-4: so is what was written before the news and not noticed yet") func writtenJustBefore()
            async throws
        {
            try await run(passthrough: "1") { yonder in
                let outcome = try await run(
                    yonder, mode: "r+b", before: "old.write(b'ours'); old.flush()", isShown: false, "old.close()")
                #expect(outcome.status == 0, "\(outcome.errors)")
                try await expectConflictCopy(in: yonder, "ourst")
            }
        }

        @Test("OPEN-4: so is what a handle of an old version truncates") func truncatingAnOldVersion() async throws {
            try await run(passthrough: "1") { yonder in
                try await run(yonder, mode: "r+b", "os.ftruncate(old.fileno(), 2)").expectSuccess()
                try await expectConflictCopy(in: yonder, "fi")
            }
        }

        @Test("OPEN-4: a daemon that is killed has what was written to an old version when it starts again")
        func survivesSIGKILL() async throws {
            try await run(passthrough: "1") { yonder in
                let outcome = try await run(
                    yonder, mode: "r+b",
                    """
                    old.write(b'ours'); old.flush()
                    os.kill(\(try #require(yonder.keeper)), 9)
                    os.kill(int(open(os.path.dirname(os.path.dirname(path)) + '/state/yonderd.lock').read()), 9)
                    os._exit(0)
                    """)
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(await eventually { yonder.daemon.map { kill($0, 0) != 0 } ?? true })
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                try await expectConflictCopy(in: yonder, "ourst")
            }
        }

        @Test("OPEN-4: nor is it lost where the source's file was replaced by another") func replacedInTheSource()
            async throws
        {
            try await run(passthrough: "1") { yonder in
                let outcome = try await run(
                    yonder, mode: "r+b", change: .replaced, "old.write(b'ours'); old.close()")
                #expect(outcome.status == 0, "\(outcome.errors)")
                try await expectConflictCopy(in: yonder, "ourst")
            }
        }

        @Test(
            "CONFLICT-2: a file that was only open for writing does not come back when the source replaces it",
            arguments: ["0", "1"])
        func onlyOpenForWriting(passthrough: String) async throws {
            try await run(passthrough: passthrough) { yonder in
                let outcome = try await run(
                    yonder, mode: "r+b", change: .replaced, before: "old.read()", "old.close()")
                #expect(outcome.status == 0, "\(outcome.errors)")
                try await yonder.expectSent()
                #expect(try yonder.sourceTexts() == ["second, longer"])
                #expect(try await yonder.conflicts().isEmpty)
            }
        }

        @Test(
            "OPEN-7: an append that waits for content goes to the end of the version that comes meanwhile",
            arguments: FarRemote.Kind.installed.filter { $0 != .s3 }, [100_000, 300_000])
        func appendsToTheNewestVersion(kind: FarRemote.Kind, size: Int) async throws {
            try await FarRemote.run(kind) { remote, yonder in
                let folder = try #require(remote.folder).string
                // A fetch gets the old version to its end: the server has the file open.
                let made = try await yonder.run(
                    "head -c 200000 /dev/zero > \"$1\"/f && touch -d '1 hour ago' \"$1\"/f", folder)
                #expect(made.status == 0)
                try await remote.mount(yonder, "--limit-down", "64K", "--poll", "1")
                let outcome = try await yonder.run(
                    """
                    cd "$1" && stat f > /dev/null && { printf end >> f & append=$!
                    # Until bytes of the old version have come.
                    until yonder status --json | tr -d ' \\n' | grep -q '"done":[1-9]'; do sleep 0.05; done
                    tr '\\0' b < /dev/zero | head -c \(size) > "$2"/.new && mv "$2"/.new "$2"/f
                    wait $append && yonder wait > /dev/null && head -c \(size) f | tr -d b | wc -c && tail -c +\(size + 1) f; }
                    """, yonder.mount.string, folder)
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.output == "0\nend")
                #expect(try await yonder.conflicts().isEmpty)
            }
        }

        private func expectConflictCopy(in yonder: Installation, _ text: String) async throws {
            #expect(try await eventually { try await yonder.conflicts()["file"] != nil })
            try await yonder.expectSent()
            let copy = try #require(try await yonder.conflicts()["file"])
            #expect(yonder.sourceText(copy) == text)
            #expect(yonder.sourceText("file") == "second, longer")
            #expect(try await Command.run("cat", yonder[copy]).output == text)
        }
    }
}

extension Installation {
    /// The texts of all files in the source.
    fileprivate func sourceTexts() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: source.string).compactMap { sourceText($0) }.sorted()
    }
}
