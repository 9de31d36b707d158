import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Files with several names that were renamed here, and whose answers were lost.
@Suite struct LinkRenamingTests {
    /// Renames a link so that the answer is lost.
    private func renameUnanswered(_ session: ProviderSession, _ item: FileProviderItem, _ name: String) async throws
        -> FileProviderItem
    {
        let renamed = item.renamed(name)
        _ = try await session.provider.modifyItem(
            renamed, baseVersion: item.itemVersion, changedFields: .filename, contents: nil, options: .failOnConflict,
            request: session.request)
        return renamed
    }

    /// Runs a test with a provider that is made anew.
    private func restarted(
        _ remote: FolderRemote, _ session: ProviderSession, _ test: (ProviderSession) async throws -> Void
    ) async throws {
        let provider = try await remote.makeProvider(for: session.manager)
        try await withCleanUp({ await provider.invalidate() }) {
            try await test(ProviderSession(provider: provider, manager: session.manager))
        }
    }

    @Test(
        "FOLDER-2: a link that was renamed here before the daemon was killed is the same item when the change is sent again"
    )
    func renamedWithoutAnAnswer() async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["docs", "never"] { try await remote.makeDirectory(directory) }
            try await remote.writeLinked("docs/f", "never/f")
            let item = try await session.find("docs/f")
            let renamed = try await renameUnanswered(session, item, "g")
            try await restarted(remote, session) { later in
                let stored = try await later.modify(renamed, .filename)
                #expect(stored.item.itemIdentifier == item.itemIdentifier)
                #expect(stored.item.filename == "g")
                _ = try await renameUnanswered(later, stored.item, "h")
            }
            // A deletion finds it, too, and the other link stays.
            try await restarted(remote, session) { later in
                try await later.delete(item)
                #expect(try FileManager.default.contentsOfDirectory(atPath: remote["docs"]).isEmpty)
                #expect(FileManager.default.fileExists(atPath: remote["never/f"]))
            }
        }
    }

    @Test("FOLDER-2: links that were renamed here before the daemon was killed are listed as the items that they were")
    func listedAfterRenamingsWithoutAnswers() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.writeLinked("a", "b")
            let before = try await session.list()
            let items = ["a", "b"].compactMap { name in before.first { $0.filename == name } }
            try #require(items.count == 2)
            // The other way round in the order of names.
            for (item, name) in zip(items, ["y", "x"]) { _ = try await renameUnanswered(session, item, name) }
            // Listed before both, and not known yet.
            try remote.link("x", as: "new")
            try await restarted(remote, session) { later in
                let after = try await later.list()
                #expect(after.map(\.filename).sorted() == ["new", "x", "y"])
                #expect(Set(after.map(\.itemIdentifier)).count == 3)
                #expect(after.first { $0.filename == "y" }?.itemIdentifier == items[0].itemIdentifier)
                #expect(after.first { $0.filename == "x" }?.itemIdentifier == items[1].itemIdentifier)
            }
        }
    }

    @Test("FOLDER-2: a listing that has read the old name of a link just before it is renamed does not undo the record")
    func listedWhileItIsRenamed() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.writeLinked("a", "b")
            let item = try await session.find("a")
            let folder = try #require(session.provider as? DirectoryProvider).folder
            let place = ChangeLog.Place("c", in: .rootContainer)
            let root = try folder.openRoot()
            defer { try? root.close() }
            try folder.renaming(item.itemIdentifier, FileStatus(of: "a", in: root), to: place) {
                folder.noteSeen(item.itemIdentifier, at: ChangeLog.Place("a", in: .rootContainer))
                try root.renameNew("a", to: "c", in: root)
            }
            #expect(folder.renamings.withLock { $0.places[item.itemIdentifier] } == place)
            // Seen there later, it has been moved back.
            folder.noteSeen(item.itemIdentifier, at: ChangeLog.Place("a", in: .rootContainer))
            #expect(folder.renamings.withLock { $0.places.isEmpty })
        }
    }

    @Test("FOLDER-3: a link at a name that an item was renamed to long ago is not taken for the item")
    func renamedBackInTheSource() async throws {
        try await FolderRemote.run { remote, session in
            for directory in ["docs", "never"] { try await remote.makeDirectory(directory) }
            try await remote.writeLinked("docs/f", "never/f")
            var item = try await session.find("docs/f")
            item.filename = "g"
            item = try await session.modify(item, .filename).item
            try await remote.rename("docs/g", to: "docs/f")
            let back = try await session.find("docs/f")
            try await remote.delete("docs/f")
            try remote.link("never/f", as: "docs/g")
            try await restarted(remote, session) { later in
                let code = await failureCode { _ = try await later.modify(back, .contents, content: [1]) }
                #expect(code == .noSuchItem)
                try await later.delete(back)
                #expect(FileManager.default.fileExists(atPath: remote["docs/g"]))
            }
        }
    }
}
