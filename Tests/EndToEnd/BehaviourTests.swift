import Daemon
import FileProvider
import FileProviderTesting
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Promises of Docs/Semantics that no other suite covers.
    @Suite struct Behaviours {
        static func tree(_ tree: inout RemoteTree) {
            tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            tree.addDirectory("d", identifier: "d")
            tree.addFile("one", in: "d", content: RemoteContent("1"), identifier: "one")
            tree.addDirectory("e", in: "d", identifier: "e")
            tree.addFile("two", in: "e", content: RemoteContent("22"), identifier: "two")
        }

        private func bash(_ line: String, _ words: String...) async throws -> Command.Outcome {
            try await Command(["bash", "-c", line, "-"] + words, seconds: 60).run()
        }

        private func content(_ mount: ProvidedMount, _ identifier: ItemIdentifier) -> ContentState? {
            (try? mount.host.replica.database.item(identifier))?.inode.content
        }

        @Test("NAME-12: the stat of a path lists what is on the way, and fetches nothing") func row3() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("stat", "-c", "%s", mount["d/e/two"]).line == "2")
                #expect(mount.provider.log.count(of: .fetch) == 0)
                #expect(content(mount, "two") == .dataless)
            }
        }

        @Test("NAME-12: a huge directory is listed, the first of them before the last page has come")
        func row4() async throws {
            try await ProvidedMount.run { tree in
                for number in 0..<30_000 {
                    tree.addFile("f\(number)", content: RemoteContent("x"), identifier: ItemIdentifier("f\(number)"))
                }
            } _: { mount async throws in
                let gate = mount.provider.faults.hold(.enumerate, of: .rootContainer, skipping: 10)
                let first = try await bash("ls -U \"$1\" | head -n 1", mount.path.string)
                #expect(first.line.hasPrefix("f"))
                #expect(mount.provider.log.count(of: .enumerate, .rootContainer) < 30)
                gate.open()
                let counted = try await bash(
                    "ls -U \"$1\" | awk '{n++; if (s[$0]++) d++} END {print n, d + 0}'", mount.path.string)
                #expect(counted.line == "30000 0", "all of them, and none twice")
            }
        }

        @Test("NAME-9: a name that is not UTF-8 is made, and a remote that cannot have it is not sent it") func row10()
            async throws
        {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                let script = """
                    import os, sys
                    top = os.fsencode(sys.argv[1])
                    os.close(os.open(top + b"/file\\xff", os.O_CREAT | os.O_WRONLY))
                    os.mkdir(top + b"/directory\\xff")
                    os.close(os.open(top + b"/directory\\xff/below", os.O_CREAT | os.O_WRONLY))
                    os.symlink(b"x", top + b"/link\\xff")
                    os.symlink(b"target\\xff", top + b"/link")
                    print(sorted(os.listdir(top)), os.readlink(top + b"/link"))
                    """
                #expect(
                    try await Command.run("python3", "-c", script, mount.path.string).output == #"""
                        [b'd', b'directory\xff', b'file', b'file\xff', b'link', b'link\xff'] b'target\xff'

                        """#)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(mount.provider.log.count(of: .create) == 0)
            }
        }

        @Test("WRITE-1: truncating what is not here fetches nothing, appending does") func row18() async throws {
            try await ProvidedMount.run(listing: .everything, Self.tree) { mount async throws in
                let script = "import os, sys; os.truncate(sys.argv[1], 0)"
                #expect(try await Command.run("python3", "-c", script, mount["file"]).status == 0)
                #expect(try await bash(": > \"$1\"", mount["d/one"]).status == 0)
                #expect(mount.provider.log.count(of: .fetch, "file") == 0)
                #expect(mount.provider.log.count(of: .fetch, "one") == 0)
                #expect(try await bash("printf x >> \"$1\"", mount["d/e/two"]).status == 0)
                #expect(mount.provider.log.count(of: .fetch, "two") == 1)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(mount.provider.tree["file"]?.documentSize == 0)
                #expect(mount.provider.tree["one"]?.documentSize == 0)
                #expect(mount.provider.tree["two"]?.documentSize == 3)
            }
        }

        @Test("NAME-5: renaming, moving and removing what is not here fetches nothing") func row19() async throws {
            try await ProvidedMount.run { tree in
                Self.tree(&tree)
                tree.addDirectory("empty", identifier: "empty")
            } _: { mount async throws in
                let line = """
                    cd "$1" && mv file renamed && mv d/one e && mv e d/e/ && rm d/e/two && rmdir empty
                    """
                _ = try await Command.run("ls", "-R", mount.path.string)
                try await bash(line, mount.path.string).expectSuccess()
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(mount.provider.log.count(of: .fetch) == 0)
                #expect(mount.provider.tree.identifier(at: "d/e/e") == "one")
                #expect(mount.provider.tree["two"] == nil)
            }
        }

        @Test("NAME-5: moving a tree out brings all of it, or fails with nothing deleted") func row20() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                let place = try TemporaryDirectory()
                defer { place.remove() }
                mount.provider.faults.fail(
                    .fetch, of: "two", with: FileProviderError(.fileReadNoPermission), times: nil)
                #expect(try await Command.run("mv", mount["d"], place["out"].string).status != 0)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(mount.provider.tree["two"] != nil)
                #expect(mount.provider.log.count(of: .delete, "two") == 0)
                mount.provider.faults.clear()
                let moved = try await bash(
                    "rm -rf \"$2\"; mv \"$1\" \"$2\" && cat \"$2/e/two\"", mount["d"], place["out"].string)
                #expect(moved.output == "22", "\(moved.errors)")
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                #expect(mount.provider.tree["d"] == nil)
            }
        }

        @Test(
            "EVICT-9: evicting the root leaves what is kept downloaded and what is not on the remote, and nothing else")
        func row38() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                _ = try await Command.run("cat", mount["file"], mount["d/one"], mount["d/e/two"])
                #expect(
                    try await Command.run(
                        "setfattr", "-n", "user.yonder.policy", "-v", "keepDownloaded", mount["d/one"]
                    ).status == 0)
                mount.host.engine.pause(.user)
                #expect(try await bash("echo more >> \"$1\"", mount["d/e/two"]).status == 0)
                let wanted: Set<EvictionRefusal> = [.nonEvictable, .unsyncedEdits]
                #expect(
                    await eventually {
                        // What was closed a moment ago may be open still.
                        let report = try? await mount.host.engine.evict(.root, isStrict: false)
                        return Set(report?.refusals.map(\.refusal) ?? []) == wanted
                    })
                #expect(content(mount, "file") == .dataless)
                #expect(content(mount, "one") == .materialized)
                #expect(content(mount, "two") == .materialized)
                mount.host.engine.pause(nil)
                #expect(try await Command.run("cat", mount["d/e/two"]).output == "22more\n")
            }
        }

        @Test("PIN-1 and PIN-4: a root that is kept downloaded comes whole, but for what is said to be lazy")
        func rows44And45() async throws {
            try await ProvidedMount.run { tree in
                Self.tree(&tree)
                tree.edit("e") { $0.contentPolicy = .lazy }
            } _: { mount async throws in
                #expect(
                    try await Command.run(
                        "setfattr", "-n", "user.yonder.policy", "-v", "keepDownloaded", mount.path.string
                    ).status == 0)
                #expect(await eventually { content(mount, "one") == .materialized })
                #expect(await eventually { content(mount, "file") == .materialized })
                try await Task.sleep(for: .milliseconds(500))
                #expect(content(mount, "e") == .dataless)
                #expect(mount.provider.log.count(of: .fetch, "two") == 0)
                #expect(mount.provider.log.count(of: .modify) == 0, "a policy is not sent")
            }
        }

        @Test("WRITE-16: a change names just the fields that it is about, and what changes nothing is no change")
        func row51() async throws {
            try await ProvidedMount.run(listing: .everything) { tree in
                Self.tree(&tree)
                tree.edit("file") { $0.permissions = 0o644 }
            } _: { mount async throws in
                func fields(_ line: String) async throws -> ItemFields? {
                    mount.provider.log.clear()
                    #expect(try await bash("cd \"$1\" && " + line, mount.path.string).status == 0)
                    #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                    let calls = mount.provider.log.calls(of: .modify, "file")
                    #expect(calls.count <= 1)
                    return calls.first?.fields
                }
                #expect(try await fields("chmod +x file") == .permissions)
                #expect(try await fields("touch -d 2001-02-03 file") == .contentModificationDate)
                #expect(try await fields("setfattr -n user.a -v b file") == .extendedAttributes)
                #expect(try await fields("mv file other") == .filename)
                #expect(try await fields("mv other d/") == .parentItemIdentifier)
                #expect(try await fields("mv d/other file") == [.filename, .parentItemIdentifier])
                #expect(try await fields("chmod 755 file") == nil, "it has this mode")
            }
        }

        @Test("CONFLICT-7: a conflict in what is no content is merged, field by field") func row71() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                _ = try await Command.run("cat", mount["file"])
                mount.provider.changeSilently { tree in
                    tree.edit("file") { $0.permissions = 0o600 }
                }
                try await bash("cd \"$1\" && mv file renamed && echo new > renamed", mount.path.string).expectSuccess()
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                try await mount.host.engine.refresh()
                #expect(mount.provider.tree["file"]?.filename == "renamed")
                #expect(mount.provider.tree["file"]?.permissions == 0o600)
                #expect(mount.provider.tree["file"]?.documentSize == 4)
                #expect(try await Command.run("ls", mount.path.string).output == "d\nrenamed\n", "no copy")
                #expect(
                    try await eventually {
                        try await Command.run("stat", "-c", "%a", mount["renamed"]).line == "600"
                    })
            }
        }

        @Test(
            "CONFLICT-7: directories that are moved into each other on both sides are both still there",
            arguments: ["mv a b/", "mv a b/ && mv c a"])
        func row74(moves: String) async throws {
            try await ProvidedMount.run(listing: .everything) { tree in
                tree.addDirectory("a", identifier: "a")
                tree.addDirectory("b", identifier: "b")
                tree.addDirectory("c", identifier: "c")
                for name in ["a", "b", "c"] {
                    tree.addFile(
                        "in \(name)", in: ItemIdentifier(name), content: RemoteContent(name),
                        identifier: ItemIdentifier("in" + name))
                }
            } _: { mount async throws in
                mount.host.engine.pause(.user)
                #expect(try await bash("cd \"$1\" && \(moves)", mount.path.string).status == 0)
                mount.provider.changeSilently { $0.move("b", to: "a") }
                mount.host.engine.pause(nil)
                try await mount.host.engine.refresh()
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(20)))
                try await mount.host.engine.refresh()
                let here = try await bash(
                    "cd \"$1\" && find . -type f -exec cat {} + | fold -w1 | sort", mount.path.string)
                #expect(here.output == "a\nb\nc\n", "\(here.output)\(here.errors)")
                for name in ["a", "b", "c"] { #expect(mount.provider.tree[ItemIdentifier("in" + name)] != nil) }
                #expect(mount.provider.log.calls.count < 100, "nothing goes in circles")
            }
        }
    }
}
