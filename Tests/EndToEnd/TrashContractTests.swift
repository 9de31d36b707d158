import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension ProvidedMount {
    /// A remote that can trash.
    static var trashing: InMemoryProvider.Options {
        var options = InMemoryProvider.Options()
        options.trash = true
        return options
    }

    /// A path in the trash of who runs the tests.
    func trashed(_ name: String) -> String { self[".Trash-\(getuid())/files/\(name)"] }

    func isThere(_ path: String) async throws -> Bool { try await Command.run("test", "-e", path).status == 0 }

    func isSynced() async throws -> Bool { try await host.engine.waitUntilSynced(within: .seconds(10)) }
}

extension RealMount {
    /// The contract of `trashItem(withIdentifier:)`, by the numbers of its page.
    @Suite struct Trashing {
        private static func fill(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("inner", in: "d", content: RemoteContent("inner"), identifier: "inner")
            tree.addDirectory("sub", in: "d", identifier: "sub")
            tree.addFile("deep", in: "sub", content: RemoteContent("deep"), identifier: "deep")
            tree.addFile("file", content: RemoteContent("text"), identifier: "file")
        }

        private static func run(_ test: (ProvidedMount) async throws -> Void) async throws {
            try await ProvidedMount.run(options: ProvidedMount.trashing) {
                fill(&$0)
            } _: { mount async throws in
                _ = try await Command.run("ls", "-R", mount.path.string)
                try await test(mount)
            }
        }

        @Test("T1 files and directories go to the trash, and the remote hears of it") func t1() async throws {
            try await Self.run { mount async throws in
                try mount.host.trashItem(withIdentifier: "file")
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await Command.run("ls", mount.path.string).output == "")
                #expect(try await Command.run("cat", mount.trashed("file")).output == "text")
                #expect(try await Command.run("cat", mount.trashed("d/sub/deep")).output == "deep")
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["file"]?.isTrashed == true)
                #expect(mount.provider.tree["d"]?.isTrashed == true)
                #expect(mount.provider.tree["inner"]?.parentItemIdentifier == "d")
                let sent = mount.provider.log.calls(of: .modify, "file")
                #expect(sent.map(\.fields) == [.parentItemIdentifier])
            }
        }

        @Test("T2 it is done before any network activity, and offline") func t2() async throws {
            try await Self.run { mount async throws in
                mount.provider.faults.failEverything(with: FileProviderError(.serverUnreachable))
                let calls = mount.provider.log.count(of: .modify)
                try mount.host.trashItem(withIdentifier: "file")
                #expect(mount.provider.log.count(of: .modify) == calls)
                #expect(try await !mount.isThere(mount["file"]))
                #expect(try await mount.isThere(mount.trashed("file")))
                try mount.host.untrashItem(withIdentifier: "file")
                #expect(try await mount.isThere(mount["file"]))
                try mount.host.trashItem(withIdentifier: "file")
                mount.provider.faults.clear()
                try await mount.host.engine.retry()
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["file"]?.isTrashed == true)
            }
        }

        @Test("T3 the item is as it was, but for being trashed") func t3() async throws {
            try await Self.run { mount async throws in
                for identifier in ["file", "d"] as [ItemIdentifier] {
                    let expected = try mount.host.item(for: identifier).moved(to: .trashContainer)
                    let trashed = try mount.host.trashItem(withIdentifier: identifier)
                    #expect(trashed.isTrashed)
                    #expect(trashed == expected)
                    #expect(try mount.host.trashItem(withIdentifier: identifier) == expected)
                }
                // Also the second of its name, which has another there.
                mount.provider.change { $0.addFile("file", content: RemoteContent("more"), identifier: "second") }
                #expect(await eventually { (try? mount.host.item(for: "second")) != nil })
                #expect(try mount.host.trashItem(withIdentifier: "second").filename == "file")
                #expect(try await Command.run("cat", mount.trashed("file (2)")).output == "more")
            }
        }

        @Test("T4 what is trashed is in the working set, and here") func t4() async throws {
            try await Self.run { mount async throws in
                #expect(try mount.host.replica.database.item("file")?.inode.content == .dataless)
                try mount.host.trashItem(withIdentifier: "file")
                #expect(
                    await eventually {
                        (try? mount.host.replica.database.item("file")?.inode.content) == .materialized
                    })
                #expect(try await mount.isSynced())
                mount.provider.change { $0.write(RemoteContent("another text"), to: "file") }
                #expect(
                    await eventually {
                        let inode = try? mount.host.replica.database.item("file")?.inode
                        return inode?.content == .materialized && inode?.size == 12
                    })
                mount.provider.faults.failEverything(with: FileProviderError(.serverUnreachable))
                #expect(try await Command.run("cat", mount.trashed("file")).output == "another text")
                let number = try #require(try mount.host.replica.database.item("file")?.inode.number)
                let report = try await mount.host.engine.evict(number, isStrict: false)
                #expect(report.refusals.map(\.refusal) == [.nonEvictable])
            }
        }

        @Test("T5 what a trashed directory holds leaves the working set, and stays as it was") func t5() async throws {
            try await Self.run { mount async throws in
                #expect(try await Command.run("cat", mount["d/inner"]).output == "inner")
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                // All that is wanted of the trash is here, and the content below the directory is not wanted.
                let failures = try await mount.host.engine.waitUntilDownloaded(below: nil, within: .seconds(20))
                #expect(failures?.count == 0)
                #expect(mount.provider.log.count(of: .fetch, "deep") == 0)
                let database = mount.host.replica.database
                #expect(try database.item("deep")?.inode.content == .dataless)
                // What a reader has got is recorded a moment later.
                #expect(await eventually { (try? database.item("inner")?.inode.content) == .materialized })
                let report = try await mount.host.engine.evict(
                    try #require(try database.item("inner")).inode.number, isStrict: false)
                #expect(report.refusals.map(\.refusal) == [.nonEvictable])
                mount.provider.log.clear()
                mount.provider.change { tree in
                    tree.addFile("new", in: "d", content: RemoteContent("new"), identifier: "new")
                    tree.write(RemoteContent("changed"), to: "inner")
                    tree.delete("deep")
                    tree.addFile("sign", content: RemoteContent("x"), identifier: "sign")
                }
                #expect(await eventually { (try? mount.host.item(for: "sign")) != nil })
                let look = "cd \"$1\" && find . | sort && cat d/inner"
                let files = mount[".Trash-\(getuid())/files"]
                #expect(
                    try await Command.shell(look, files).output == ".\n./d\n./d/inner\n./d/sub\n./d/sub/deep\ninner")
                mount.provider.change { $0.expireAnchors() }
                try await mount.host.engine.refresh()
                #expect(mount.provider.log.count(of: .enumerate, "d") == 0)
                #expect(mount.provider.log.count(of: .enumerate, "sub") == 0)
                // Back in the working set it is what the remote has.
                try mount.host.untrashItem(withIdentifier: "d")
                #expect(
                    try await eventually(within: .seconds(10)) {
                        try await Command.run("ls", "-R", mount["d"]).output.split(separator: "\n").map(String.init)
                            == ["\(mount["d"]):", "inner", "new", "sub", "\(mount["d/sub"]):"]
                    })
                #expect(
                    try await eventually { try await Command.run("cat", mount["d/inner"]).output == "changed" })
            }
        }

        @Test("T6 a shared file, and one in a trashed directory, is shared no more, and not again when it comes back")
        func t6() async throws {
            try await Self.run { mount async throws in
                mount.provider.change { tree in
                    tree.share("file")
                    tree.share("inner")
                }
                #expect(mount.provider.tree["file"]?.isShared == true)
                try mount.host.trashItem(withIdentifier: "file")
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["file"]?.isShared == false)
                #expect(mount.provider.tree["inner"]?.isShared == false)
                // One call says it, and nothing else is changed.
                let applied = mount.provider.tree.applied.filter { $0.identifier == "file" }
                #expect(applied.map(\.kind) == [.modify])
                #expect(applied.map(\.fields) == [.parentItemIdentifier])
                let directory = mount.provider.tree.applied.filter { $0.identifier == "d" }
                #expect(directory.map(\.fields) == [.parentItemIdentifier])
                #expect(!mount.provider.tree.applied.contains { $0.identifier == "inner" })
                try mount.host.untrashItem(withIdentifier: "file")
                try mount.host.untrashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                for (identifier, parent) in [("file", .rootContainer), ("inner", "d")]
                    as [(ItemIdentifier, ItemIdentifier)]
                {
                    #expect(mount.provider.tree[identifier]?.parentItemIdentifier == parent)
                    #expect(mount.provider.tree[identifier]?.isTrashed == false)
                    #expect(mount.provider.tree[identifier]?.isShared == false, "\(identifier)")
                }
                // What comes back is what it was, and one call brings it.
                let all = mount.provider.tree.applied.filter { $0.identifier == "file" || $0.identifier == "d" }
                #expect(all.count == 4 && all.allSatisfy { $0.kind == .modify && $0.fields == [.parentItemIdentifier] })
                #expect(try await Command.run("cat", mount["file"], mount["d/inner"]).output == "textinner")
            }
        }

        @Test("T7 without a parent it goes back to where it was") func t7() async throws {
            try await Self.run { mount async throws in
                let before = try mount.host.item(for: "inner")
                try mount.host.trashItem(withIdentifier: "inner")
                #expect(try mount.host.replica.database.item("inner")?.trash?.parent == "d")
                #expect(try mount.host.untrashItem(withIdentifier: "inner") == before)
                #expect(try await mount.isSynced())
                try mount.host.trashItem(withIdentifier: "inner")
                #expect(try await mount.isSynced())
                try mount.host.untrashItem(withIdentifier: "inner")
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["inner"]?.parentItemIdentifier == "d")
                // Also when that directory has another name and place by then.
                try mount.host.trashItem(withIdentifier: "inner")
                try await Command.shell("mkdir \"$1/new\" && mv \"$1/d\" \"$1/new/e\"", mount.path.string)
                    .expectSuccess()
                #expect(try mount.host.untrashItem(withIdentifier: "inner").parentItemIdentifier == "d")
                #expect(try await Command.run("cat", mount["new/e/inner"]).output == "inner")
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree.identifier(at: "new/e/inner") == "inner")
                // Elsewhere when that is said.
                try mount.host.trashItem(withIdentifier: "inner")
                let moved = try mount.host.untrashItem(withIdentifier: "inner", toParentItemIdentifier: "sub")
                #expect(moved.parentItemIdentifier == "sub")
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["inner"]?.parentItemIdentifier == "sub")
            }
        }

        @Test("T7 where its directory is gone the nearest that is left takes it, and a taken name is decorated")
        func t7WithoutTheParent() async throws {
            try await Self.run { mount async throws in
                try mount.host.trashItem(withIdentifier: "deep")
                try await mount.host.deleteItem(withIdentifier: "sub")
                #expect(try mount.host.untrashItem(withIdentifier: "deep").parentItemIdentifier == "d")
                try mount.host.trashItem(withIdentifier: "deep")
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try mount.host.untrashItem(withIdentifier: "deep").parentItemIdentifier == .rootContainer)
                _ = try mount.host.renameItem(withIdentifier: "file", toName: "file.txt")
                try mount.host.trashItem(withIdentifier: "file")
                _ = try mount.host.createDirectory(withName: "file.txt", inParentItemIdentifier: .rootContainer)
                #expect(try mount.host.untrashItem(withIdentifier: "file").filename == "file (2).txt")
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["file"]?.filename == "file (2).txt")
                #expect(mount.provider.tree["deep"]?.parentItemIdentifier == .rootContainer)
            }
        }

        @Test("T8 without the capability there is no trashing") func t8() async throws {
            try await Self.run { mount async throws in
                mount.provider.change { $0.edit("file") { $0.capabilities.remove(.allowsTrashing) } }
                #expect(
                    await eventually {
                        (try? mount.host.item(for: "file"))?.capabilities.contains(.allowsTrashing) == false
                    })
                try mount.host.trashItem(withIdentifier: "inner")
                let error = #expect(throws: FileProviderError.self) {
                    try mount.host.trashItem(withIdentifier: "file")
                }
                #expect(error?.errno == .permissionDenied)
                let moved = try await Command.run("mv", mount["file"], mount.trashed("file"))
                #expect(moved.status != 0 && moved.errors.contains("Permission denied"), "\(moved.errors)")
                #expect(try await mount.isThere(mount["file"]))
            }
        }

        @Test("T9 what fails gives an error and no item, and changes nothing") func t9() async throws {
            try await Self.run { mount async throws in
                func code(_ identifier: ItemIdentifier) -> FileProviderError? {
                    #expect(throws: FileProviderError.self) { try mount.host.trashItem(withIdentifier: identifier) }
                }
                #expect(code("nothing")?.code == .noSuchItem)
                #expect(code(.rootContainer)?.errno == .resourceBusy)
                let notTrashed = #expect(throws: FileProviderError.self) {
                    try mount.host.untrashItem(withIdentifier: "file")
                }
                #expect(notTrashed?.code == .noSuchItem)
                #expect(try await Command.run("ls", "-A", mount.path.string).output == "d\nfile\n")
            }
            try await ProvidedMount.run {
                $0.addFile("file", content: RemoteContent("text"), identifier: "file")
            } _: { mount async throws in
                _ = try await Command.run("ls", mount.path.string)
                let error = #expect(throws: FileProviderError.self) {
                    try mount.host.trashItem(withIdentifier: "file")
                }
                #expect(error?.code == .featureUnsupported)
                for name in [".Trash", ".Trash-0", ".Trash-1000"] {
                    let made = try await Command.run("mkdir", mount[name])
                    #expect(made.errors.contains("Operation not permitted"), "\(name)")
                }
                #expect(try mount.host.item(for: "file").capabilities.contains(.allowsTrashing) == false)
            }
        }
    }
}
