import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Files of the source that have several names.
@Suite struct HardLinkTests {
    private func inode(_ path: String) throws -> UInt64? {
        try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64
    }

    @Test("issue 14, 1.5: when one of two links is replaced in the source, the other is the same item and can be read")
    func theSiblingOfAReplacedLinkStays() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.writeLinked("one", "two")
            let before = try await session.list()
            #expect(Set(before.map(\.itemIdentifier)).count == 2)
            let sibling = try #require(before.first { $0.filename == "two" })
            // As an editor saves.
            try await remote.write(Array("edited".utf8), to: "new")
            _ = try await Command.run("mv", remote["new"], remote["one"])
            #expect(try await session.fetch(sibling.itemIdentifier).bytes == Array("shared".utf8))
            #expect(try await session.item(sibling.itemIdentifier).itemIdentifier == sibling.itemIdentifier)
            let after = try await session.list()
            #expect(after.first { $0.filename == "two" }?.itemIdentifier == sibling.itemIdentifier)
        }
    }

    @Test("a file keeps its identifier when a second link is made in the source, and when it is removed")
    func linksComeAndGo() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("shared".utf8), to: "one")
            let before = try await session.find("one")
            try remote.link("one", as: "a-link")
            let items = try await session.list()
            #expect(items.first { $0.filename == "one" }?.itemIdentifier == before.itemIdentifier)
            #expect(Set(items.map(\.itemIdentifier)).count == 2)
            try await remote.delete("one")
            let left = try await session.list()
            #expect(left.map(\.filename) == ["a-link"])
            #expect(left.first?.itemIdentifier == items.first { $0.filename == "a-link" }?.itemIdentifier)
        }
    }

    @Test(
        "FOLDER-3: an item whose name went in the source is not taken for another link of its file")
    func aLinkThatWent() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.writeLinked("one", "two")
            let one = try await session.find("one")
            let two = try await session.find("two")
            let anchor = try await session.anchor()
            // An editor that keeps the old file while it writes.
            let done = try await Command.shell(
                "cd \"$1\" && mv one saved && echo new > one && rm saved", remote.root.string)
            #expect(done.status == 0, "\(done.errors)")
            await #expect(throws: FileProviderError.self) { try await session.item(one.itemIdentifier) }
            let batch = try await session.changes(from: anchor, until: "the end of the first item") {
                $0.deleted.contains(one.itemIdentifier)
            }
            #expect(batch.updated.allSatisfy { $0.filename != "two" || $0.itemIdentifier == two.itemIdentifier })
        }
    }

    @Test("FOLDER-3: the deletion of an item whose name went in the source removes no other link of its file")
    func deletingALinkThatWent() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.writeLinked("one", "two")
            let one = try await session.find("one")
            _ = try await session.find("two")
            try await remote.delete("one")
            try? await session.delete(one)
            #expect(FileManager.default.fileExists(atPath: remote["two"]))
        }
    }

    @Test(
        "FOLDER-3, CONFLICT-1: no change of an item whose name went in the source reaches a link that was never listed",
        arguments: ["snapshot", ".Trash-4711/files"], [false, true])
    func aLinkThatWasNeverListed(directory: String, isMadeLater: Bool) async throws {
        for change in ["rm docs/f", "echo new > docs/new && mv docs/new docs/f"] {
            try await FolderRemote.run { remote, session in
                let link = "mkdir -p \(directory) && ln docs/f \(directory)/f"
                let steps = ["mkdir docs && printf shared > docs/f", isMadeLater ? "true" : link]
                func run(_ steps: [String]) async throws {
                    let line = (["cd \"$1\""] + steps).joined(separator: " && ")
                    #expect(try await Command.shell(line, remote.root.string).status == 0)
                }
                try await run(steps)
                let item = try await session.find("docs/f")
                try await run([isMadeLater ? link : "true", change])
                func expectGone(_ item: FileProviderItem, _ fields: ItemFields, _ content: [UInt8]? = nil) async {
                    let code = await failureCode { _ = try await session.modify(item, fields, content: content) }
                    #expect(code == .noSuchItem, "\(change): \(fields)")
                }
                await expectGone(item, .contents, [1])
                var changed = item
                changed.filename = "g"
                await expectGone(changed, .filename)
                if directory == "snapshot" {
                    changed = item
                    changed.parentItemIdentifier = try await session.find("snapshot").itemIdentifier
                    await expectGone(changed, .parentItemIdentifier)
                }
                try await session.delete(item)
                #expect(try String(contentsOfFile: remote["\(directory)/f"], encoding: .utf8) == "shared")
            }
        }
    }

    @Test("FOLDER-2: a file that is moved into an unlisted directory is followed if all its other links are known")
    func movedAway() async throws {
        for isLinked in [false, true] {
            try await FolderRemote.run { remote, session in
                for directory in ["docs", "never"] { try await remote.makeDirectory(directory) }
                try await remote.write(Array("shared".utf8), to: "docs/f")
                if isLinked { try remote.link("docs/f", as: "two") }
                let item = try await session.find("docs/f")
                try await remote.rename("docs/f", to: "never/f")
                #expect(try await session.item(item.itemIdentifier).itemIdentifier == item.itemIdentifier)
                try await session.delete(item)
                #expect(!FileManager.default.fileExists(atPath: remote["never/f"]))
                #expect(FileManager.default.fileExists(atPath: remote["two"]) == isLinked)
            }
        }
    }

    @Test("FOLDER-2: a link in a moved directory is followed, and not one that was never listed")
    func movedWithItsDirectory() async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["docs", "never", "snapshot"] { try await remote.makeDirectory(directory) }
            try await remote.writeLinked("docs/f", "snapshot/f")
            let item = try await session.find("docs/f")
            try await remote.rename("docs", to: "never/docs")
            try await session.delete(item)
            #expect(!FileManager.default.fileExists(atPath: remote["never/docs/f"]))
            #expect(FileManager.default.fileExists(atPath: remote["snapshot/f"]))
        }
    }

    @Test(
        "FOLDER-3: a file keeps its identifier when a second link is made and its directory is moved",
        arguments: ["other/docs", "renamed"], ["docs/g", "links/g"])
    func linkedAndMovedWithItsDirectory(to moved: String, link: String) async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["docs", "other", "links"] { try await remote.makeDirectory(directory) }
            try await remote.write(Array("shared".utf8), to: "docs/f")
            let item = try await session.find("docs/f")
            for directory in ["other", "links"] {
                _ = try await session.list(session.find(directory).itemIdentifier)
            }
            let anchor = try await session.anchor()
            try remote.link("docs/f", as: link)
            try await remote.rename("docs", to: moved)
            let batch = try await session.changes(from: anchor, until: "the new link") {
                $0.updated.contains { $0.filename == "g" }
            }
            let identifiers = Set(batch.updated.filter { $0.filename == "g" }.map(\.itemIdentifier))
            #expect(identifiers.count == 1 && !identifiers.contains(item.itemIdentifier))
            #expect(!batch.deleted.contains(item.itemIdentifier))
            #expect(try await session.find("\(moved)/f").itemIdentifier == item.itemIdentifier)
        }
    }

    @Test("a link that is renamed in the source is the same item") func aRenamedLinkIsTheSameItem() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.writeLinked("one", "two")
            for name in ["one", "two"] {
                let before = try await session.find(name)
                let anchor = try await session.anchor()
                try await remote.rename(name, to: "renamed " + name)
                let changes = try await session.changes(from: anchor, until: "the renaming of \(name)") {
                    $0.updated.contains { $0.filename == "renamed " + name }
                }
                let item = changes.updated.first { $0.filename == "renamed " + name }
                #expect(item?.itemIdentifier == before.itemIdentifier)
                #expect(!changes.deleted.contains(before.itemIdentifier))
            }
        }
    }

    @Test("a write through one link in the source is reported for the others") func changesOfOtherLinksAreReported()
        async throws
    {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            try await remote.writeLinked("one", "directory/two")
            let sibling = try await session.find("directory/two")
            let anchor = try await session.anchor()
            try await remote.write(Array("changed".utf8), to: "one")
            _ = try await session.changes(from: anchor, until: "news of the sibling") {
                $0.updated.contains {
                    $0.itemIdentifier == sibling.itemIdentifier && $0.documentSize == 7
                        && $0.itemVersion.contentVersion != sibling.itemVersion.contentVersion
                }
            }
            #expect(try await session.fetch(sibling.itemIdentifier).bytes == Array("changed".utf8))
        }
    }

    @Test("new content of a file with several links is written in place: all links have it, and the inode stays")
    func anEditKeepsTheInode() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("a longer first content".utf8), to: "one")
            try remote.link("one", as: "two")
            let inode = try inode(remote["one"])
            for content in ["short", "and longer again than it has been before"] {
                let item = try await session.find("one")
                let stored = try await session.modify(item, .contents, content: Array(content.utf8))
                #expect(stored.item.itemIdentifier == item.itemIdentifier)
                #expect(try String(contentsOfFile: remote["two"], encoding: .utf8) == content)
                #expect(try self.inode(remote["one"]) == inode)
                #expect(try self.inode(remote["two"]) == inode)
                #expect(try FileManager.default.contentsOfDirectory(atPath: remote.root.string).count == 2)
                try await session.list()
            }
            #expect(session.manager.warnings == [])
            #expect(try edits(remote) == [])
        }
    }

    @Test(
        "FOLDER-4: a file with several links is written in place where space cannot be allocated",
        .enabled("only root can mount") { FUSEAvailability.isRoot })
    func withoutAllocation() async throws {
        let remote = try FolderRemote()
        defer { remote.directory.remove() }
        // ramfs has leases, and no fallocate.
        try #require(try await Command.run("mount", "-t", "ramfs", "none", remote.root.string).status == 0)
        try await withCleanUp({ _ = try await Command.run("umount", "-q", "-l", remote.root.string) }) {
            try await remote.write(Array("short".utf8), to: "one")
            try remote.link("one", as: "two")
            let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
            let folder = try Folder(path: remote.root, manager: manager, leftoverAge: 1)
            let root = try folder.openRoot()
            defer { try? root.close() }
            let upload = try Upload(in: root, permissions: 0o644)
            try upload.file.writeAll("a longer content".utf8)
            let isWritten = try upload.writeInPlace(
                "one", expecting: FileStatus(of: "one", in: root), path: [], folder, BlockingCalls.Cancellation()
            ) {}
            #expect(isWritten)
            #expect(try String(contentsOfFile: remote["two"], encoding: .utf8) == "a longer content")
        }
    }

    @Test("a file with one link is replaced: a program that has it open keeps the old content")
    func aFileWithOneLinkIsReplaced() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("first".utf8), to: "one")
            let before = try inode(remote["one"])
            let reader = try FileHandle(forReadingFrom: URL(fileURLWithPath: remote["one"]))
            defer { try? reader.close() }
            let item = try await session.find("one")
            _ = try await session.modify(item, .contents, content: Array("second".utf8))
            #expect(try String(contentsOfFile: remote["one"], encoding: .utf8) == "second")
            #expect(try reader.readToEnd() == Data("first".utf8))
            #expect(try inode(remote["one"]) != before)
            #expect(session.manager.warnings == [])
        }
    }

    @Test("a file with several links that is open in the source is replaced, with a warning")
    func aFileInUseIsReplaced() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("first".utf8), to: "one")
            try remote.link("one", as: "two")
            let reader = try FileHandle(forReadingFrom: URL(fileURLWithPath: remote["two"]))
            defer { try? reader.close() }
            let item = try await session.find("one")
            _ = try await session.modify(item, .contents, content: Array("second".utf8))
            #expect(try String(contentsOfFile: remote["one"], encoding: .utf8) == "second")
            #expect(try reader.readToEnd() == Data("first".utf8))
            #expect(session.manager.warnings.contains { $0.contains("'one'") && $0.contains("hard links") })
            #expect(try await session.fetch(session.find("two").itemIdentifier).bytes == Array("first".utf8))
        }
    }

    private func keep(_ edit: InPlaceEdit, _ remote: FolderRemote) throws {
        try TestManager.store(for: remote.stateDirectory).put(edit, at: edit.key, in: InPlaceEdit.namespace)
    }

    /// The keys of the records of files that are being written in place.
    private func edits(_ remote: FolderRemote) throws -> [ProviderStoreKey] {
        try TestManager.store(for: remote.stateDirectory).list(in: InPlaceEdit.namespace).map(\.key)
    }

    @Test("a write in place that a crash interrupted is completed at the next start")
    func aCrashIsCompleted() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("old content".utf8), to: "one")
            try remote.link("one", as: "two")
            let item = try await session.find("one")
            // As the crash leaves it: the beginning is new.
            let copy = HiddenName.make()
            try await remote.write(Array("new".utf8), to: copy)
            let date = Date(timeIntervalSince1970: 1_600_000_000)
            try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: remote[copy])
            let edit = InPlaceEdit(
                directory: [], name: "one", file: FolderItems.file(of: item.itemIdentifier), copy: copy,
                begun: Int64(Date().timeIntervalSince1970))
            try keep(edit, remote)
            try await remote.write(Array("newcontent".utf8), to: "one")
            let provider = try await remote.makeProvider(for: session.manager)
            await provider.invalidate()
            #expect(try String(contentsOfFile: remote["two"], encoding: .utf8) == "new")
            #expect(try await session.find("one").contentModificationDate == FileTimestamp(seconds: 1_600_000_000))
            #expect(try FileManager.default.contentsOfDirectory(atPath: remote.root.string).sorted() == ["one", "two"])
            #expect(try edits(remote) == [])
        }
    }

    @Test("WRITE-15: a read-only domain leaves a partly written file unchanged, and a later start completes it")
    func aReadOnlyDomainCompletesNothing() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("old content".utf8), to: "one")
            let item = try await session.find("one")
            let copy = HiddenName.make()
            try await remote.write(Array("new".utf8), to: copy)
            let edit = InPlaceEdit(
                directory: [], name: "one", file: FolderItems.file(of: item.itemIdentifier), copy: copy,
                begun: Int64(Date().timeIntervalSince1970))
            try keep(edit, remote)
            var domain = remote.domain
            domain.isReadOnly = true
            let reader = try await remote.makeProvider(
                for: TestManager(domain: domain, stateDirectory: remote.stateDirectory))
            await reader.invalidate()
            #expect(try String(contentsOfFile: remote["one"], encoding: .utf8) == "old content")
            #expect(FileManager.default.fileExists(atPath: remote[copy]))
            #expect(try edits(remote) == [edit.key])
            let writer = try await remote.makeProvider(for: session.manager)
            await writer.invalidate()
            #expect(try String(contentsOfFile: remote["one"], encoding: .utf8) == "new")
            #expect(try edits(remote) == [])
        }
    }

    @Test("a change by another process after the crash is kept") func aLaterChangeIsLeftAlone() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("of another process".utf8), to: "one")
            let item = try await session.find("one")
            let copy = HiddenName.make()
            try await remote.write(Array("new".utf8), to: copy)
            let edit = InPlaceEdit(
                directory: [], name: "one", file: FolderItems.file(of: item.itemIdentifier), copy: copy, begun: 1000)
            try keep(edit, remote)
            let provider = try await remote.makeProvider(for: session.manager)
            await provider.invalidate()
            #expect(try String(contentsOfFile: remote["one"], encoding: .utf8) == "of another process")
        }
    }
}
