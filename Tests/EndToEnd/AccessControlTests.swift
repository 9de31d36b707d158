import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// POSIX ACLs and the attributes that only root may set.
    @Suite struct AccessControl {
        /// What `getfacl` says of all that is in a directory.
        private func lists(in directory: String) async throws -> String {
            let outcome = try await Command.shell(
                "cd \"$1\" && find . -not -type l -not -path '*Trash*' | LC_ALL=C sort | xargs getfacl", directory)
            return outcome.output + outcome.errors
        }

        private static let commands = """
            umask 027; echo x > file; mkdir open closed; chmod 755 open
            setfacl -m u:12345:rw,g:23456:r file; cp -a file copy; cp file plain; ln file link; mv copy moved
            setfacl -d -m u:12345:rwx,o::r open; echo x > open/new; mkdir -p open/below/deeper; touch open/below/new
            mkfifo open/fifo; ln -s file open/symlink; chmod 640 open/new; mkdir -m 700 open/private
            setfacl -m m::r open/below/new; setfacl -b open/below/deeper; setfacl -k open/private
            cp -a open closed/copy; rsync -aAX open/ closed/synced/; chmod g-w moved; setfacl -m u::rwx,g::r,o::- plain
            setfacl -x u:12345 link; setfacl -R -m u:54321:rX closed; python3 -c 'import os; os.open("open/made", 65, 0o604)'
            """

        @Test("WRITE-10: ACLs, their masks and defaults are as on a local file system, and reach a folder") func lists()
            async throws
        {
            try await Installation.run { yonder in
                let plain = try yonder.directory.makeDirectory("plain").string
                try await yonder.expectDone("cd \"$1\"; \(Self.commands)", plain)
                try await yonder.mountSource()
                try await yonder.shell(Self.commands)
                let expected = try await lists(in: plain)
                #expect(expected.contains("default:user:12345:rwx"))
                #expect(try await lists(in: yonder.mount.string) == expected)
                // FIFOs stay here.
                try await yonder.shell("rm open/fifo closed/copy/fifo closed/synced/fifo")
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await yonder.pending() == [:])
                #expect(try await lists(in: yonder.source.string) == lists(in: yonder.mount.string))
                // What changes there is seen here, whatever the kernel kept.
                try await yonder.expectDone("setfacl -m u:777:r \"$1\"", yonder.source.appending("plain").string)
                let arrives = await eventually(within: .seconds(20)) {
                    (try? await lists(in: yonder.mount.string).contains("user:777:r--")) == true
                }
                #expect(arrives)
                try await yonder.shell("echo more >> plain")
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await lists(in: yonder.source.string) == lists(in: yonder.mount.string))
            }
        }

        @Test(
            "WRITE-10: the kernel lets in whom an ACL names, and keeps out whom it does not",
            .enabled(if: FUSEAvailability.isRoot))
        func permissions() async throws {
            try await Installation.run { yonder in
                try yonder.write("secret\n", to: "file")
                let help = try await yonder.yonder("mount", "--help")
                if (help.output + help.errors).contains("--allow-other") {
                    try await yonder.mountSource("--allow-other")
                } else {
                    try await yonder.mountSource()
                }
                try await yonder.shell("chmod 755 .; chmod 600 file")
                try await yonder.expectDone("chmod 755 \"$1\"", yonder.directory.path.string)
                func read(as user: Int) async throws -> String {
                    try await Command.run(
                        "setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "cat", yonder["file"]
                    ).output
                }
                #expect(try await read(as: 12345) == "")
                try await yonder.shell("setfacl -m u:12345:r file")
                #expect(try await read(as: 12345) == "secret\n")
                #expect(try await read(as: 12346) == "")
                try await yonder.shell("chmod 600 file")
                #expect(try await read(as: 12345) == "")
            }
        }

        @Test(
            "WRITE-11: root's trusted and security attributes are kept, and reach a folder",
            .enabled(if: FUSEAvailability.isRoot))
        func attributesOfRoot() async throws {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell(
                    """
                    echo x > file; cp file program; mkdir directory
                    python3 -c '
                    import os, struct
                    capability = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)
                    for name in ["file", "directory"]:
                        os.setxattr(name, "trusted.one", bytes([0, 255]))
                        os.setxattr(name, "security.two", b"2")
                        os.setxattr(name, "user.//odd", b"3")
                    os.setxattr("program", "security.capability", capability)
                    assert sorted(os.listxattr("file")) == ["security.two", "trusted.one", "user.//odd"], os.listxattr("file")
                    '
                    """)
                _ = try await yonder.yonder("wait", "--timeout", "30")
                #expect(try await yonder.pending() == [:])
                let look = """
                    cd "$1"; python3 -c '
                    import os
                    for name in ["file", "directory", "program"]:
                        print(name, sorted((key, os.getxattr(name, key)) for key in os.listxattr(name)))'
                    """
                let seen = try await yonder.expectDone(look, yonder.mount.string)
                #expect(seen.contains("trusted.one") && seen.contains("security.capability"))
                #expect(try await yonder.expectDone(look, yonder.source.string) == seen)
                // Other content keeps them, but for what makes a program privileged.
                try await yonder.shell("echo more >> file; echo more >> program")
                _ = try await yonder.yonder("wait", "--timeout", "30")
                let later = try await yonder.expectDone(look, yonder.mount.string)
                #expect(later.contains("trusted.one") && !later.contains("security.capability"))
                #expect(try await yonder.expectDone(look, yonder.source.string) == later)
            }
        }

        @Test("WRITE-12: a remote that has no ACLs leaves them here, and nothing is pending") func webDAV() async throws
        {
            try await FarRemote.run(.webDAV) { remote, yonder in
                try await remote.mount(yonder)
                try await yonder.shell("echo x > file; setfacl -m u:12345:rw file; echo more >> file")
                try await yonder.yonder("wait", "--timeout", "30").expectSuccess()
                #expect(try await yonder.pending() == [:])
                #expect(try await yonder.shell("getfacl file").contains("user:12345:rw-"))
            }
        }
    }
}
