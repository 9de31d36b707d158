import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Programs that know nothing of Yonder and do what they always do.
    @Suite struct Programs {
        static func has(_ programs: String...) -> Bool {
            let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
            return programs.allSatisfy { program in
                folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
            }
        }

        @Test("git clones, commits, branches and collects garbage", .enabled(if: has("git"))) func git() async throws {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell(
                    """
                    git init -q --bare origin.git; git clone -q origin.git work 2>&1; cd work
                    for n in $(seq 30); do echo "text $n" > file$n; done; git add .; git commit -qm first
                    git checkout -qb other; echo x >> file1; git mv file2 second; git commit -qam second
                    git checkout -q -; git merge -q other; git push -q origin HEAD; git gc -q; git fsck --strict
                    test -z "$(git status --porcelain)"; cd ..; git clone -q origin.git again; cmp work/second again/second
                    """)
                try await yonder.expectSent()
                let status = try await Command.shell(
                    "cd \"$1\"/work && git fsck --strict && git status --porcelain", yonder.source.string)
                #expect(status.status == 0, "\(status.errors)")
                #expect(status.output == "")
            }
        }

        @Test(
            "sqlite3 keeps its databases, with a rollback journal and with a write-ahead log",
            .enabled(if: has("sqlite3")), arguments: ["delete", "wal"])
        func sqlite(mode: String) async throws {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell(
                    """
                    sqlite3 data.db "PRAGMA journal_mode=$1; CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT);" > /dev/null
                    for n in 1 2 3 4; do (for m in $(seq 15); do
                        sqlite3 -cmd '.timeout 10000' data.db "INSERT INTO t (b) VALUES (hex(randomblob(500)));"
                    done) & done; wait
                    test "$(sqlite3 data.db 'SELECT COUNT(*) FROM t; PRAGMA integrity_check;' | tr '\\n' ' ')" = '60 ok '
                    """, mode)
                try await yonder.expectSent()
                let check = try await Command.run(
                    "sqlite3", yonder.source.appending("data.db").string,
                    "SELECT COUNT(*) FROM t; PRAGMA integrity_check;")
                #expect(check.output == "60\nok\n", "\(check.errors)")
            }
        }

        @Test("rsync copies a tree, and a second time moves nothing", .enabled(if: has("rsync"))) func rsync()
            async throws
        {
            try await Installation.run { yonder in
                let tree = try yonder.directory.makeDirectory("tree").string
                let made = try await Command.python(Browsing.oddTree, tree)
                try #require(made.status == 0, "\(made.errors)")
                _ = try await Command.shell("rm -r \"$1\"/many/file[1-9]* \"$1\"/many/file0[1-9]*", tree)
                try await yonder.mountSource()
                let copy = ["rsync", "-a", "--itemize-changes", "--modify-window=-1", tree + "/", yonder["tree"] + "/"]
                try await Command(copy).run().expectSuccess()
                let second = try await Command(copy).run()
                #expect(second.output == "")
                #expect(second.status == 0)
                try await yonder.expectSent()
                #expect(try await Command(copy).run().output == "")
            }
        }

        @Test("tar unpacks a tree as it was packed", .enabled(if: has("tar"))) func tar() async throws {
            try await Installation.run { yonder in
                let tree = try yonder.directory.makeDirectory("tree").string
                let archive = yonder.directory["tree.tar"].string
                let made = try await Command.shell(
                    """
                    cd "$1" && for d in $(seq 20); do mkdir -p dir$d/sub; for f in $(seq 20); do
                        echo "$d $f" > dir$d/sub/file$f; done; ln dir$d/sub/file1 dir$d/hard; ln -s sub/file2 dir$d/soft
                    done; chmod 500 dir1/sub; touch -d 2001-02-03 dir2/sub dir2; tar -cf "$2" .
                    """, tree, archive)
                try #require(made.status == 0, "\(made.errors)")
                try await yonder.mountSource()
                try await yonder.shell("mkdir out; tar -xpf \"$1\" -C out; tar -df \"$1\" -C out", archive)
                try await yonder.expectSent()
                // Hard links are files of their own there.
                let compared = try await Command.shell(
                    "tar -df \"$1\" -C \"$2\"/out 2>&1 | grep -v 'Not linked'", archive, yonder.source.string)
                #expect(compared.output == "")
                // Only root removes files from a directory of mode 500.
                try await yonder.shell("chmod u+w out/dir1/sub && rm -r out")
                try await yonder.expectSent()
                #expect(try await Command.run("ls", "-A", yonder.source.string).output == "")
            }
        }

        @Test("editors save", .enabled(if: has("vim"))) func editors() async throws {
            try await Installation.mounted([
                "text": "first\nsecond\n", "script": "#!/bin/sh\necho first\n",
            ]) { yonder async throws in
                try await yonder.shell(
                    """
                    chmod 755 script; sed -i s/first/1st/ text script
                    vim -u NONE -N -es -c 'set backup writebackup backupcopy=no' -c '%s/second/2nd/' -c wq text
                    vim -u NONE -N -es -c 'set backupcopy=yes' -c '$s/1st/2nd/' -c wq script
                    test "$(./script)" = 2nd
                    """)
                try await yonder.expectSent()
                #expect(yonder.sourceText("text") == "1st\n2nd\n")
                #expect(try await Command.run(yonder.source.appending("script").string).output == "2nd\n")
            }
        }

        @Test("python makes a virtual environment and runs it", .enabled(if: has("python3"))) func venv() async throws {
            try await Installation.mounted { yonder async throws in
                try await yonder.shell(
                    """
                    python3 -m venv --without-pip env; mkdir package; echo 'answer = 42' > package/__init__.py
                    test "$(env/bin/python -c 'import package; print(package.answer)')" = 42
                    """)
                try await yonder.expectSent()
                #expect(
                    try await Command.shell(
                        "cd \"$1\" && env/bin/python -c 'import package; print(package.answer)'", yonder.source.string
                    )
                    .line == "42")
            }
        }
    }
}
