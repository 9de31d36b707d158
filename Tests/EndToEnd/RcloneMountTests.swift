import Control
import Foundation
import SystemPackage
import TestSupport
import Testing

private let isRcloneInstalled = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains {
    FileManager.default.isExecutableFile(atPath: $0 + "/rclone")
}

extension RealMount {
    /// Mounts of remotes of rclone's configuration.
    @Suite(.tags(.server), .enabled(if: isRcloneInstalled, "rclone is not installed")) struct RcloneMounts {
        /// Work of programs that know nothing of Yonder. `$1` is a directory beside the mount.
        private static let work = """
            git init -q "$1/repository" && cd "$1/repository"
            for i in $(seq 60); do mkdir -p "d$((i % 7))" && echo "file $i" > "d$((i % 7))/f $i"; done
            git add . && git -c user.name=a -c user.email=a@b commit -qm text
            cd "$2" && git clone -q "$1/repository" clone && git -C clone fsck --full
            tar -C "$1/repository" -cf - . | (mkdir unpacked && tar -C unpacked -xf - --no-same-owner)
            rsync -a --no-perms "$1/repository/" synced/ && rsync -a --no-perms "$1/repository/" synced/
            sqlite3 base.db 'CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);'
            head -c 9000000 /dev/urandom > large && mv unpacked/d1 moved && rm -r unpacked/d2
            """

        /// Mounts a folder of this machine through rclone, whose tags of it are sizes and dates.
        private static func mounted(_ test: (Installation) async throws -> Void) async throws {
            try await Installation.run { installation in
                let configuration = try installation.directory.makeFile(
                    "rclone.conf", "[folder]\ntype = alias\nremote = \(installation.source)\n".utf8)
                let yonder = installation.with(["RCLONE_CONFIG": configuration.string])
                let mounted = try await yonder.yonder("mount", "rclone:folder:", yonder.mount.string)
                try #require(mounted.status == 0, "\(mounted.errors)")
                try await test(yonder)
            }
        }

        @Test("RCLONE-3: a file whose date is set keeps its local content") func dates() async throws {
            try await Self.mounted { yonder in
                _ = try await yonder.shell("echo text > file")
                #expect(try await yonder.yonder("wait", "--timeout", "60", seconds: 90).status == 0)
                _ = try await yonder.shell("touch -d @1500000000 file")
                #expect(try await yonder.yonder("wait", "--timeout", "60", seconds: 90).status == 0)
                let date = try await Command.run("stat", "-c", "%Y", yonder.source.appending("file").string)
                #expect(date.output == "1500000000\n")
                #expect(try await yonder.info("file").content == "materialized")
                // Nor does the next comparison find another content.
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await yonder.info("file").content == "materialized")
            }
        }

        @Test("RCLONE-8: git, tar, rsync and sqlite3 work, and all arrives, also when the daemon is killed")
        func work() async throws {
            try await Self.mounted { yonder in
                let scratch = try yonder.directory.makeDirectory("scratch")
                try await Command(
                    ["bash", "-euo", "pipefail", "-c", Self.work, "bash", scratch.string, yonder.mount.string],
                    environment: yonder.environment, seconds: 120
                ).run().expectSuccess()
                let daemon = try #require(yonder.daemon)
                Foundation.kill(daemon, SIGKILL)
                #expect(
                    try await eventually(within: .seconds(60)) {
                        try await yonder.yonder("wait", "--timeout", "60", seconds: 90).status == 0
                    })
                // An upload that was interrupted leaves a hidden file, which is removed after a day.
                let same = try await Command.run(
                    "diff", "-r", "--exclude=.yonder-partial-*", yonder.source.string, yonder.mount.string, seconds: 60)
                #expect(same.status == 0, "\(same.output)\(same.errors)")
                try await Command.run("git", "-C", yonder.source.string + "/clone", "fsck", "--full").expectSuccess()
                let rows = try await Command.run(
                    "sqlite3", yonder.source.string + "/base.db", "PRAGMA integrity_check; SELECT sum(a) FROM t;")
                #expect(rows.output == "ok\n3\n", "\(rows.errors)")
                #expect(try await yonder.yonder("conflicts").output == "")
                // What another client wrote is downloaded again.
                try yonder.write("other", to: "clone/d1/f 1")
                #expect(try await yonder.yonder("signal", "--wait").status == 0)
                #expect(try await Command.run("cat", yonder["clone/d1/f 1"]).output == "other")
            }
        }

        @Test("DOCTOR-1: a domain is offline while rclone's configuration has no such remote any more")
        func vanishedRemote() async throws {
            try await Self.mounted { yonder in
                let configuration = yonder.directory["rclone.conf"].string
                try await yonder.expectDone("sed -i 's/^.folder.$/[other]/' \"$1\"", configuration)
                // A running rclone knows the remotes that it has opened.
                let daemon = try #require(yonder.daemon)
                // It may be starting still, and the kill may meet the start of another one.
                try await yonder.expectDone(
                    "for turn in $(seq 100); do pkill -KILL -x -P \"$1\" rclone && exit; sleep 0.1; done; exit 1",
                    "\(daemon)")
                #expect(
                    try await eventually(within: .seconds(30)) {
                        let refused = try await yonder.yonder("signal", "--wait")
                        return refused.status == 1 && refused.errors.contains("rclone listremotes")
                    })
                #expect(try await yonder.status().connection == .offline)
                let doctor = try await yonder.yonder("doctor").output
                #expect(doctor.contains("the remote does not answer: rclone has no remote 'folder:'"), "\(doctor)")
                try await yonder.expectDone("sed -i 's/^.other.$/[folder]/' \"$1\"", configuration)
                #expect(await eventually(within: .seconds(30)) { (try? await yonder.status().connection) == .online })
            }
        }

        @Test("RCLONE-6: a mount of an unknown remote is refused with what to do") func unknownRemotes() async throws {
            try await Installation.run { yonder in
                let refused = try await yonder.yonder("mount", "rclone:nothing:x", yonder.mount.string)
                #expect(refused.status == 1 && refused.errors.contains("rclone listremotes"), "\(refused.errors)")
            }
        }
    }
}
