import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Real servers behind lines that are cut, stalled, reset and refused.
    @Suite(.tags(.long)) struct BadLines {
        @Test(
            "PATH-20: whatever the line does, nothing hangs, nothing is lost or mixed, and all is the same in the end",
            .timeLimit(.minutes(25)), arguments: FarRemote.Kind.installed)
        func mixedLoad(on kind: FarRemote.Kind) async throws {
            let seconds = FaultRun.seconds ?? (hasTimeForLongTests ? 600 : 20)
            let seed = FaultRun.seed(usually: 4)
            try await FarRemote.run(kind) { remote, yonder async throws in
                try await remote.mount(yonder)
                let mirror = try yonder.directory.makeDirectory("mirror")
                try await run(
                    "mixed_load.py", remote, yonder, seconds: seconds + 800,
                    [yonder.mount.string, mirror.string, "--control", String(remote.relay.control)]
                        + ["--seconds", String(seconds), "--seed", String(seed)] + (kind == .webDAV ? ["--page"] : [])
                        + (FaultRun.isKilling || kind == .sftp ? ["--kill"] : []))
            }
        }

        @Test(
            "PATH-8: what arrived, and whose answer did not, is known again, whatever was done with it meanwhile",
            .timeLimit(.minutes(2)), arguments: FarRemote.Kind.installed.filter(\.isHTTP), ["MOVE", "PUT"])
        func lostAnswers(on kind: FarRemote.Kind, to method: String) async throws {
            try await loseAnswers(on: kind, to: method, isKilled: false)
        }

        @Test(
            "PATH-10: what arrived, and whose answer did not before the daemon was killed, is known again, too",
            .timeLimit(.minutes(2)), arguments: FarRemote.Kind.installed.filter(\.isHTTP), ["MOVE", "PUT"])
        func lostAnswersAndAKill(on kind: FarRemote.Kind, to method: String) async throws {
            try await loseAnswers(on: kind, to: method, isKilled: true)
        }

        private func loseAnswers(on kind: FarRemote.Kind, to method: String, isKilled: Bool) async throws {
            // A bucket has no MOVE: publishing and renaming are PUTs.
            if kind == .s3, method == "MOVE" { return }
            try await FarRemote.run(kind) { remote, yonder async throws in
                try await remote.mount(yonder)
                try await yonder.shell(
                    "echo old > moved; echo old > rewritten; echo old > gone; mkdir dir; echo x > dir/x")
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                // What is new and small is a PUT, what replaces something and what is renamed a MOVE.
                try await remote.relay.tell("lose \(method)")
                try await yonder.shell(
                    """
                    echo new > removed; echo new > renamed; echo new > appended; echo newer > rewritten; echo newer > gone
                    mv moved was-moved
                    """)
                // Moved away the moment it is there.
                try await yonder.shell("echo new > quick")
                #expect(try await eventually(within: .seconds(20)) { try await remote.has("quick") })
                try await yonder.shell("mv quick dir/was-quick")
                // All of it is tried, and nothing is known to have arrived.
                _ = try await yonder.yonder("wait", "--timeout", "8")
                if isKilled {
                    try await yonder.killDaemon()
                    try await remote.mount(yonder)
                }
                try await yonder.shell(
                    """
                    rm removed gone; mv renamed was-renamed; echo more >> appended; echo most >> rewritten
                    mv was-moved moved-again; mv dir dir-again
                    """)
                try await remote.relay.tell("heal")
                #expect(try await yonder.yonder("wait", "--timeout", "50").status == 0)
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                let found = try await yonder.shell("find . -type f | sort; cat appended rewritten")
                #expect(
                    found
                        == "./appended\n./dir-again/was-quick\n./dir-again/x\n./moved-again\n./rewritten\n./was-renamed\nnew\nmore\nnewer\nmost\n"
                )
                #expect(try await yonder.yonder("conflicts").output == "")
            }
        }

        @Test(
            "CONFLICT-6: two mounts of one remote come to be the same, and keep what both wrote",
            .timeLimit(.minutes(15)),
            // SFTP has no preconditions: see SFTP-2.
            arguments: FarRemote.Kind.installed.filter { $0 != .sftp })
        func twoMounts(on kind: FarRemote.Kind) async throws {
            let rounds = hasTimeForLongTests ? 70 : 7
            try await FarRemote.run(kind) { remote, yonder async throws in
                let other = yonder.directory["other"].string
                try await remote.mount(yonder)
                try await remote.mount(yonder, at: other)
                do {
                    let seed = FaultRun.seed(usually: 1)
                    try await run(
                        "two_mounts.py", remote, yonder, seconds: 90 + rounds * 10,
                        [yonder.mount.string, other, "--rounds", String(rounds), "--seed", String(seed)])
                } catch {
                    _ = try? await Command.run("umount", "-l", other)
                    throw error
                }
                #expect(try await yonder.yonder("unmount", other).status == 0)
            }
        }

        @Test(
            "S3-8: an upload to a bucket that is cut off by SIGKILL goes on where it was", .timeLimit(.minutes(15)))
        func killedUpload() async throws {
            // Sent in parts of 16 MiB.
            let megabytes = hasTimeForLongTests ? 3072 : 160
            try await FarRemote.run(.s3) { remote, yonder async throws in
                try await remote.mount(yonder)
                _ = try await Command.run("ls", yonder.mount.string)
                let before = try await remote.relay.bytesSent()
                try await yonder.shell(
                    "head -c \(megabytes)M /dev/urandom > large; sync large", seconds: 300)
                let half = before + megabytes << 19
                let isHalfWay = try await eventually(within: .seconds(300)) {
                    try await remote.relay.bytesSent() >= half
                }
                #expect(isHalfWay)
                try await yonder.killDaemon()
                let sent = try await remote.relay.bytesSent() - before
                #expect(sent < megabytes << 20 - 16 << 20, "it was not interrupted: \(sent)")
                try await remote.mount(yonder)
                #expect(try await yonder.yonder("wait", "--timeout", "580", seconds: 600).status == 0)
                let all = try await remote.relay.bytesSent() - before
                // What was under way when it was killed, in six parts at once, and what goes around the bytes.
                #expect(all < megabytes << 20 + 7 * 16 << 20 + 1 << 20, "\(all) bytes for \(megabytes) MiB")
                let there = try await remote.store?.ask("ask \"$at/bucket/top/large\" | sha256sum")
                let here = try await Command.shell("sha256sum < \"$1\"", yonder["large"], seconds: 100)
                #expect(there?.output == here.output)
            }
        }

        private func run(
            _ program: String, _ remote: FarRemote, _ yonder: Installation, seconds: Int, _ arguments: [String]
        ) async throws {
            let words = ["python3", Relay.programs + "/" + program] + arguments + ["--yonder", Installation.program]
            let outcome = try await Command(
                words + remote.place, environment: yonder.environment, seconds: seconds
            ).run()
            #expect(outcome.status == 0, "\(outcome.output)\n\(outcome.errors)")
        }
    }
}
