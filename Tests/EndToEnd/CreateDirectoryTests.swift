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
    /// The contract of `createDirectory(withName:inParentItemIdentifier:)` and of its siblings, by the numbers of its page.
    @Suite struct CreatingDirectories {
        @Test("C1 it is there at once, before any network activity") func c1() async throws {
            try await ProvidedMount.run { _ in
            } _: { mount async throws in
                _ = try await Command.run("ls", mount.path.string)
                // What waited for a call would never end: the daemon's own calls may begin at any moment, so they are not counted.
                for kind in ProviderCallKind.allCases { _ = mount.provider.faults.hold(kind) }
                defer { mount.provider.faults.clear() }
                _ = try mount.host.createDirectory(withName: "new", inParentItemIdentifier: .rootContainer)
                #expect(try await Command.run("test", "-d", mount["new"]).status == 0)
                #expect(try await Command.run("ls", mount.path.string).output == "new\n")
                #expect(mount.provider.tree.identifier(at: "new") == nil)
            }
        }

        @Test("C2 (NAME-4) its identifier is temporary, then the remote's, and the inode number stays") func c2()
            async throws
        {
            try await ProvidedMount.run { _ in
            } _: { mount async throws in
                let gate = mount.provider.faults.hold(.create)
                let made = try mount.host.createDirectory(withName: "new", inParentItemIdentifier: .rootContainer)
                #expect(!made.itemIdentifier.rawValue.isEmpty)
                let inode = try await Command.run("stat", "-c", "%i", mount["new"]).output
                #expect(await eventually { gate.waiting > 0 })
                gate.open()
                #expect(
                    await eventually {
                        (try? mount.host.item(for: made.itemIdentifier))?.itemIdentifier != made.itemIdentifier
                    })
                let permanent = try mount.host.item(for: made.itemIdentifier)
                #expect(mount.provider.tree[permanent.itemIdentifier]?.filename == "new")
                #expect(try mount.host.item(for: permanent.itemIdentifier) == permanent)
                #expect(try await Command.run("stat", "-c", "%i", mount["new"]).output == inode)
            }
        }

        @Test("C3 and C4 parent, name, date, kind and count are as said") func c3AndC4() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addDirectory("d", identifier: "d")
            } _: { mount async throws in
                let before = FileTimestamp.now
                let made = try mount.host.createDirectory(withName: "new", inParentItemIdentifier: "d")
                #expect(made.parentItemIdentifier == "d")
                #expect(made.filename == "new")
                #expect(made.kind == .directory)
                #expect(made.childItemCount == 0)
                let date = try #require(made.creationDate)
                #expect(before <= date && date <= FileTimestamp.now)
            }
        }

        @Test("C5 its capabilities say what may be done with it") func c5() async throws {
            try await ProvidedMount.run { _ in
            } _: { mount async throws in
                let made = try mount.host.createDirectory(withName: "new", inParentItemIdentifier: .rootContainer)
                #expect(
                    made.capabilities.isSuperset(of: [
                        .allowsAddingSubItems, .allowsReading, .allowsWriting, .allowsRenaming, .allowsReparenting,
                        .allowsDeleting,
                    ]))
                // And so they are: in an unlisted directory, too.
                _ = try mount.host.createDirectory(withName: "inner", inParentItemIdentifier: made.itemIdentifier)
                #expect(try await Command.run("test", "-d", mount["new/inner"]).status == 0)
            }
        }

        @Test("C6 it needs the parent's capability to add sub-items") func c6() async throws {
            try await ProvidedMount.run { tree in
                tree.addDirectory("fixed", identifier: "fixed")
                tree.edit("fixed") { $0.capabilities = .readOnly }
            } _: { mount async throws in
                _ = try await Command.run("ls", mount["fixed"])
                let error = #expect(throws: FileProviderError.self) {
                    try mount.host.createDirectory(withName: "new", inParentItemIdentifier: "fixed")
                }
                #expect(error?.errno == .permissionDenied)
                let shell = try await Command.run("mkdir", mount["fixed/new"])
                #expect(shell.errors.contains("Permission denied"))
            }
        }

        @Test("C7 what fails gives an error and no item") func c7() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addDirectory("taken", identifier: "taken")
            } _: { mount async throws in
                func code(_ name: String, in parent: ItemIdentifier = .rootContainer) -> FileProviderError? {
                    #expect(throws: FileProviderError.self) {
                        try mount.host.createDirectory(withName: name, inParentItemIdentifier: parent)
                    }
                }
                let collision = code("taken")
                #expect(collision?.code == .filenameCollision)
                #expect(collision?.item?.itemIdentifier == "taken")
                #expect(code("x", in: "nowhere")?.code == .noSuchItem)
                for name in ["", ".", "..", "a/b", "a\0b"] { #expect(code(name)?.errno == .invalidArgument, "\(name)") }
                #expect(code(String(repeating: "n", count: 256))?.errno != nil)
                #expect(mount.provider.log.count(of: .create) == 0)
            }
        }

        @Test("C8 the other actions exist, and reach the remote") func c8() async throws {
            try await ProvidedMount.run(listing: .everything) { tree in
                tree.addDirectory("d", identifier: "d")
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
                tree.addFile("both", content: RemoteContent("both"), identifier: "both")
                tree.addFile("doomed", in: "d", content: RemoteContent("x"), identifier: "doomed")
            } _: { mount async throws in
                let host = mount.host
                #expect(try host.renameItem(withIdentifier: "file", toName: "renamed").filename == "renamed")
                let moved = try await host.reparentItem(withIdentifier: "file", toParentItemWithIdentifier: "d")
                #expect(moved.parentItemIdentifier == "d" && moved.filename == "renamed")
                let both = try await host.reparentItem(
                    withIdentifier: "both", toParentItemWithIdentifier: "d", withNewName: "moved and renamed")
                #expect(both.parentItemIdentifier == "d" && both.filename == "moved and renamed")
                let collision = await failure {
                    _ = try await host.reparentItem(
                        withIdentifier: "both", toParentItemWithIdentifier: "d", withNewName: "doomed")
                }
                #expect(collision?.code == .filenameCollision && collision?.item?.itemIdentifier == "doomed")
                let invalid = await failure {
                    _ = try await host.reparentItem(
                        withIdentifier: "both", toParentItemWithIdentifier: "d", withNewName: "a/b")
                }
                #expect(invalid?.errno == .invalidArgument && invalid?.message == "'a/b' is not a valid file name")
                let intoItself = await failure {
                    _ = try await host.reparentItem(
                        withIdentifier: "d", toParentItemWithIdentifier: "d", withNewName: "inside")
                }
                #expect(intoItself?.errno == .invalidArgument && intoItself?.message.contains("into itself") == true)
                #expect(try host.setFavoriteRank(7, forItemIdentifier: "file").favoriteRank == 7)
                #expect(try host.setTagData([1, 2], forItemIdentifier: "file").tagData == [1, 2])
                let date = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 5)
                #expect(try host.setLastUsedDate(date, forItemIdentifier: "file").lastUsedDate == date)
                try await host.deleteItem(withIdentifier: "doomed")
                let imported = try host.importDocument(at: "/proc/self/mounts", toParentItemIdentifier: "d")
                #expect(imported.filename == "mounts")
                let copy = try host.importDocument(at: "/etc/passwd", toParentItemIdentifier: "d")
                #expect(try await host.engine.waitUntilSynced(within: .seconds(10)))
                let tree = mount.provider.tree
                #expect(tree["file"]?.filename == "renamed")
                #expect(tree["file"]?.parentItemIdentifier == "d")
                #expect(tree["file"]?.favoriteRank == 7)
                #expect(tree["file"]?.tagData == [1, 2])
                #expect(tree["file"]?.lastUsedDate == date)
                #expect(tree["both"]?.filename == "moved and renamed" && tree["both"]?.parentItemIdentifier == "d")
                #expect(tree["doomed"] == nil)
                let remote = try host.item(for: copy.itemIdentifier)
                let bytes = try Data(contentsOf: URL(fileURLWithPath: "/etc/passwd"))
                #expect(tree.content(of: remote.itemIdentifier)?[0..<Int64(bytes.count)] == [UInt8](bytes))
                let names = try await Command.run("ls", mount["d"]).output
                #expect(names == "mounts\nmoved and renamed\npasswd\nrenamed\n")
            }
        }

        @Test("CMD-1: a tree of which nothing was listed is deleted") func unlistedTree() async throws {
            try await ProvidedMount.run(listing: .root) { tree in
                tree.addDirectory("top", identifier: "top")
                for outer in 0..<20 {
                    let directory = tree.addDirectory("d\(outer)", in: "top")
                    for inner in 0..<9 { tree.addDirectory("e\(inner)", in: directory) }
                }
            } _: { mount async throws in
                try await mount.host.deleteItem(withIdentifier: "top")
                #expect(try await Command.run("ls", mount.path.string).output.isEmpty)
                #expect(mount.provider.log.count(of: .enumerate) < 300)
                #expect(try await mount.host.engine.waitUntilSynced(within: .seconds(60)))
                #expect(mount.provider.tree["top"] == nil)
            }
        }
    }
}
