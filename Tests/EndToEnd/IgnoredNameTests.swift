import Control
import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// Names that are never sent.
    @Suite struct IgnoredNaming {
        private static func tree(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("text", in: "d", content: RemoteContent("text"), identifier: "text")
            tree.addDirectory("gone", identifier: "gone")
            tree.addFile("x", in: "gone", content: RemoteContent("x"), identifier: "x")
        }

        private func changes(_ mount: ProvidedMount) -> [ProviderCall] {
            mount.provider.log.calls.filter { [.create, .modify, .delete].contains($0.kind) }
        }

        @Test("SEND-17: locks and swap files of programs work here, are excluded, and no call is made for them")
        func neverSent() async throws {
            try await ProvidedMount.run(listing: .everything, Self.tree) { mount async throws in
                let done = try await Command.shell(
                    """
                    cd "$1/d" && echo lock > '.~lock.text#' && echo swap > .text.swp && echo word > '~$text' &&
                    ln -s me@host:1 .#text && mv .text.swp .other.swp && cat '.~lock.text#' && rm '~$text' &&
                    touch -d 2000-01-01 .other.swp && setfattr -n user.own -v 1 .other.swp
                    """, mount.path.string)
                #expect(done.status == 0 && done.output == "lock\n", "\(done.errors)")
                #expect(
                    try await Command.run("getfattr", "--only-values", "-n", "user.yonder.sync", mount["d/.other.swp"])
                        .output == "excluded")
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(changes(mount).isEmpty, "\(changes(mount))")
                // What is beside them is sent as ever, and what holds them can be evicted.
                _ = try await Command.shell("echo more >> \"$1\"", mount["d/text"])
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                #expect(changes(mount).map(\.identifier) == ["text"])
                // The kernel tells of a close a moment after it.
                #expect(
                    await eventually {
                        await failure { try await mount.host.evictItem(identifier: .rootContainer) } == nil
                    })
                #expect(try mount.host.replica.database.item("text")?.inode.content == .dataless)
                #expect(try await Command.run("cat", mount["d/.other.swp"]).output == "swap\n")
            }
        }

        @Test("SEND-17: a remote folder that contains them is removed nevertheless, and their content is set aside")
        func blockNoDeletion() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                _ = try await Command.shell("ls -R \"$1\"; echo kept > \"$1/gone/.~lock.x#\"", mount.path.string)
                mount.provider.change { $0.delete("gone") }
                #expect(
                    await eventually { (try? mount.host.replica.database.item("gone")) == .some(nil) })
                #expect(
                    try await eventually { try await Command.run("ls", mount.path.string).output == "d\n" })
                #expect(changes(mount).isEmpty)
                let recovered = mount.host.replica.directory.appending("recovered").string
                let found = try await Command.shell("cat \"$1\"/*", recovered)
                #expect(found.output == "kept\n", "\(found.errors)")
            }
        }

        @Test("SEND-17: what gets another name is sent or stays by that; a save by way of such a name is one change")
        func renamed() async throws {
            try await ProvidedMount.run(listing: .everything, Self.tree) { mount async throws in
                func sent() async throws -> [ProviderCall] {
                    #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(10)))
                    defer { mount.provider.log.clear() }
                    return changes(mount).filter { $0.identifier != "d" }
                }
                // From one that stays to one that does not.
                _ = try await Command.shell("echo 1 > \"$1/.n.swp\"; mv \"$1/.n.swp\" \"$1/n\"", mount["d"])
                #expect(try await sent().map(\.kind) == [.create])
                #expect(mount.provider.tree.identifier(at: "d/n") != nil)
                // Over one of the remote's.
                _ = try await Command.shell(
                    "echo new > \"$1/.text.swp\"; mv \"$1/.text.swp\" \"$1/text\"", mount["d"])
                let saved = try await sent()
                #expect(saved.map(\.kind) == [.modify] && saved.map(\.identifier) == ["text"], "\(saved)")
                // From one of the remote's to one that stays: it goes there, and stays here with its inode.
                let inode = try await Command.run("stat", "-c", "%i", mount["d/text"]).line
                let moved = try await Command.shell(
                    "cd \"$1\" && mv text .text.swp && stat -c '%i %h' .text.swp && cat .text.swp", mount["d"])
                #expect(moved.output == "\(inode) 1\nnew\n", "\(moved.errors)")
                #expect(try await sent().map(\.kind) == [.delete])
                #expect(mount.provider.tree.identifier(at: "d/text") == nil)
                // A whole directory of the remote's does not, by renaming.
                let refused = try await Command.run(
                    "python3", "-c", "import os, sys; os.rename(sys.argv[1], sys.argv[2])", mount["d"],
                    mount[".d.swp"])
                #expect(refused.errors.contains("Errno 18"), "\(refused.errors)")
            }
        }

        @Test("NAME-11: what the remote did not want because of its name is sent after a rename, with all in it")
        func unwantedName() async throws {
            try await Installation.mounted(["known": "known"]) { yonder async throws in
                // The provider needs such names for itself.
                try await yonder.shell(
                    """
                    mkdir .yonder-partial-d; echo in > .yonder-partial-d/in; mkfifo .yonder-partial-d/fifo
                    echo new > .yonder-partial-n; cat known; mv known .yonder-partial-k
                    """)
                for name in [".yonder-partial-d", ".yonder-partial-n", ".yonder-partial-k"] {
                    #expect(try await eventually { try await yonder.info(name).sync == "excluded" })
                }
                try await yonder.shell("mv .yonder-partial-d d; mv .yonder-partial-n n; mv .yonder-partial-k known")
                try await yonder.expectSent(excluding: "fifo")
                #expect(yonder.sourceText("d/in") == "in\n" && yonder.sourceText("n") == "new\n")
                #expect(yonder.sourceText("known") == "known")
            }
        }

        @Test("SEND-17: --ignore and the configuration add names, directories with all below; without them it is sent")
        func configured() async throws {
            try await Installation.run { yonder async throws in
                try "[ignore]\nnames = [\"*.part\"]\n".write(
                    toFile: yonder.directory["config.toml"].string, atomically: true, encoding: .utf8)
                try yonder.write("a", to: "a")
                try await yonder.mountSource("--ignore", "node_modules", "--ignore", "*.o")
                try await yonder.shell(
                    """
                    echo 1 > film.part; mkdir -p p/node_modules/deep; echo 2 > p/node_modules/deep/file; echo 3 > x.o
                    echo 4 > sent; mkdir q; mkdir q/r; echo 5 > q/r/s; mv p/node_modules/deep q/
                    """)
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(try await yonder.pending().isEmpty)
                let there = try await Command.shell("cd \"$1\" && find . -type f | sort", yonder.source.string).output
                #expect(there == "./a\n./q/deep/file\n./q/r/s\n./sent\n")
                #expect(try await yonder.info("p/node_modules").sync == "excluded")
                #expect(try await yonder.yonder("why", yonder["x.o"]).output.contains("like '*.o' is never sent"))
                // They are kept, and survive the daemon.
                try await yonder.killDaemon()
                try await yonder.mountSource()
                #expect(try await yonder.shell("cat film.part x.o; echo 6 > y.o") == "1\n3\n")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("y.o") == nil)
                // What is not ignored any more is sent.
                #expect(try await yonder.yonder("unmount", yonder.mount.string).status == 0)
                try await yonder.mountSource("--ignore", "")
                #expect(try await yonder.yonder("wait", "--timeout", "20").status == 0)
                #expect(yonder.sourceText("x.o") == "3\n" && yonder.sourceText("y.o") == "6\n")
                #expect(yonder.sourceText("film.part") == nil)
                let wrong = try await yonder.yonder(
                    "mount", yonder.source.string, yonder.mount.string, "--ignore", "a/b")
                #expect(wrong.status == 64)
            }
        }
    }
}
