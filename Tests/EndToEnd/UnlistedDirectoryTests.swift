import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Making items in directories that were never listed, while the remote is away.
    @Suite struct UnlistedDirectories {
        private static func fill(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("there", in: "d", content: RemoteContent("of the remote"), identifier: "there")
        }

        private func goAway(_ mount: ProvidedMount) async throws {
            _ = try await Command.run("ls", mount.path.string)
            #expect(await mount.provider.log.waits(.anchor, .workingSet))
            mount.provider.faults.failEverything(with: FileProviderError(.serverUnreachable))
            #expect(try await Command.run("ls", mount["d"]).errors.contains("No route to host"))
        }

        @Test(
            "WRITE-14, C1: items are made in a directory that was never listed while the remote is away, and sent later"
        )
        func made() async throws {
            try await ProvidedMount.run(Self.fill) { mount async throws in
                try await goAway(mount)
                let outcome = try await Command.shell(
                    "cd \"$1/d\" && echo text > file && mkdir -p new/below && ln -s file link && echo more > new/below/f && cat file",
                    mount.path.string)
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.output == "text\n")
                // Whether a name exists that was not created here is unknown.
                #expect(try await Command.run("cat", mount["d/there"]).errors.contains("No route to host"))
                #expect(try await Command.run("stat", mount["d/other"]).errors.contains("No route to host"))
                mount.provider.faults.clear()
                mount.host.engine.errorWasResolved()
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(mount.provider.tree.text(at: "d/file") == "text\n")
                #expect(mount.provider.tree.text(at: "d/new/below/f") == "more\n")
                #expect(mount.provider.tree.identifier(at: "d/link") != nil)
                #expect(try await Command.run("ls", mount["d"]).output == "file\nlink\nnew\nthere\n")
            }
        }

        @Test("WRITE-14: a file whose name is not UTF-8 is made there, too") func madeOfBytes() async throws {
            try await ProvidedMount.run(Self.fill) { mount async throws in
                try await goAway(mount)
                let outcome = try await Command.shell(
                    "cd \"$1/d\" && name=$(printf 'b\\377') && echo text > \"$name\" && cat \"$name\"",
                    mount.path.string)
                #expect(outcome.output == "text\n", "\(outcome.errors)")
            }
        }

        @Test("WRITE-14: what was made there is renamed, linked and removed, and nothing else is") func changed()
            async throws
        {
            try await ProvidedMount.run(Self.fill) { mount async throws in
                try await goAway(mount)
                let outcome = try await Command.python(
                    """
                    import errno, os, sys
                    os.chdir(sys.argv[1] + "/d")
                    def write(name, text):
                        with open(name, "w") as file:
                            file.write(text)
                    write("one", "1")
                    os.rename("one", "two")
                    # As editors save.
                    write("two.tmp", "2")
                    os.rename("two.tmp", "two")
                    write("gone", "x")
                    os.unlink("gone")
                    os.mkdir("empty")
                    os.rmdir("empty")
                    os.mkdir("old")
                    write("old/f", "3")
                    os.rename("old", "new")
                    os.mkdir("other-new")
                    for call in [os.rmdir, lambda name: os.rename("other-new", name)]:
                        try:
                            call("new")
                            print("it was empty")
                        except OSError as error:
                            if error.errno != errno.ENOTEMPTY:
                                print(call, error)
                    os.rmdir("other-new")
                    os.link("two", "linked")
                    calls = [os.unlink, os.rmdir, lambda name: os.rename(name, "moved"), lambda name: os.link(name, "moved")]
                    for name in ["there", "other"]:
                        for call in calls:
                            try:
                                call(name)
                                print(name, "is known")
                            except OSError as error:
                                if error.errno != errno.EHOSTUNREACH:
                                    print(name, error)
                    """, mount.path.string)
                #expect(outcome.status == 0 && outcome.output == "", "\(outcome.output)\(outcome.errors)")
                mount.provider.faults.clear()
                mount.host.engine.errorWasResolved()
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(mount.provider.tree.text(at: "d/two") == "2")
                #expect(mount.provider.tree.text(at: "d/linked") == "2")
                #expect(mount.provider.tree.text(at: "d/new/f") == "3")
                #expect(try await Command.run("ls", mount["d"]).output == "linked\nnew\nthere\ntwo\n")
            }
        }

        @Test(
            "WRITE-14, C1: a name that turns out to be taken is a conflict, and both contents stay",
            arguments: [false, true])
        func taken(isRenamed: Bool) async throws {
            try await ProvidedMount.run(Self.fill) { mount async throws in
                try await goAway(mount)
                let name = isRenamed ? "new" : "there"
                try await Command.shell("echo here > \"$1\"", mount["d/\(name)"]).expectSuccess()
                if isRenamed {
                    let renaming = "import os, sys; os.rename(sys.argv[1], sys.argv[2])"
                    try await Command.python(renaming, mount["d/new"], mount["d/there"]).expectSuccess()
                }
                mount.provider.faults.clear()
                mount.host.engine.errorWasResolved()
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                let names = try await Command.run("ls", mount["d"]).output.split(separator: "\n")
                #expect(names.count == 2, "\(names)")
                #expect(try await Command.run("cat", mount["d/there"]).output == "of the remote")
                let copy = try #require(names.first { $0 != "there" })
                #expect(try await Command.run("cat", mount["d/\(copy)"]).output == "here\n")
            }
        }
    }
}
