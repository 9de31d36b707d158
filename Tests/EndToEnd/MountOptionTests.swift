import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Options for a domain that is known, or mounted already.
    @Suite struct MountOptions {
        private func mount(_ yonder: Installation, _ options: String...) async throws -> Command.Outcome {
            try await Command(
                [Installation.program, "mount", yonder.source.string, yonder.mount.string] + options,
                environment: yonder.environment, seconds: 60
            ).run()
        }

        @Test("CMD-2: what is given replaces what was kept, what is not given stays, and 'none' takes it away")
        func known() async throws {
            try await Installation.run { yonder in
                try yonder.write("x", to: "file")
                try await yonder.mountSource("--cache-limit", "500K", "--read-only", "--ignore", "*.part")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount", "--cache-limit", "300K").status == 0)
                #expect(try await yonder.status().bytes.limit == 300 << 10)
                let refused = try await Command.shell("echo y > \"$1\"", yonder["other"])
                #expect(refused.errors.contains("Read-only"), "\(refused.errors)")
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                try await yonder.yonder("mount", "mount", "--no-read-only", "--cache-limit", "none").expectSuccess()
                #expect(try await yonder.status().bytes.limit == nil)
                try await yonder.shell("echo y > other; echo z > other.part")
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(FileManager.default.fileExists(atPath: yonder.source.appending("other").string))
                #expect(try await yonder.info("other.part").sync == "excluded")
            }
        }

        @Test("CMD-2: on a mounted domain limits, polling, fsync and ignored names hold at once, and are kept")
        func mounted() async throws {
            try await Installation.run { yonder in
                for number in 0..<8 { try yonder.write([UInt8](repeating: 7, count: 100_000), to: "f\(number)") }
                try await yonder.mountSource()
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                #expect(try await yonder.status().bytes.local == 800_000)
                try await mount(yonder, "--cache-limit", "300K", "--ignore", "*.part", "--poll", "3600").expectSuccess()
                #expect(try await eventually { try await yonder.status().bytes.local <= 300 << 10 })
                try await yonder.shell("echo z > a.part")
                #expect(try await yonder.info("a.part").sync == "excluded")
                // fsync that fails while the remote is not to be had shows that it waits for it.
                #expect(try await mount(yonder, "--fsync", "remote").status == 0)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                #expect(try await Command.shell("echo w > \"$1\"; timeout 3 sync \"$1\"", yonder["w"]).status != 0)
                #expect(try await mount(yonder, "--fsync", "local").status == 0)
                #expect(try await Command.shell("timeout 15 sync \"$1\"", yonder["w"]).status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await mount(yonder, "--cache-limit", "none").status == 0)
                #expect(try await yonder.yonder("download", yonder.mount.string).status == 0)
                // Longer than a round over the limit takes.
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(try await yonder.status().bytes.local >= 800_000)
                // What was said while it was mounted counts at the next mount, too.
                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await yonder.status().bytes.limit == nil)
                #expect(try await yonder.info("a.part").sync == "excluded")
                // And a name that is not ignored any more is sent.
                #expect(try await mount(yonder, "--ignore", "").status == 0)
                #expect(try await yonder.yonder("wait").status == 0)
                #expect(FileManager.default.fileExists(atPath: yonder.source.appending("a.part").string))
            }
        }

        @Test("CMD-5: options are shown, and set on a mounted domain and on one that is not")
        func shownAndSet() async throws {
            try await Installation.run { yonder in
                try yonder.write("x", to: "file")
                try await yonder.mountSource("--ignore", "*.part", "--ignore", "a b=c")
                func options() async throws -> [String: String] {
                    let lines = try await yonder.yonder("show", "mount").output.split(separator: "\n")
                    return Dictionary(
                        lines.compactMap { line in
                            line.firstIndex(of: "=").map {
                                (String(line[..<$0]), String(line[line.index(after: $0)...]))
                            }
                        }, uniquingKeysWith: { "\($0),\($1)" })
                }
                #expect(
                    try await options() == [
                        "cache-limit": "none", "cache-time": "none", "poll": "none", "fsync": "local",
                        "read-only": "no", "allow-other": "no", "dev": "no", "suid": "no", "uid": "none", "gid": "none",
                        "umask": "none", "limit-up": "none", "limit-down": "none", "metered": "ignore",
                        "ignore": "*.part,a b=c",
                    ])
                let set = try await yonder.yonder("set", "mount", "cache-limit=300K", "poll=60", "ignore=")
                #expect(set.status == 0 && set.output.contains("cache-limit=307200\n"), "\(set.errors)")
                #expect(try await yonder.status().bytes.limit == 300 << 10)
                #expect(try await options()["ignore"] == nil)
                // All or none.
                let refused = try await yonder.yonder("set", "mount", "cache-limit=1M", "read-only=yes")
                #expect(refused.status == 1 && refused.errors.contains("yonder unmount mount"), "\(refused.errors)")
                #expect(try await yonder.status().bytes.limit == 300 << 10)

                #expect(try await yonder.yonder("unmount", "mount").status == 0)
                #expect(try await yonder.yonder("set", "mount", "read-only=yes", "cache-limit=none").status == 0)
                let report = try await yonder.json(OptionsReport.self, "show", "mount")
                #expect(!report.isMounted && report.source == yonder.source.string)
                #expect(report.options.contains(OptionsReport.Option(name: "read-only", value: "yes")))
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.shell("echo y > \"$1\"", yonder["other"]).errors.contains("Read-only"))
                #expect(try await yonder.status().bytes.limit == nil)

                for (words, message) in [
                    (["much=1"], "much"), (["cache-limit=much"], "cache-limit"), (["read-only=perhaps"], "yes or no"),
                    (["poll"], "OPTION=VALUE"), (["password=secret"], "--password-stdin"), (["poll=0"], "poll"),
                    (["uid=no such user"], "uid"),
                    (["umask=888"], "umask"), (["umask=7777"], "umask"),
                    (["cache-limit=-5"], "for example 10G"), (["umask=9"], "for example 077"),
                    (["cache-time=x"], "for example 30d"), (["uid=no such user"], "by name or number"),
                    (["fsync=x"], "'local' and 'remote'"),
                ] {
                    let outcome = try await Command(
                        [Installation.program, "set", "mount"] + words, environment: yonder.environment
                    ).run()
                    #expect([1, 64].contains(outcome.status) && outcome.errors.contains(message), "\(outcome.errors)")
                    #expect(!outcome.errors.contains("=secret"))
                }
                #expect(try await yonder.yonder("show", "nowhere").status == 69)
            }
        }

        @Test("CMD-5: a domain may have a name that begins with a dash") func dashedName() async throws {
            try await Installation.mounted(options: ["--name=-dash"]) { yonder async throws in
                let set = try await yonder.yonder("set", "--", "-dash", "poll=60")
                #expect(set.status == 0 && set.output.contains("poll=60"), "\(set.errors)")
                try await yonder.yonder("set", "--", "-dash", "poll=0").expectFailure(64, saying: "poll takes a number")
                #expect(try await yonder.yonder("show", "--", "-dash").output == set.output)
            }
        }

        @Test("CMD-6: --all mounts and unmounts every known domain, also when one of them cannot be")
        func allDomains() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let place = try await Self.mountOther(yonder)
                let unmounted = try await yonder.yonder("unmount", "--all")
                #expect(unmounted.status == 0 && unmounted.output.split(separator: "\n").count == 2)
                #expect(try await yonder.yonder("unmount", "--all").output == "")
                // A directory that is not empty is no place for a mount. An ordinary user may not write there (MOUNT-9).
                try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: place)
                try Data().write(to: URL(fileURLWithPath: place + "/in the way"))
                let some = try await yonder.yonder("mount", "--all")
                #expect(some.status == 1 && some.errors.contains("another mount"), "\(some.errors)")
                #expect(some.output.contains("'mount' is mounted on \(yonder.mount)"))
                #expect(try await Command.shell("cat \"$1\"", yonder["file"]).output == "x")
                try FileManager.default.removeItem(atPath: place + "/in the way")
                let rest = try await yonder.yonder("mount", "--all", "--json")
                let summaries = try JSONDecoder().decode([DomainSummary].self, from: Data(rest.outputBytes))
                #expect(summaries.map(\.name) == ["other"])
                for wrong in [["mount"], ["mount", "--all", "--poll", "60"], ["mount", "x", "--all"], ["unmount"]] {
                    #expect(try await yonder.yonder(words: wrong).status == 64, "\(wrong)")
                }
            }
        }

        /// Mounts a second domain, `other`.
        ///
        /// - Returns: the directory.
        @discardableResult
        private static func mountOther(_ yonder: Installation) async throws -> String {
            let other = try yonder.directory.makeDirectory("another source")
            let place = yonder.directory["another mount"].string
            #expect(try await yonder.yonder("mount", other.string, place, "--name", "other").status == 0)
            return place
        }

        @Test("CMD-6: signal --wait without a name looks at every domain, and names each that cannot be asked")
        func signalOfAll() async throws {
            try await Installation.mounted { yonder async throws in
                try await Self.mountOther(yonder)
                for name in ["mount", "other"] { #expect(try await yonder.yonder("pause", name).status == 0) }
                let refused = try await yonder.yonder("signal", "--wait")
                #expect(refused.status == 1)
                for name in ["mount", "other"] {
                    #expect(refused.errors.contains("\(name): the domain is paused"), "\(refused.errors)")
                }
                // The others succeed.
                #expect(try await yonder.yonder("resume", "other").status == 0)
                let some = try await yonder.yonder("signal", "--wait")
                #expect(some.status == 1 && !some.errors.contains("other: "), "\(some.errors)")
            }
        }

        @Test("CMD-6: a command for all domains leaves out one that is unmounted while it runs")
        func unmountedMeanwhile() async throws {
            try await Installation.mounted { yonder async throws in
                try await Self.mountOther(yonder)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await yonder.shell("echo x > file")
                let errors = yonder.directory["errors"].string
                // It waits for the first of both, by name.
                async let waiting = yonder.run("yonder wait --timeout 50 2> \"$1\"", errors)
                #expect(
                    await eventually(within: .seconds(20)) {
                        (try? String(contentsOfFile: errors, encoding: .utf8))?.contains("mount: waits for") == true
                    })
                #expect(try await yonder.yonder("unmount", "other").status == 0)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                let status = try await waiting.status
                let said = try String(contentsOfFile: errors, encoding: .utf8)
                #expect(status == 0 && !said.contains("other"), "\(said)")
            }
        }

        @Test("CMD-6: unmount --all starts no daemon for the mounts of another installation")
        func mountsOfAnotherInstallation() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let state = yonder.directory["other state"].string
                let other = yonder.with([
                    "YONDER_STATE_DIR": state, "YONDER_SOCKET": yonder.directory["other socket"].string,
                ])
                _ = try await other.yonder("unmount", "--all")
                #expect(!FileManager.default.fileExists(atPath: state + "/yonderd.lock"))
                _ = try await other.yonder("shutdown")
                #expect(try await Command.shell("cat \"$1\"", yonder["file"]).output == "x")
            }
        }

        @Test("CMD-7: the log is printed, all of it or its last lines, and followed")
        func log() async throws {
            try await Installation.run { yonder in
                let none = try await yonder.yonder("log")
                #expect(none.status == 0 && none.output == "" && none.errors.contains("there is no log yet"), "\(none)")
                let first = yonder.directory["first"].string
                let waiting = try await BackgroundProgram(
                    ["sh", "-c", #"exec "$0" log -f -n 0 >"$1" 2>"$1.errors""#, Installation.program, first],
                    environment: yonder.environment)
                defer { waiting.kill() }
                func text(_ path: String) -> String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }
                #expect(await eventually { text(first + ".errors").contains("there is no log yet") })
                try await yonder.mountSource()
                // All that the first daemon writes.
                #expect(await eventually { text(first).contains("listens on") })
                let all = try await yonder.yonder("log").output.split(separator: "\n")
                #expect(all.contains { $0.contains("listens on") })
                for count in [0, 1, 2, 1000] {
                    let last = try await yonder.yonder("log", "-n", "\(count)").output.split(separator: "\n")
                    #expect(last == all.suffix(count), "\(count)")
                }
                let followed = yonder.directory["followed"].string
                let follower = try await BackgroundProgram(
                    ["sh", "-c", #"exec "$0" log -f -n 0 >"$1""#, Installation.program, followed],
                    environment: yonder.environment)
                defer { follower.kill() }
                // It may begin after the first of these.
                let hasFollowed = try await eventually(within: .seconds(20)) { () async throws -> Bool in
                    for words in [["unmount", "mount"], ["mount", "mount"]] {
                        #expect(try await yonder.yonder(words: words).status == 0)
                    }
                    return (try? String(contentsOfFile: followed, encoding: .utf8))?.contains("mount") == true
                }
                #expect(hasFollowed && follower.isRunning)
            }
        }

        @Test("CMD-3: what only a new mount can change is refused, says how, and changes nothing")
        func refused() async throws {
            try await Installation.mounted(["file": "x"]) { yonder async throws in
                let outcome = try await mount(yonder, "--read-only", "--cache-limit", "300K")
                #expect(outcome.status == 1)
                #expect(outcome.errors.contains("--read-only"))
                #expect(outcome.errors.contains("yonder unmount mount"))
                for (option, value) in [("--uid", "1"), ("--gid", "1"), ("--umask", "077")] {
                    try await mount(yonder, option, value, "--cache-limit", "300K")
                        .expectFailure(saying: "another \(option); 'yonder unmount mount' first")
                }
                #expect(try await yonder.status().bytes.limit == nil)
                try await yonder.shell("echo y > other")
                // As it is already is fine.
                #expect(try await mount(yonder, "--no-read-only").status == 0)
                for wrong in [["--poll", "0"], ["--cache-limit", "much"], ["--cache-time", "-1"]] {
                    let outcome = try await Command(
                        [Installation.program, "mount", "mount"] + wrong, environment: yonder.environment
                    ).run()
                    #expect(outcome.status == 64, "\(wrong): \(outcome.errors)")
                }
            }
        }
    }
}
