import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The daemon is killed again and again while programs work on the mount.
    @Suite(.tags(.long), .enabled(if: canContinueMounts, "Linux before 6.9 does not send unanswered requests again"))
    struct Takeover {
        /// With and without passthrough; one of both where YONDER_PASSTHROUGH says which.
        private static let passthroughs =
            switch ProcessInfo.processInfo.environment["YONDER_PASSTHROUGH"] {
            case "0": [false]
            case .some: [true]
            case nil: [true, false]
            }

        @Test(
            "TAKEOVER-1, TAKEOVER-2, TAKEOVER-3: programs on a folder do not notice that the daemon is killed",
            .timeLimit(.minutes(70)), arguments: passthroughs)
        func onAFolder(withPassthrough hasPassthrough: Bool) async throws {
            try await Installation.run { yonder in
                let yonder = yonder.with(["YONDER_PASSTHROUGH": hasPassthrough ? "1" : "0"])
                let hash = try await Self.makeLargeFile(yonder.source.appending("large").string)
                try await yonder.mountSource()
                try await work(on: yonder.with(["LARGE": hash]), seconds: hasTimeForLongTests ? 1_200 : 30)
                try await expectSame(yonder, yonder.source)
            }
        }

        @Test(
            "TAKEOVER-1: programs on a remote do not notice that the daemon is killed",
            .timeLimit(.minutes(70)),
            // Over SFTP the programs make too few turns: a login takes as long as the daemon lives here.
            arguments: FarRemote.Kind.installed.filter { $0 != .sftp })
        func onARemote(_ kind: FarRemote.Kind) async throws {
            try await FarRemote.run(kind) { remote, yonder async throws in
                let large = (remote.folder ?? yonder.source).appending("large").string
                let hash = try await Self.makeLargeFile(large)
                if let store = remote.store {
                    let stored = try await store.ask(
                        "ask -T '\(large)' \"$at/bucket/top/large\"", seconds: 600)
                    try #require(stored.status == 0, "\(stored.errors)")
                }
                try await remote.mount(yonder)
                // Neither remote has a trash.
                try await work(
                    on: yonder.with(["LARGE": hash]), except: ["trashed"], seconds: hasTimeForLongTests ? 1_200 : 30)
                if let folder = remote.folder { try await expectSame(yonder, folder) }
            }
        }

        @Test(
            "TAKEOVER-1, TAKEOVER-2: programs on an ordinary user's mount do not notice that the daemon is killed",
            .timeLimit(.minutes(70)),
            .ordinaryUser)
        func ofAnOrdinaryUser() async throws {
            try await OrdinaryUser.run { user in
                let hash = try await Self.makeLargeFile(user.yonder.source.appending("large").string)
                let owned = try await Command.run("chown", "-R", "65534:65534", user.yonder.source.string)
                try #require(owned.status == 0, "\(owned.errors)")
                let mounted = try await user.shell("yonder mount \"$SOURCE\" \"$MOUNT\"")
                try #require(mounted.status == 0, "\(mounted.errors)")
                let yonder = user.yonder.with([
                    "LARGE": hash, "TMPDIR": user.yonder.directory.path.string, "PATH": "/usr/bin:/bin",
                ])
                try await work(on: yonder, as: OrdinaryUser.prefix, seconds: hasTimeForLongTests ? 1_200 : 30)
                for process in [yonder.daemon, yonder.keeper] {
                    let owner = try await Command.run("stat", "-c", "%u", "/proc/\(try #require(process))")
                    #expect(owner.line == "65534")
                }
                try await expectSame(yonder, yonder.source, as: OrdinaryUser.prefix)
            }
        }

        @Test("TAKEOVER-5: when the keeper is killed as well, the next mount command brings all back")
        func survivesTheKeeper() async throws {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell("for i in $(seq 50); do echo $i > $i; done; sync")
                _ = try await yonder.killDaemonAndKeeper()
                // A call that reaches the connection before the kernel has ended it gets ECONNABORTED.
                let first = try await Command.run("ls", yonder.mount.string)
                let words = ["Software caused connection abort", "Transport endpoint is not connected"]
                #expect(first.status != 0 && words.contains { first.errors.contains($0) }, "\(first.errors)")
                let isDead = try await eventually {
                    try await Command.run("ls", yonder.mount.string).errors.contains(words[1])
                }
                #expect(isDead)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.shell("cat \"$1\"/* | wc -l", yonder.mount.string).line == "50")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                try await expectSame(yonder, yonder.source)
            }
        }

        // MARK: -

        /// Works on the mount, and kills the daemon at random moments meanwhile.
        ///
        /// - Parameters:
        ///   - user: the words that run a program as another user.
        ///   - exceptions: the works of `unbroken.py` that are left out.
        private func work(
            on yonder: Installation, as user: [String] = [], except exceptions: [String] = [], seconds: Int
        ) async throws {
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("Programs/takeover/unbroken.py").path
            let program = Task {
                try await Command(
                    user + ["python3", script, yonder.mount.string, String(seconds)] + exceptions.map { "-" + $0 },
                    environment: yonder.environment.merging([
                        "YONDER": Installation.program, "FILES": hasTimeForLongTests ? "5000" : "200",
                    ]) { $1 },
                    seconds: seconds + 300
                ).run()
            }
            let kills = Task {
                var kills = 0
                let end = ContinuousClock.now + .seconds(seconds)
                // Afterwards the works verify what they left, and what is pending is uploaded.
                while !Task.isCancelled, .now < end {
                    try? await Task.sleep(for: .milliseconds(Int.random(in: 200...3_000)))
                    guard !Task.isCancelled, let daemon = yonder.daemon else { continue }
                    if try await Command.run("kill", "-9", String(daemon)).status == 0 { kills += 1 }
                }
                return kills
            }
            let outcome = try await program.value
            kills.cancel()
            func log() async throws -> String {
                try await Command.run("cat", yonder.directory["state/yonderd.log"].string).output
            }
            if outcome.status != 0 {
                Issue.record("\(outcome.output)\n\(outcome.errors)\n\(try await log())")
            }
            #expect(try await kills.value > seconds / 10)
            func ask(_ words: String...) async throws -> Command.Outcome {
                try await Command(
                    user + [Installation.program] + words, environment: yonder.environment,
                    seconds: hasTimeForLongTests ? 1_510 : 250
                ).run()
            }
            try await ask("wait", "--timeout", hasTimeForLongTests ? "1500" : "240").expectSuccess()
            let conflicts = try await ask("conflicts", "--json")
            let copies = try JSONDecoder().decode([ConflictCopy].self, from: Data(conflicts.outputBytes))
            let told = try await Command.run("grep", "conflict", yonder.directory["state/yonderd.log"].string)
            #expect(copies.isEmpty, "\(copies) \(told.output)")
            let status = try await ask("status", "--json")
            let report = try JSONDecoder().decode(StatusReport.self, from: Data(status.outputBytes))
            #expect(report.domains.count == 1)
            #expect(report.domains.flatMap(\.warnings) == [])
            let recovered = try await Command.shell(
                "find \"$1\" -path '*/recovered/*' -type f -ls -exec head -c 200 {} \\;",
                yonder.directory["state/domains"].string)
            if recovered.output != "" {
                Issue.record("\(recovered.output)\(try await log())")
            }
        }

        /// Makes a file that takes a while to download, and returns its SHA-256 in hexadecimal.
        static func makeLargeFile(_ path: String) async throws -> String {
            let made = try await Command.shell(
                "head -c \"$2\" /dev/urandom > \"$1\" && sha256sum < \"$1\"", path, hasTimeForLongTests ? "4G" : "64M",
                seconds: 300)
            try #require(made.status == 0, "\(made.errors)")
            return String(made.output.prefix(64))
        }

        private func expectSame(_ yonder: Installation, _ folder: FilePath, as user: [String] = []) async throws {
            let difference = try await Command(
                user + ["diff", "-r", "-x", ".DAV", "-x", ".yonder-partial-*", "-x", ".Trash-*", yonder.mount.string]
                    + [folder.string], seconds: 600
            ).run()
            #expect(difference.status == 0, "\(difference.output.prefix(2_000))")
        }
    }
}

/// Whether the kernel sends unanswered requests again: Linux 6.9 and later.
let canContinueMounts: Bool = {
    let version = (try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)) ?? ""
    let numbers = version.split { !$0.isNumber }.prefix(2).compactMap { Int($0) }
    return numbers.count == 2 && (numbers[0], numbers[1]) >= (6, 9)
}()
