import Foundation
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// What is made here and on the remote under one name, before either side has heard of the other.
    @Suite struct BothSides {
        /// Makes things in the source folder and in the mount while the domain is paused.
        private func run(
            there: String, here: String, _ test: (Installation) async throws -> Void
        ) async throws {
            try await Installation.mounted(["dir/file": "x"]) { yonder async throws in
                #expect(try await Command.run("ls", "-R", yonder.mount.string).status == 0)
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                try await Command.shell("cd \"$1\" && \(there)", yonder.source.string).expectSuccess()
                try await yonder.shell(here)
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await yonder.expectSentAndReceived()
                try await test(yonder)
                #expect(try await yonder.differences() == "")
            }
        }

        @Test("CONFLICT-1: directories are merged at any depth, and followed from then on") func deepDirectories()
            async throws
        {
            try await run(
                there: "mkdir -p dir/a/b/c/d; for d in dir/a dir/a/b dir/a/b/c dir/a/b/c/d; do echo x > $d/there; done",
                here: "mkdir -p dir/a/b/c/d; for d in dir/a dir/a/b dir/a/b/c dir/a/b/c/d; do echo x > $d/here; done"
            ) { yonder in
                for directory in ["dir/a", "dir/a/b", "dir/a/b/c", "dir/a/b/c/d"] {
                    #expect(try await Command.run("ls", yonder[directory]).output.contains("there"), "\(directory)")
                    try yonder.write("x", to: directory + "/later")
                }
                #expect(
                    try await eventually {
                        try await Command.shell("find \"$1\" -name later | wc -l", yonder.mount.string).line == "4"
                    })
                #expect(try await yonder.conflicts().isEmpty)
            }
        }

        @Test(
            "CONFLICT-2: what was changed here, and moved there into a directory that was removed here, stays and is sent",
            arguments: ["echo new > dir/kept", "touch -d @1000000000 dir/kept", "echo new > .t; mv .t dir/kept"])
        func movedIntoRemoved(change: String) async throws {
            try await Installation.mounted(["dir/kept": "old", "dir/removed/file": "x"]) { yonder async throws in
                try await yonder.shell("ls -R; cat dir/kept")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                let made = try await Command.shell("cd \"$1\" && mv dir/kept dir/removed/kept", yonder.source.string)
                #expect(made.status == 0, "\(made.errors)")
                try await yonder.shell("rm -r dir/removed; \(change)")
                let text = try await yonder.shell("cat dir/kept")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                try await yonder.expectSentAndReceived()
                #expect(try await yonder.shell("find . -type f -exec cat {} +").contains(text))
                #expect(yonder.sourceText("dir/kept") == text || yonder.sourceText("dir/removed/kept") == text)
            }
        }

        @Test("CONFLICT-1: of two symbolic links of one name both targets are kept, also of one length") func links()
            async throws
        {
            try await run(
                there: "ln -s there link; ln -s same both", here: "ln -s here! link; ln -s same both"
            ) { yonder async throws in
                #expect(try await yonder.shell("find . -type l -printf '%l\\n' | sort") == "here!\nsame\nthere\n")
                #expect(try await yonder.conflicts().count == 1)
            }
        }

        @Test("CONFLICT-1: of two files of one name both contents are kept, also of one size and date") func files()
            async throws
        {
            let dated = "echo same > both; touch -d @1000000000 file both; mkdir new"
            try await run(
                there: "echo there > file; \(dated); echo a > new/x; echo aa > new/y",
                here: "echo here! > file; \(dated); echo b > new/x; echo bb > new/y"
            ) { yonder async throws in
                #expect(try await yonder.shell("cat file* both* new/* | sort") == "a\naa\nb\nbb\nhere!\nsame\nthere\n")
                #expect(try await yonder.conflicts().count == 3)
            }
        }

        @Test(
            "CONFLICT-1: a server keeps another client's file of the same name, size and date",
            arguments: FarRemote.Kind.installed.filter { $0 != .s3 })
        func filesOnAServer(_ kind: FarRemote.Kind) async throws {
            try await FarRemote.run(kind) { remote, yonder async throws in
                try await remote.mount(yonder)
                try await yonder.shell("ls -R")
                #expect(try await yonder.yonder("pause", "mount").status == 0)
                let folder = try #require(remote.folder)
                let date = "touch -d @1000000000 file"
                try await Command.shell("cd \"$1\" && echo there > file; \(date)", folder.string).expectSuccess()
                try await yonder.shell("echo here! > file; \(date)")
                #expect(try await yonder.yonder("resume", "mount").status == 0)
                #expect(try await yonder.yonder("wait", "mount", "--timeout", "15").status == 0)
                #expect(try await yonder.yonder("signal", "mount", "--wait").status == 0)
                #expect(try await yonder.shell("cat file* | sort") == "here!\nthere\n")
                #expect(try await Command.shell("cat \"$1\"/file* | sort", folder.string).output == "here!\nthere\n")
            }
        }
    }
}
