import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The daemon is killed again and again while programs work on the mount.
    @Suite(.tags(.long), .enabled(if: canContinueMounts, "Linux before 6.9 does not send unanswered requests again"))
    struct Takeover {
        @Test(
            "TAKEOVER-1, TAKEOVER-2, TAKEOVER-3: programs on a folder do not notice that the daemon is killed",
            .timeLimit(.minutes(70)), arguments: [true, false])
        func onAFolder(withPassthrough hasPassthrough: Bool) async throws {
            try await Installation.run { yonder in
                let yonder = yonder.with(["YONDER_PASSTHROUGH": hasPassthrough ? "1" : "0"])
                try await yonder.mountSource()
                try await work(on: yonder, seconds: hasTimeForLongTests ? 1_200 : 30)
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
                try await remote.mount(yonder)
                try await work(on: yonder, seconds: hasTimeForLongTests ? 1_200 : 30)
                if let folder = remote.folder { try await expectSame(yonder, folder) }
            }
        }

        @Test("TAKEOVER-5: when the keeper is killed as well, the next mount command brings all back")
        func survivesTheKeeper() async throws {
            try await Installation.run { yonder in
                try await yonder.mountSource()
                try await yonder.shell("for i in $(seq 50); do echo $i > $i; done; sync")
                _ = try await yonder.killDaemonAndKeeper()
                #expect(try await Command.run("ls", yonder.mount.string).status != 0)
                #expect(try await yonder.yonder("mount", "mount").status == 0)
                #expect(try await Command.shell("cat \"$1\"/* | wc -l", yonder.mount.string).line == "50")
                #expect(try await yonder.yonder("wait", "--timeout", "30").status == 0)
                try await expectSame(yonder, yonder.source)
            }
        }

        // MARK: -

        /// Works on the mount, and kills the daemon at random moments meanwhile.
        ///
        /// - Parameter works: of `unbroken.py`; all of them if there are none.
        private func work(on yonder: Installation, _ works: [String] = [], seconds: Int) async throws {
            let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("Programs/takeover/unbroken.py").path
            let program = Task {
                try await Command(
                    ["python3", script, yonder.mount.string, String(seconds)] + works, seconds: seconds + 300
                ).run()
            }
            let kills = Task {
                var kills = 0
                while !Task.isCancelled {
                    try? await Task.sleep(for: .milliseconds(Int.random(in: 200...3_000)))
                    guard !Task.isCancelled, let daemon = yonder.daemon else { continue }
                    if try await Command.run("kill", "-9", String(daemon)).status == 0 { kills += 1 }
                }
                return kills
            }
            let outcome = try await program.value
            kills.cancel()
            #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
            #expect(try await kills.value > seconds / 10)
            #expect(try await yonder.yonder("wait", "--timeout", "120", seconds: 130).status == 0)
            #expect(try await yonder.json([ConflictCopy].self, "conflicts").isEmpty)
            let warnings = try await yonder.status().warnings
            #expect(warnings.isEmpty, "\(warnings)")
        }

        private func expectSame(_ yonder: Installation, _ folder: FilePath) async throws {
            let difference = try await Command.run(
                "diff", "-r", "-x", ".DAV", "-x", ".yonder-partial-*", yonder.mount.string, folder.string, seconds: 60)
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
