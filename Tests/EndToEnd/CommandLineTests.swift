import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The commands, what they print and how they end.
    @Suite struct CommandLine {
        @Test("mounting twice is fine, and a known domain is mounted where it was") func mountsTwice() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                try await yonder.mountSource()
                let domains = try await yonder.json([DomainSummary].self, "domains")
                #expect(
                    domains == [
                        DomainSummary(
                            name: "mount", source: yonder.source.string, mountpoint: yonder.mount.string,
                            isMounted: true, isToBeMounted: true)
                    ])
                let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                #expect(table.contains("//yonder/mount \(yonder.mount) fuse.yonder "))
                #expect(try await yonder.yonder("unmount", yonder.mount.string).status == 0)
                #expect(try await yonder.json([DomainSummary].self, "domains").first?.isMounted == false)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
            }
        }

        @Test("NAME-2: domains whose names differ only in Unicode normalization are two") func normalizedNames()
            async throws
        {
            try await Installation.run { yonder in
                let names = ["caf\u{E9}", "cafe\u{301}"]
                for (number, name) in names.enumerated() {
                    try yonder.write("\(number)", to: "\(number)/file")
                    let place = yonder.directory["place\(number)"].string
                    try await yonder.yonder(
                        "mount", yonder.source.appending("\(number)").string, place, "--name", name
                    ).expectSuccess()
                    #expect(try await Command.run("cat", place + "/file").output == "\(number)")
                }
                func mounted() async throws -> [Bool] {
                    let domains = try await yonder.json([DomainSummary].self, "domains")
                    return names.map { name in
                        domains.contains { $0.name.utf8.elementsEqual(name.utf8) && $0.isMounted }
                    }
                }
                #expect(try await mounted() == [true, true])
                try await yonder.yonder("unmount", names[0]).expectSuccess()
                #expect(try await mounted() == [false, true])
                #expect(try await yonder.json([DomainSummary].self, "domains").count == 2)
                try await yonder.yonder("unmount", names[1]).expectSuccess()
            }
        }

        @Test("of two domains that are to be mounted on one directory at the same time, one is") func onePlace()
            async throws
        {
            try await Installation.run { yonder in
                for name in ["one", "two"] { try yonder.write(name, to: "\(name)/file") }
                for _ in 0..<3 {
                    async let one = yonder.yonder(
                        "mount", yonder.source.appending("one").string, yonder.mount.string, "--name", "one")
                    async let two = yonder.yonder(
                        "mount", yonder.source.appending("two").string, yonder.mount.string, "--name", "two")
                    let outcomes = try await [one, two]
                    #expect(outcomes.map(\.status).sorted() == [0, 1])
                    #expect(outcomes.contains { $0.errors.contains("is mounted there") })
                    let table = try String(contentsOfFile: "/proc/mounts", encoding: .utf8)
                    let lines = table.split(separator: "\n")
                    #expect(lines.filter { $0.contains(" \(yonder.mount) fuse.yonder ") }.count == 1)
                    #expect(try await yonder.yonder("unmount", yonder.mount.string).status == 0)
                }
            }
        }

        @Test(
            "ACCESS-7: a password in an address is refused before anything is done, and is not printed",
            arguments: [
                ["mount", "webdav://user:secret@127.0.0.1/", "DIR"], ["mount", "https://user:secret@host/", "DIR"],
                ["mount", "sftp://user:secret@host/"],
                ["import", "/", "webdav://user:sec/secret@host/", "DIR", "--yes"],
                ["mount", "s3://bucket", "DIR", "--endpoint", "https://user:secret@host"],
            ])
        func passwords(_ arguments: [String]) async throws {
            try await Installation.run { yonder in
                let words = arguments.map { $0 == "DIR" ? yonder.mount.string : $0 }
                let outcome = try await Command([Installation.program] + words, environment: yonder.environment).run()
                #expect(outcome.status == 64 && outcome.errors.contains("password"), "\(outcome.errors)")
                #expect(!(outcome.output + outcome.errors).contains("secret"))
                #expect(!FileManager.default.fileExists(atPath: yonder.directory["socket"].string))
            }
        }

        @Test(
            "CMD-8: a common mistake is answered with what to type",
            arguments: [
                (["unmuont", "x"], 64, "did you mean 'unmount'?"),
                (["dowload", "x"], 64, "did you mean 'download'?"),
                (["frobnicate"], 64, "'yonder --help' lists all"),
                (["mount", "/", "DIR", "--cache-limit", "10"], 64, "give a unit, as in 10G"),
                (["mount", "https://127.0.0.1:1/a", "DIR"], 1, "did you mean 'webdavs://127.0.0.1:1/a'?"),
                (["mount", "dav://host/a", "DIR"], 1, "did you mean 'webdav://host/a'?"),
                (["mount", "file:///a b", "DIR"], 1, "did you mean '/a b'?"),
            ])
        func mistakes(_ arguments: [String], _ status: Int32, _ advice: String) async throws {
            try await Installation.run { yonder in
                let words = arguments.map { $0 == "DIR" ? yonder.mount.string : $0 }
                let outcome = try await Command([Installation.program] + words, environment: yonder.environment).run()
                #expect(outcome.status == status && outcome.errors.contains(advice), "\(outcome.errors)")
            }
        }

        @Test("MOUNT-8: mount(8) finds a helper that takes options of fstab and of yonder mount")
        func mountHelper() async throws {
            try await Installation.run { yonder in
                try yonder.write("x", to: "file")
                let helper = yonder.directory["mount.fuse.yonder"].string
                try FileManager.default.createSymbolicLink(atPath: helper, withDestinationPath: Installation.program)
                func mount(_ words: String...) async throws -> Command.Outcome {
                    try await Command(
                        [helper, yonder.source.string, yonder.mount.string] + words, environment: yonder.environment,
                        seconds: 30
                    ).run()
                }
                let plain = "defaults,nofail,_netdev,x-systemd.automount,x-gvfs-hide,noatime"
                let fake = try await mount("-f", "-o", "ro")
                #expect(fake.status == 0 && yonder.daemon == nil, "\(fake.errors)")
                for (option, words) in [
                    ("noexec", "'noexec' is not supported"), ("user", "mounts with 'yonder mount'"),
                    ("remount,ro", "'yonder set' changes"), ("frobnicate=5", "Unknown option '--frobnicate'"),
                    ("cache_limit=10", "give a unit"),
                ] {
                    let refused = try await mount("-o", option)
                    #expect(refused.status == 64 && refused.errors.contains(words), "\(option): \(refused.errors)")
                }
                let mounted = try await mount(
                    "-n", "-t", "fuse.yonder", "-o",
                    "\(plain),ro,cache_limit=10G,metered=pause,name=other,ignore=\"*.a,b\"")
                #expect(mounted.status == 0 && mounted.output + mounted.errors == "", "\(mounted.errors)")
                #expect(try await Command.run("cat", yonder["file"]).output == "x")
                #expect(try await Command.run("touch", yonder["new"]).errors.contains("Read-only file system"))
                let shown = try await yonder.yonder("show", "other").output
                for line in ["cache-limit=\(10 << 30)", "ignore=*.a,b", "metered=pause", "read-only=yes"] {
                    #expect(shown.contains(line + "\n"), "\(shown)")
                }
                // As 'mount -a' does it.
                #expect(try await mount("-o", "\(plain),ro,name=other").status == 0)
            }
        }

        @Test("CMD-12: what of the configuration file has no effect is told by mount and status, and the rest applies")
        func configuration() async throws {
            try await Installation.run { yonder in
                let file = yonder.directory["config.toml"].string
                let text = "[materialization]\ndenny = [\"x\"]\n[ignore]\nnames = [\"*.own\"]\n[ignored]\nnames = []\n"
                try text.write(toFile: file, atomically: true, encoding: .utf8)
                let words = ["mount", yonder.source.string, yonder.mount.string]
                func mount() async throws -> String {
                    let outcome = try await Command(
                        [Installation.program] + words, environment: yonder.environment, seconds: 30
                    ).run()
                    #expect(outcome.status == 0)
                    return outcome.errors
                }
                #expect(
                    try await mount() == """
                        yonder: warning: '\(file)': 'ignored' means nothing, and is ignored
                        yonder: warning: '\(file)': 'denny' in [materialization] means nothing, and is ignored

                        """)
                #expect(try await yonder.yonder("status").output.contains("'denny' in [materialization] means nothing"))
                try "x".write(toFile: yonder["file.own"], atomically: false, encoding: .utf8)
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(!FileManager.default.fileExists(atPath: yonder.source.appending("file.own").string))
                #expect(try await yonder.yonder("shutdown").status == 0)
                try "[ignore]\nnames = 5\n".write(toFile: file, atomically: true, encoding: .utf8)
                let mistake = "'ignore.names' has a value of another type than it takes"
                #expect(
                    try await mount()
                        == "yonder: warning: '\(file)': what it said before applies, and nothing new: \(mistake)\n")
                // What was never to be sent is not sent because of a mistake.
                try "x".write(toFile: yonder["other.own"], atomically: false, encoding: .utf8)
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(!FileManager.default.fileExists(atPath: yonder.source.appending("file.own").string))
                #expect(!FileManager.default.fileExists(atPath: yonder.source.appending("other.own").string))
                #expect(try await yonder.yonder("shutdown").status == 0)
                let many = (1...7).map { "[unknown\($0)]\n" }.joined()
                try many.write(toFile: file, atomically: true, encoding: .utf8)
                let told = try await mount()
                #expect(told.contains("'unknown5'") && !told.contains("'unknown6'"), "\(told)")
                #expect(told.hasSuffix("yonder: 2 more warnings: see 'yonder status'\n"), "\(told)")
                #expect(try await yonder.yonder("shutdown").status == 0)
                try FileManager.default.removeItem(atPath: file)
                #expect(try await mount() == "")
            }
        }

        @Test(
            "CMD-8: TLS to a port without TLS is told so, in words and without places of the build",
            .enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed"))
        func plainPort() async throws {
            let server = try await DAVServer.start(.apache)
            try await withCleanUp({ await server.stop() }) {
                try await Installation.run { yonder in
                    let source = server.source.replacing("webdav://", with: "webdavs://")
                    let outcome = try await yonder.yonder("mount", source, yonder.mount.string)
                    #expect(outcome.status == 1)
                    #expect(
                        outcome.errors.contains("does not speak TLS (wrong version number); 'webdav://'")
                            && !outcome.errors.contains(".cc"), "\(outcome.errors)")
                }
            }
        }

        @Test("CMD-9: a result that cannot be written is a failure, unless its reader has left") func fullOutput()
            async throws
        {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                #expect(try await Command.run("ls", yonder.mount.string).output == "file\n")
                let full = try await yonder.run("yonder ls \"$1\" > /dev/full", yonder.mount.string)
                #expect(full.status == 1 && full.errors.contains("cannot be written"), "\(full.errors)")
                let closed = try await yonder.run("yonder ls \"$1\" | true", yonder.mount.string)
                #expect(closed.status == 0 && closed.errors == "", "\(closed.errors)")
            }
        }

        @Test(
            "CMD-9: help, versions and completions that cannot be written are failures",
            arguments: [
                "", " --help", " --version", " ls --help", " help ls", " --generate-completion-script bash",
                "d --help",
            ])
        func fullHelp(words: String) async throws {
            let full = try await Command.shell("'\(Installation.program)'\(words) > /dev/full")
            #expect(full.status == 1 && full.errors.contains("the output cannot be written"), "\(full.errors)")
            let whole = try await Command.shell("'\(Installation.program)'\(words)")
            #expect(whole.status == 0 && whole.errors == "" && !whole.output.isEmpty, "\(whole.errors)")
            let closed = try await Command.shell("'\(Installation.program)'\(words) | true")
            #expect(closed.errors == "", "\(closed.errors)")
        }

        @Test("CMD-10: ls lists the working directory by default, by name") func listsTheWorkingDirectory() async throws
        {
            try await Installation.run { yonder in
                for name in ["b", "C", "a", "d/e"] { try yonder.write(name, to: name) }
                try await yonder.mountSource()
                #expect(try await Command.run("ls", yonder.mount.string).status == 0)
                let listing = try await yonder.run("cd \"$1\" && yonder ls | awk '{print $NF}'", yonder.mount.string)
                #expect(listing.output == "C\na\nb\nd/\n", "\(listing.errors)")
                // More than one part, in another order than they came here.
                try await yonder.shell("for i in $(seq 1100 -1 1); do : > d/$i; done")
                let large = try await yonder.run("yonder ls -0 \"$1\" | tr '\\0' '\\n' | LC_ALL=C sort -c", yonder["d"])
                #expect(large.status == 0, "\(large.errors)")
                #expect(try await yonder.run("yonder ls -0 \"$1\" | tr -dc '\\0' | wc -c", yonder["d"]).line == "1101")
            }
        }

        @Test("CMD-17: a domain is found by its name also where the working directory was removed")
        func removedDirectory() async throws {
            try await Installation.mounted { yonder async throws in
                let line = "mkdir \"$1\"; cd \"$1\"; rmdir \"$1\"; yonder status "
                let gone = yonder.directory["gone"].string
                try await yonder.run(line + "mount", gone).expectSuccess()
                try await yonder.run(line + "nosuch", gone).expectFailure(69, saying: "no such domain")
                try await yonder.run(line + ".", gone).expectFailure(64, saying: "the working directory is gone")
            }
        }

        @Test("CMD-17: a word that is neither a domain nor an item is not taken for a path in the working directory")
        func mistypedNames() async throws {
            try await Installation.mounted(["file": "x", "d/e": "x"]) { yonder async throws in
                #expect(try await yonder.run("ls \"$1\" >/dev/null", yonder.mount.string).status == 0)
                for command in [
                    "unmount nosuch", "pause nosuch", "set nosuch poll=5", "show nosuch", "signal nosuch",
                    "wait nosuch", "check nosuch", "mount nosuch",
                    "trash empty nosuch", "remove nosuch --keep none --force", "remove d/../nosuch --keep none --force",
                ] {
                    let outcome = try await yonder.run("cd \"$1\" && yonder \(command)", yonder.mount.string)
                    #expect(
                        outcome.status != 0 && outcome.errors.contains("no such domain"),
                        "\(command): \(outcome.errors)")
                }
                #expect(try await yonder.status().connection == .online)
                for path in ["file", ".", "./file", "d/unlisted", "\"$1\"/file"] {
                    let outcome = try await yonder.run("cd \"$1\" && yonder signal \(path)", yonder.mount.string)
                    #expect(outcome.status == 0, "\(path): \(outcome.errors)")
                }
                // The name of a mount point is a path, also where nothing is mounted.
                #expect(try await yonder.run("cd \"$1\"/.. && yonder unmount mount", yonder.mount.string).status == 0)
                #expect(try await yonder.run("cd \"$1\" && yonder mount nosuch", yonder.mount.string).status != 0)
            }
        }

        @Test("CMD-18: what goes on until Ctrl-C ends when its reader has gone") func closedPipes() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                for command in ["events", "status --watch", "log -f"] {
                    let outcome = try await yonder.run(
                        """
                        (yonder \(command); echo ended >"$1.ended") | head -n 1 >/dev/null &
                        for i in $(seq 100); do
                            [ -e "$1.ended" ] && break
                            echo $i | tee "$2/$i" >>"$YONDER_STATE_DIR/yonderd.log"; sleep 0.1
                        done
                        cat "$1.ended"; rm -f "$1.ended"
                        """, yonder.directory["pipe"].string, yonder.mount.string)
                    #expect(outcome.line == "ended", "\(command): \(outcome.errors)")
                }
            }
        }

        @Test("what cannot be mounted is refused with the reason") func refusesToMount() async throws {
            try await Installation.run { yonder in
                let full = try yonder.directory.makeDirectory("full")
                _ = try yonder.directory.makeFile("full/thing", [1])
                func refusal(_ arguments: String...) async throws -> String {
                    let outcome = try await Command(
                        [Installation.program, "mount"] + arguments, environment: yonder.environment
                    ).run()
                    #expect(outcome.status == 1)
                    return outcome.errors
                }
                #expect(try await refusal(yonder.source.string, full.string).contains("not empty"))
                #expect(try await refusal("/no/such/folder", yonder.mount.string).contains("no such folder"))
                let inside = yonder.source.appending("inside").string
                #expect(try await refusal(yonder.source.string, inside).contains("would contain itself"))
                // What was made for a mount that did not come about is not left behind.
                let unmade = yonder.directory["unmade"].string
                #expect(try await refusal("tar:///no/such.tar", unmade).contains("there is no '/no/such.tar'"))
                #expect(!FileManager.default.fileExists(atPath: unmade))
                let line = "echo secret | \"$1\" mount \"$2\" \"$3\" --password-stdin"
                try await Command(
                    ["sh", "-c", line, "sh", Installation.program, yonder.source.string, unmade],
                    environment: yonder.environment
                ).run().expectFailure(saying: "--password-stdin is for")
                #expect(try await yonder.json([DomainSummary].self, "domains") == [])
                try await yonder.mountSource()
                let other = try yonder.directory.makeDirectory("other source")
                #expect(
                    try await refusal(other.string, yonder.directory["x"].string, "--name", "mount")
                        .contains("another source"))
                #expect(
                    try await refusal(yonder.source.string, yonder.directory["y"].string, "--name", "mount")
                        .contains("already"))
                // What is made in a mount would go to its remote.
                #expect(try await refusal(other.string, yonder["nested/deep"]).contains("the mount of another domain"))
                #expect(try await Command.run("ls", yonder.mount.string).output == "")
                let file = try yonder.directory.makeFile("file", [1])
                let below = try await refusal(other.string, file.string + "/x")
                #expect(below.contains(file.string + "/x") && below.contains("Not a directory"), "\(below)")
            }
        }

        @Test("every kind of failure has its exit status") func exitStatus() async throws {
            try await Installation.run { yonder in
                #expect(try await yonder.yonder("status").status == 69)
                #expect(try await yonder.yonder("info").status == 64)
                #expect(try await yonder.yonder("frobnicate").status == 64)
                try await yonder.mountSource()
                #expect(try await yonder.yonder("info", "/etc/passwd").status == 69)
                let missing = try await yonder.yonder("info", yonder["missing"])
                #expect(missing.status == 1)
                #expect(missing.errors.hasPrefix("yonder: \(yonder["missing"]): "), "\(missing.errors)")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("unmount", "mount").status == 69)
            }
        }

        @Test("status shows the daemon, and ls distinguishes an unlisted directory from an empty one")
        func tellsStates() async throws {
            try await Installation.mounted { yonder async throws in
                let report = try await yonder.json(StatusReport.self, "status")
                #expect(report.version == Version.current)
                #expect(report.daemon.worker == yonder.daemon && report.daemon.restarts == 0)
                let unlisted = try await yonder.yonder("ls", yonder.mount.string)
                #expect(unlisted.status == 0 && unlisted.errors.contains("not been listed"), "\(unlisted.errors)")
                #expect(try await Command.run("ls", yonder.mount.string).output == "")
                let empty = try await yonder.yonder("ls", yonder.mount.string)
                #expect(empty.status == 0 && empty.errors == "" && empty.output == "")
            }
        }

        @Test("a diagnostic about a name with terminal escapes and line ends is one line without control characters")
        func diagnosticsAreEscaped() async throws {
            try await Installation.mounted { yonder async throws in
                let outcome = try await yonder.yonder("info", yonder["red\u{1B}[31m\nline"])
                #expect(outcome.status == 1)
                #expect(outcome.errors.hasPrefix("yonder: \(yonder["red\\x{1b}[31m\\nline"]): "), "\(outcome.errors)")
                #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome.errors)")
                let refused = try await yonder.yonder("evict", yonder["\u{1B}]0;x\u{07}"], yonder["\u{9B}2J"])
                #expect(refused.status == 1)
                let controls = refused.errors.unicodeScalars.filter {
                    $0 != "\n" && ($0.value < 0x20 || (0x7F...0x9F).contains($0.value))
                }
                #expect(controls.isEmpty && refused.errors.split(separator: "\n").count == 2, "\(refused.errors)")
            }
        }

        @Test("the name of a domain that is not mounted is not taken for a path in another domain's mount")
        func namesTakePrecedenceOverPaths() async throws {
            try await Installation.mounted(["other/file": "x"]) { yonder async throws in
                let second = try yonder.directory.makeDirectory("second source")
                let mounted = try await yonder.yonder(
                    "mount", second.string, yonder.directory["second"].string, "--name", "other")
                #expect(mounted.status == 0, "\(mounted.errors)")
                #expect(try await yonder.yonder("unmount", "other").status == 0)
                for command in ["status", "pending", "signal", "conflicts", "wait"] {
                    let outcome = try await yonder.run("cd \"$1\" && yonder \(command) other", yonder.mount.string)
                    #expect(
                        outcome.status == 69 && outcome.errors.contains("not mounted"), "\(command): \(outcome.errors)")
                    let path = try await yonder.run(
                        "cd \"$1\" && ls > /dev/null && yonder \(command) ./other", yonder.mount.string)
                    #expect(path.status == 0, "\(command): \(path.errors)")
                }
            }
        }

        @Test("ERROR-4: ls never materializes, info has every field, paths may be relative or lead over links")
        func looksWithoutTouching() async throws {
            try await Installation.mounted(["dir/sub/file": "text"]) { yonder async throws in
                #expect(try await yonder.json([ItemInformation].self, "ls", "-R", yonder.mount.string) == [])
                #expect(try await yonder.info("").content == "dataless")
                _ = try await Command.run("ls", yonder["dir"])
                let items = try await yonder.json([ItemInformation].self, "ls", "-R", yonder.mount.string)
                #expect(items.map(\.path) == [yonder["dir"], yonder["dir/sub"]])
                #expect(items.map(\.content) == ["materialized", "dataless"])
                let unknown = try await yonder.yonder("info", yonder["dir/sub/file"])
                #expect(unknown.errors.contains("has not been listed"))

                try FileManager.default.createSymbolicLink(
                    atPath: yonder.directory["link"].string, withDestinationPath: "mount/dir")
                let text = try await Command(
                    [
                        "sh", "-c", "cd \"$1\" && \"$2\" info --json ../source/../link/sub", "sh", yonder.source.string,
                        Installation.program,
                    ], environment: yonder.environment
                ).run().outputBytes
                let fields = try #require(try JSONSerialization.jsonObject(with: Data(text)) as? [String: Any])
                #expect(
                    Set(fields.keys) == [
                        "path", "inode", "identifier", "kind", "size", "modified", "content", "localBytes", "sync",
                        "pendingFields", "policy", "effectivePolicy", "contentVersion", "metadataVersion", "isTrashed",
                        "trashParent", "error",
                    ])
                #expect(fields["path"] as? String == yonder["dir/sub"])
                #expect(fields["kind"] as? String == "directory")
                #expect(fields["error"] is NSNull)
            }
        }

        @Test("EVICT-10: download materializes what was never listed; status counts it") func downloads() async throws {
            try await Installation.run { yonder in
                for number in 0..<40 {
                    try yonder.write(Array(repeating: 1, count: 1000), to: "dir/\(number % 4)/\(number)")
                }
                try await yonder.mountSource()
                let summary = try await yonder.json(TransferSummary.self, "download", yonder["dir/2"], yonder["dir/3"])
                #expect(summary.refusals == [])
                #expect(summary.bytes == 20_000)
                let status = try await yonder.status()
                #expect(status.items.materializedFiles == 20)
                #expect(status.bytes == DomainStatus.Bytes(local: 20_000, limit: nil))
                #expect(status.connection == .online)
                #expect(status.pending == DomainStatus.Pending(items: 0, bytes: 0))
                let both = try await yonder.yonder("download", yonder["dir/2"], yonder["missing"])
                #expect(both.status == 1)
                #expect(both.errors.hasPrefix("yonder: \(yonder["missing"]): "))
            }
        }
    }
}
