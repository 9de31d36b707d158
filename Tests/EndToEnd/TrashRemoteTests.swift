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
    /// The trash and the remote's changes, and what reaches the remote.
    @Suite struct TrashAndRemote {
        private static func run(_ test: (ProvidedMount) async throws -> Void) async throws {
            try await ProvidedMount.run(options: ProvidedMount.trashing, listing: .everything) { tree in
                tree.addDirectory("d", identifier: "d")
                tree.addFile("inner", in: "d", content: RemoteContent("inner"), identifier: "inner")
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            } _: { mount async throws in
                try await test(mount)
            }
        }

        private func information(_ name: String, _ mount: ProvidedMount) async throws -> String {
            try await Command.run("cat", mount[".Trash-\(getuid())/info/\(name).trashinfo"]).output
        }

        @Test("what is trashed on the remote is in the trash here, and what is restored there comes back")
        func followsTheRemote() async throws {
            try await Self.run { mount async throws in
                let inode = try await Command.run("stat", "-c", "%i", mount["d/inner"]).output
                mount.provider.change { $0.trash("inner") }
                #expect(try await eventually { try await mount.isThere(mount.trashed("inner")) })
                #expect(try await eventually { try await !mount.isThere(mount["d/inner"]) })
                #expect(try await Command.run("stat", "-c", "%i", mount.trashed("inner")).output == inode)
                #expect(try await information("inner", mount).contains("\nPath=d/inner\nDeletionDate=20"))
                #expect(try await Command.run("cat", mount.trashed("inner")).output == "inner")
                mount.provider.change { $0.move("inner", to: .rootContainer) }
                #expect(try await eventually { try await mount.isThere(mount["inner"]) })
                #expect(try await eventually { try await !mount.isThere(mount.trashed("inner")) })
                #expect(try await eventually { try await information("inner", mount) == "" })
                #expect(try await Command.run("stat", "-c", "%i", mount["inner"]).output == inode)
                #expect(mount.provider.log.count(of: .modify) == 0)
            }
        }

        @Test("the remote's trash is there from the first mount on") func isListedAtTheStart() async throws {
            try await ProvidedMount.run(options: ProvidedMount.trashing) { tree in
                tree.addFile("old", content: RemoteContent("old"), identifier: "old")
                tree.trash("old")
                tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            } _: { mount async throws in
                #expect(try await eventually { try await mount.isThere(mount.trashed("old")) })
                #expect(try await Command.run("cat", mount.trashed("old")).output == "old")
                #expect(
                    try mount.host.untrashItem(withIdentifier: "old").parentItemIdentifier == .rootContainer)
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["old"]?.parentItemIdentifier == .rootContainer)
            }
        }

        @Test("trashed here and changed there: it is trashed, with the remote's content") func bothChanged()
            async throws
        {
            try await Self.run { mount async throws in
                let gate = mount.provider.faults.hold(.modify)
                try mount.host.trashItem(withIdentifier: "file")
                #expect(await eventually { gate.waiting > 0 })
                mount.provider.change { $0.write(RemoteContent("changed there"), to: "file") }
                gate.open()
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["file"]?.isTrashed == true)
                #expect(
                    try await eventually {
                        try await Command.run("cat", mount.trashed("file")).output == "changed there"
                    })
            }
        }

        @Test("written here and trashed before it was sent: what was written is in the remote's trash")
        func editsAreKept() async throws {
            try await Self.run { mount async throws in
                let write = "echo more >> \"$1\" && echo new > \"$2\""
                #expect(try await Command.shell(write, mount["file"], mount["made"]).status == 0)
                try mount.host.trashItem(withIdentifier: "file")
                let made = try #require(try mount.host.replica.database.item(named: "made", in: .root))
                try mount.host.trashItem(withIdentifier: made.identifier ?? made.placeholder)
                #expect(try await mount.isSynced())
                let tree = mount.provider.tree
                #expect(tree["file"]?.isTrashed == true)
                #expect(tree.content(of: "file")?[0..<9] == Array("textmore\n".utf8))
                let sent = try #require(try mount.host.replica.database.item(row: made.id)?.identifier)
                #expect(tree[sent]?.isTrashed == true)
                #expect(tree.content(of: sent)?[0..<4] == Array("new\n".utf8))
            }
        }

        @Test("restored while its trashing is on the way, it is back on the remote, too") func isRestoredSoon()
            async throws
        {
            try await Self.run { mount async throws in
                let gate = mount.provider.faults.hold(.modify, times: 1)
                let before = try mount.host.item(for: "inner")
                try mount.host.trashItem(withIdentifier: "inner")
                #expect(await eventually { gate.waiting > 0 })
                #expect(try mount.host.untrashItem(withIdentifier: "inner") == before)
                gate.open()
                #expect(
                    try await eventually { try await mount.isSynced() && mount.provider.log.count(of: .modify) > 1 })
                #expect(mount.provider.tree["inner"]?.parentItemIdentifier == "d")
                #expect(try await Command.run("cat", mount["d/inner"]).output == "inner")
                #expect(try await Command.run("ls", mount[".Trash-\(getuid())/info"]).output == "")
            }
        }

        @Test("who moves an item out of the trash by hand leaves no trace for long") func tidiesUp() async throws {
            try await Self.run { mount async throws in
                try mount.host.trashItem(withIdentifier: "file")
                try mount.host.trashItem(withIdentifier: "inner")
                #expect(try await Command.run("mv", mount.trashed("file"), mount["file"]).status == 0)
                #expect(try await information("file", mount) != "")
                let (_, effects) = try mount.host.replica.change(open: NothingOpen()) {
                    try $0.trash.removeOrphanedInformation(before: FileTimestamp.now)
                }
                #expect(!effects.invalidations.isEmpty)
                let directory = try #require(try informationDirectory(mount))
                #expect(try mount.host.replica.database.items(in: directory).map(\.name) == ["inner.trashinfo"])
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["file"]?.parentItemIdentifier == .rootContainer)
            }
        }

        private func informationDirectory(_ mount: ProvidedMount) throws -> InodeNumber? {
            let database = mount.host.replica.database
            guard let top = try database.item(named: ".Trash-\(getuid())", in: .root) else { return nil }
            return try database.item(named: "info", in: top.inode.number)?.inode.number
        }

        @Test("deleting from the trash deletes on the remote, a directory with all below it") func deletes()
            async throws
        {
            try await Self.run { mount async throws in
                try mount.host.trashItem(withIdentifier: "file")
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                // It is unknown here.
                mount.provider.change { $0.addFile("new", in: "d", content: RemoteContent("x"), identifier: "new") }
                #expect(try await Command.run("rm", mount.trashed("file")).status == 0)
                try await mount.host.deleteItem(withIdentifier: "d")
                #expect(try await information("d", mount) == "")
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree.count == 0)
                #expect(try mount.host.replica.database.trashedItems().isEmpty)
            }
        }

        @Test(
            "TRASH-9: what another client has restored is not deleted with the trash, nor what was in it",
            arguments: [false, true], [false, true])
        func deletesOnlyFromTheTrash(areSingle: Bool, isHeardFirst: Bool) async throws {
            try await Self.run { mount async throws in
                // The deletion of a file that was not read waits until the kernel has forgotten it.
                _ = try await Command.run("cat", mount["d/inner"], mount["file"])
                for name in ["d", "file"] { try mount.host.trashItem(withIdentifier: ItemIdentifier(name)) }
                #expect(try await mount.isSynced())
                mount.host.engine.pause(.user)
                let removed = try await Command.run(
                    "rm", "-r", areSingle ? mount.trashed("d/inner") : mount.trashed("d"), mount.trashed("file"))
                #expect(removed.status == 0, "\(removed.errors)")
                // What comes later: the deletions, which begin with a lookup, or the news.
                let gates =
                    isHeardFirst
                    ? ["d", "file"].map { mount.provider.faults.hold(.item, of: $0) }
                    : [mount.provider.faults.hold(.changes)]
                mount.provider.change { tree in
                    tree.move("d", to: .rootContainer)
                    tree.move("file", to: .rootContainer)
                    tree.addFile("late", in: "d", content: RemoteContent("late"))
                }
                mount.host.engine.pause(nil)
                if isHeardFirst {
                    let replica = mount.host.replica.database
                    #expect(await eventually { (try? replica.item("d"))??.base.parent == .rootContainer })
                } else {
                    #expect(await eventually { (try? mount.host.replica.database.pendingDeletions().isEmpty) == true })
                }
                for gate in gates { gate.open() }
                #expect(try await mount.isSynced())
                #expect(
                    try await eventually {
                        try await Command.run("cat", mount["d/late"], mount["d/inner"], mount["file"]).output
                            == "lateinnertext"
                    })
                let tree = mount.provider.tree
                #expect(["d/late", "d/inner", "file"].allSatisfy { tree.identifier(at: $0) != nil })
            }
        }

        @Test("TRASH-9: what another client has moved out of a directory in the trash is not deleted with it")
        func movedOutOfATrashedDirectory() async throws {
            try await Self.run { mount async throws in
                // The deletion of a file that was not read waits until the kernel has forgotten it.
                _ = try await Command.run("cat", mount["d/inner"])
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                mount.host.engine.pause(.user)
                try await Command.run("rm", "-r", mount.trashed("d")).expectSuccess()
                // The deletions come before the news.
                let news = mount.provider.faults.hold(.changes)
                mount.provider.change { $0.move("inner", to: .rootContainer) }
                mount.host.engine.pause(nil)
                #expect(await eventually(within: .seconds(20)) { mount.provider.tree["d"] == nil })
                news.open()
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["inner"]?.parentItemIdentifier == .rootContainer)
                #expect(try await eventually { try await Command.run("cat", mount["inner"]).output == "inner" })
            }
        }

        @Test("TRASH-9: a directory that another client restores while its deletion is under way stays")
        func restoredMeanwhile() async throws {
            try await Self.run { mount async throws in
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                // What was in it is deleted before it.
                let gate = mount.provider.faults.hold(.delete, of: "d")
                #expect(try await Command.run("rm", "-r", mount.trashed("d")).status == 0)
                #expect(await eventually { gate.waiting > 0 })
                mount.provider.change { tree in
                    tree.move("d", to: .rootContainer)
                    tree.addFile("late", in: "d", content: RemoteContent("late"))
                }
                gate.open()
                #expect(try await mount.isSynced())
                #expect(try await eventually { try await Command.run("cat", mount["d/late"]).output == "late" })
            }
        }

        @Test(
            "TRASH-9: a directory that was removed here and trashed by another client is in the trash, with what is new in it"
        )
        func removedHereAndTrashedThere() async throws {
            try await Self.run { mount async throws in
                _ = try await Command.run("cat", mount["d/inner"])
                mount.host.engine.pause(.user)
                #expect(try await Command.run("rm", "-r", mount["d"]).status == 0)
                mount.provider.change { tree in
                    tree.addFile("late", in: "d", content: RemoteContent("late"), identifier: "late")
                    tree.trash("d")
                }
                mount.host.engine.pause(nil)
                #expect(try await eventually { try await mount.isThere(mount.trashed("d/late")) })
                #expect(try await mount.isSynced())
                #expect(mount.provider.tree["late"] != nil)
                #expect(mount.provider.tree["d"]?.isTrashed == true)
            }
        }

        @Test("TRASH-6: what was restored here stays, although another client has emptied the trash meanwhile")
        func restoredHere() async throws {
            try await Self.run { mount async throws in
                _ = try await Command.run("cat", mount["d/inner"], mount["file"])
                for name in ["d", "file"] { try mount.host.trashItem(withIdentifier: ItemIdentifier(name)) }
                #expect(try await mount.isSynced())
                mount.host.engine.pause(.user)
                for name in ["d", "file"] { _ = try mount.host.untrashItem(withIdentifier: ItemIdentifier(name)) }
                mount.provider.change { tree in for name in ["d", "file"] { tree.delete(ItemIdentifier(name)) } }
                mount.host.engine.pause(nil)
                #expect(try await mount.isSynced())
                #expect(try await Command.run("cat", mount["d/inner"], mount["file"]).output == "innertext")
                #expect(["d/inner", "file"].allSatisfy { mount.provider.tree.identifier(at: $0) != nil })
                #expect(!mount.host.engine.warnings.texts.contains { $0.contains("is lost") })
            }
        }

        @Test("TRASH-6: what was restored here and not downloaded before it was deleted there is reported as lost")
        func restoredAndNotHere() async throws {
            try await Self.run { mount async throws in
                _ = try await Command.run("ls", mount["d"])
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                mount.host.engine.pause(.user)
                _ = try mount.host.untrashItem(withIdentifier: "d")
                mount.provider.change { $0.delete("d") }
                mount.host.engine.pause(nil)
                #expect(
                    try await eventually {
                        mount.host.engine.warnings.texts.contains { $0.hasPrefix("'inner' was restored here") }
                    }, "\(mount.host.engine.warnings.texts)")
            }
        }

        @Test("deleted for good on the remote it is gone from the trash here") func isDeletedThere() async throws {
            try await Self.run { mount async throws in
                try mount.host.trashItem(withIdentifier: "d")
                #expect(try await mount.isSynced())
                mount.provider.change { $0.delete("d") }
                #expect(try await eventually { try await !mount.isThere(mount.trashed("d")) })
                #expect(try await information("d", mount) == "")
            }
        }

        @Test("the trash's own files never reach the remote") func staysHere() async throws {
            try await Self.run { mount async throws in
                let top = mount[".Trash-\(getuid())"]
                let make =
                    "mkdir -p \"$1/files\" \"$1/info\" && echo x > \"$1/info/y.trashinfo\" && mkdir \"$1/expunged\""
                #expect(try await Command.shell(make, top).status == 0)
                #expect(try await mount.isSynced())
                #expect(mount.provider.log.count(of: .create) == 0)
                #expect(try await Command.run("mkdir", mount[".Trash"]).errors.contains("not permitted"))
                #expect(try await Command.run("mv", mount["file"], top + "/info/file").status == 0)
                #expect(try await Command.run("mv", top, mount["other"]).status != 0)
            }
        }
    }
}
