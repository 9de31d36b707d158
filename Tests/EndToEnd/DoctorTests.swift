import Control
import Foundation
@testable import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import yonder

@Suite struct MachineExaminations {
    private func findings(
        kernel: String = "6.12.0-1-amd64", hasDevice: Bool = true, fusermount: Int? = 0o4755, isRoot: Bool = false
    ) throws -> [Finding] {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        for (name, text) in [("proc/sys/kernel/osrelease", kernel + "\n")] + (hasDevice ? [("dev/fuse", "")] : []) {
            let path = directory[name]
            try FileManager.default.createDirectory(
                atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: URL(fileURLWithPath: path.string))
        }
        if let fusermount {
            let path = directory["fusermount3"].string
            try Data().write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: fusermount], ofItemAtPath: path)
        }
        return MachineExamination(root: directory.path.string, path: directory.path.string, isRoot: isRoot).findings
    }

    private func grades(_ findings: [Finding]) -> [Finding.Grade] { findings.map(\.grade) }

    @Test(
        "DOCTOR-1: a kernel before 6.9 is a warning",
        arguments: [("6.8.0", true), ("5.15.1", true), ("6.9.0", false), ("7.0", false), ("10.1-x", false)])
    func kernel(_ release: String, isOld: Bool) throws {
        let finding = try #require(try findings(kernel: release).first)
        #expect(finding.grade == (isOld ? .warning : .ok) && finding.text.contains(release))
        #expect((finding.advice != nil) == isOld)
    }

    @Test("DOCTOR-1: without /dev/fuse, and as an ordinary user without fusermount3, nothing can be mounted")
    func fuse() throws {
        // A file of another user is not set-user-ID root.
        let whole: Finding.Grade = Machine.userIdentifier == 0 ? .ok : .error
        #expect(grades(try findings()) == [.ok, .ok, whole])
        #expect(grades(try findings(hasDevice: false)) == [.ok, .error, whole])
        #expect(grades(try findings(fusermount: 0o755)) == [.ok, .ok, .error])
        #expect(grades(try findings(fusermount: nil)) == [.ok, .ok, .error])
        #expect(grades(try findings(fusermount: nil, isRoot: true)) == [.ok, .ok])
    }
}

@Suite struct StateExaminations {
    @Test(
        "DOCTOR-1: a state directory in memory, or on a network, is told",
        arguments: [("ext4", nil), ("tmpfs", "error"), ("nfs4", "warning"), ("fuse.sshfs", "warning")])
    func fileSystem(_ type: String, _ grade: String?) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        func mount(_ path: String, _ type: String) -> MountTable.Mount {
            MountTable.Mount(identifier: 1, device: "0:1", path: Array(path.utf8), type: type, source: "x")
        }
        // The last mount of the longest path.
        let mounts = [
            mount("/", "proc"), mount(directory.path.string, "nfs"), mount(directory.path.string, type),
            mount(directory.path.string + "/state2", "nfs"),
        ]
        let places = Places(environment: [
            "YONDER_STATE_DIR": directory["state/not/made"].string, "HOME": "/nonexistent",
        ])
        let findings = StateExamination(places: places, mounts: mounts).findings
        #expect(findings.dropFirst().map(\.grade.rawValue) == (grade.map { [$0] } ?? []))
    }

    @Test("DOCTOR-1: a state directory that cannot be made is told, also to root, and without advice about space")
    func isNotMade() throws {
        let places = Places(environment: ["YONDER_STATE_DIR": "/proc/nope", "HOME": "/nonexistent"])
        let finding = try #require(StateExamination(places: places).findings.first)
        #expect(finding.grade == .error && finding.text == "it is on proc, where no files can be made", "\(finding)")
        #expect(finding.advice == "set YONDER_STATE_DIR to another directory")
    }
}

@Suite struct DomainExaminations {
    @Test("DOCTOR-1: a remote is said to answer only if it has answered now")
    func answers() async throws {
        let status = DomainStatus(
            name: "d", source: "/s", mountpoint: "/", connection: .online, reason: nil,
            items: DomainStatus.Items(known: 0, materializedFiles: 0, materializedDirectories: 0),
            bytes: DomainStatus.Bytes(local: 0, limit: nil), pending: DomainStatus.Pending(items: 0, bytes: 0),
            failed: 0, transfers: [], passthrough: false, warnings: [])
        func finding(_ answer: DomainExamination.RemoteAnswer) async throws -> Finding {
            try #require(await DomainExamination(domain: status, remote: answer).findings().first)
        }
        #expect(try await finding(.answers) == .ok("d", "/s answers"))
        #expect(try await finding(.isUnknown) == .ok("d", "/s was online when it was last asked"))
        let silent = try await finding(.isSilent(.seconds(5)))
        #expect(silent.grade == .warning && silent.text.hasSuffix("has not answered for 5 seconds"), "\(silent)")
        let failing = try await finding(.fails("it is broken"))
        #expect(failing.grade == .error && failing.text == "the remote does not answer: it is broken", "\(failing)")
    }

    @Test(
        "DOCTOR-1: what ssh or rclone refuses is told in the words of its reason alone, which say what to do",
        arguments: [
            ("sftp://host/d", false), ("rclone:drive:d", false), ("https://host/d", true), ("s3://bucket", true),
        ])
    func refusals(source: String, mountsAgain: Bool) async throws {
        let status = DomainStatus(
            name: "d", source: source, mountpoint: "/", connection: .unauthenticated, reason: "the key has changed",
            items: DomainStatus.Items(known: 0, materializedFiles: 0, materializedDirectories: 0),
            bytes: DomainStatus.Bytes(local: 0, limit: nil), pending: DomainStatus.Pending(items: 0, bytes: 0),
            failed: 0, transfers: [], passthrough: false, warnings: [])
        let finding = try #require(await DomainExamination(domain: status).findings().first)
        #expect(finding.grade == .error && finding.subject == "d")
        let words = "the remote refuses the credentials: the key has changed"
        #expect(finding.text == (mountsAgain ? words : "the key has changed"))
        #expect(finding.advice == (mountsAgain ? "mount it again to give others: yonder mount \(source) /" : nil))
    }

    @Test("CMD-8: the commands that it advises are for a shell, whatever the domain's name is") func advice()
        async throws
    {
        let status = DomainStatus(
            name: "my photos", source: "/s", mountpoint: "/", connection: .paused, reason: nil,
            items: DomainStatus.Items(known: 0, materializedFiles: 0, materializedDirectories: 0),
            bytes: DomainStatus.Bytes(local: 0, limit: nil), pending: DomainStatus.Pending(items: 0, bytes: 0),
            failed: 1, transfers: [], passthrough: false, warnings: [])
        let advice = await DomainExamination(domain: status).findings().compactMap(\.advice)
        #expect(advice.first == #"yonder resume my\ photos"#)
        #expect(advice.last == #"'yonder pending my\ photos' says why; 'yonder retry my\ photos' tries again now"#)
    }
}

@Suite struct DaemonExaminations {
    @Test("SOCKET-6: the advice for a daemon of another version keeps its mounts") func otherVersion() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let socket = directory["socket"].string
        let daemon = try await BackgroundProgram(
            "python3", "-c",
            """
            import socket, sys
            s = socket.socket(socket.AF_UNIX)
            s.bind(sys.argv[1])
            s.listen()
            open(sys.argv[1] + '.ready', 'w')
            peer, _ = s.accept()
            peer.makefile().readline()
            peer.sendall(b'{"error":{"_0":{"code":"version","message":"it is another"}}}\\n')
            peer.recv(1)
            """, socket)
        defer { daemon.kill() }
        #expect(await eventually { FileManager.default.fileExists(atPath: socket + ".ready") })
        let places = Places(environment: ["YONDER_STATE_DIR": directory.path.string, "YONDER_SOCKET": socket])
        let findings = await DaemonExamination(places: places, mounts: []).findings()
        #expect(findings == [.error("daemon", "it is another", "yonder daemon restart")])
    }
}

extension RealMount {
    @Suite struct Doctors {
        /// What it has found, but for dead mounts of other tests.
        private func findings(_ yonder: Installation) async throws -> (all: [Finding], isBad: Bool) {
            let outcome = try await yonder.yonder("doctor", "--json")
            let all = try JSONDecoder().decode([Finding].self, from: Data(outcome.outputBytes))
            #expect(outcome.status == (all.contains { $0.grade == .error } ? 1 : 0))
            let own = all.filter {
                !$0.text.contains("no daemon serves") || $0.subject.hasPrefix(yonder.directory.path.string)
            }
            return (own, own.contains { $0.grade == .error })
        }

        @Test("DOCTOR-1: yonder doctor finds what does not work, and says what to do") func finds() async throws {
            try await Installation.run { yonder in
                let before = try await findings(yonder)
                #expect(!before.isBad && before.all.contains { $0.text.contains("none runs") })
                try await yonder.mountSource()
                let healthy = try await findings(yonder)
                #expect(!healthy.isBad, "\(healthy.all)")
                #expect(healthy.all.contains { $0.subject == "mount" && $0.grade == .ok })
                _ = try await yonder.yonder("pause", "mount")
                let paused = try await findings(yonder).all
                #expect(paused.contains { $0.advice == "yonder resume mount" })
                _ = try await yonder.yonder("resume", "mount")
                try FileManager.default.moveItem(
                    atPath: yonder.source.string, toPath: yonder.directory["away"].string)
                _ = try await yonder.yonder("signal", "mount", "--wait")
                let offline = try await findings(yonder)
                #expect(offline.isBad)
                #expect(offline.all.contains { $0.grade == .error && $0.text.contains("does not answer") })
                let text = try await yonder.yonder("doctor").output
                #expect(text.contains("error    mount: the remote does not answer"), "\(text)")
                try await yonder.killDaemon()
                let dead = try await findings(yonder)
                #expect(dead.all.contains { $0.subject == yonder.mount.string && $0.grade == .error })
            }
        }

        @Test("DOCTOR-1: the remote of a domain that is online is asked now") func asksTheRemote() async throws {
            try await Installation.run { yonder in
                // Nothing tells the daemon that a directory above the source is renamed.
                let above = try yonder.directory.makeDirectory("above")
                let source = above.appending("source")
                try FileManager.default.createDirectory(atPath: source.string, withIntermediateDirectories: true)
                try Data("x".utf8).write(to: URL(fileURLWithPath: source.appending("file").string))
                try await yonder.yonder("mount", source.string, yonder.mount.string, seconds: 30).expectSuccess()
                #expect(try await yonder.shell("ls") == "file\n")
                let healthy = try await findings(yonder).all
                #expect(healthy.contains { $0.grade == .ok && $0.text == "\(source) answers" }, "\(healthy)")
                try FileManager.default.moveItem(atPath: above.string, toPath: yonder.directory["away"].string)
                let moved = try await findings(yonder)
                #expect(moved.isBad)
                #expect(moved.all.contains { $0.text.contains("the remote does not answer") }, "\(moved.all)")
                #expect(try await yonder.status().connection == .offline)
            }
        }

        @Test("CMD-16: a daemon that keeps its domains elsewhere than the shell says is told by mount and doctor")
        func otherState() async throws {
            try await Installation.mounted { yonder async throws in
                let same = try await yonder.with(["YONDER_STATE_DIR": yonder.directory["state"].string + "/"])
                    .yonder("mount", "mount")
                #expect(same.status == 0 && !same.errors.contains("keeps its domains"), "\(same.errors)")
                let other = yonder.with(["YONDER_STATE_DIR": yonder.directory["other"].string])
                let mounted = try await other.yonder("mount", "mount")
                #expect(mounted.status == 0)
                #expect(
                    mounted.errors.contains("keeps its domains in '\(yonder.directory["state"])'"), "\(mounted.errors)")
                let found = try await findings(other).all
                #expect(found.contains { $0.grade == .warning && $0.text.contains("keeps its domains") })
            }
        }

        @Test("DOCTOR-1: a state directory that the user cannot make is told", .ordinaryUser)
        func homeThatIsNotThere() async throws {
            try await OrdinaryUser.run { user in
                let found = try await user.shell(
                    "unset YONDER_STATE_DIR XDG_STATE_HOME; export HOME=/nonexistent; yonder doctor")
                let line = "error    /nonexistent/.local/state/yonder: it cannot be made: '/' cannot be written"
                #expect(found.status == 1 && found.output.contains(line), "\(found.output)")
            }
        }

        @Test("a mount that fails for /dev/fuse names it, and says what the doctor says", .ordinaryUser)
        func deniedDevice() async throws {
            try await OrdinaryUser.run { user in
                let file = user.yonder.directory["nothing"].string
                // Only in a mount namespace of its own.
                let line = """
                    : > "$1" && chmod 0 "$1" && mount --bind "$1" /dev/fuse && shift && exec "$@"
                    """
                func yonder(_ words: String...) async throws -> Command.Outcome {
                    try await Command(
                        ["unshare", "--mount", "sh", "-c", line, "sh", file] + OrdinaryUser.prefix
                            + [Installation.program] + words, environment: user.yonder.environment, seconds: 60
                    ).run()
                }
                let words = "it cannot be opened, so nothing can be mounted"
                let refused = try await yonder("mount", user.yonder.source.string, user.yonder.mount.string)
                refused.expectFailure(saying: "/dev/fuse: \(words) (as root: chmod 666 /dev/fuse)")
                let found = try await yonder("doctor")
                #expect(found.status == 1 && found.output.contains("/dev/fuse: \(words)"), "\(found.output)")
            }
        }

        @Test("DOCTOR-1: a domain that is to be mounted and is not is told") func notMounted() async throws {
            try await Installation.mounted { yonder async throws in
                #expect(try await Command.run("umount", yonder.mount.string).status == 0)
                #expect(
                    try await eventually {
                        try await findings(yonder).all.contains { $0.advice?.hasPrefix("yonder mount mount") == true }
                    })
                // It is not mounted, and will not be.
                #expect(try await yonder.yonder("unmount", "mount").status == 69)
                #expect(try await !findings(yonder).all.contains { $0.subject == "mount" })
            }
        }

        @Test("DOCTOR-1: directories that others can write are told") func laxDirectories() async throws {
            try await Installation.run { yonder in
                let state = try yonder.directory.makeDirectory("state").string
                try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: state)
                let found = try await findings(yonder)
                #expect(found.all.contains { $0.subject == state && $0.text.contains("chmod 700") })
            }
        }
    }
}
