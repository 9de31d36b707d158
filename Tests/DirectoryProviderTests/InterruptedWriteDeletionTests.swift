import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Directories that are deleted or trashed with the new content of a file that is partly written.
extension InterruptedWriteTests {
    /// The hidden names at the root.
    private func hidden(_ remote: FolderRemote) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: remote.root.string).filter(HiddenName.isOne)
    }

    private func makeTrash(in remote: FolderRemote) async throws {
        for path in [".Trash-1000", ".Trash-1000/files"] { try await remote.makeDirectory(path) }
    }

    /// A directory that is deleted, with the new content of a file that has another link.
    struct DoomedDirectory: Sendable {
        var isRecursive: Bool
        /// The name of the directory in it that has the new content; nil for none.
        var inner: String?
        /// Whether one of the links is in it.
        var hasLink: Bool
    }

    @Test(
        "FOLDER-4: a directory that is deleted leaves the new content of a file that another program uses",
        arguments: [
            DoomedDirectory(isRecursive: false, inner: nil, hasLink: false),
            DoomedDirectory(isRecursive: true, inner: nil, hasLink: false),
            DoomedDirectory(isRecursive: true, inner: nil, hasLink: true),
            // Hidden, as an interrupted deletion leaves it, and a name that is not UTF-8.
            DoomedDirectory(isRecursive: false, inner: HiddenName.prefix + "1", hasLink: false),
            DoomedDirectory(isRecursive: true, inner: "a\u{10FFFF}", hasLink: true),
        ])
    func directoryIsNeeded(_ doomed: DoomedDirectory) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            let (copy, _) = try await interrupt(remote, session, leaving: "the content", in: "directory")
            try remote.link("directory/one", as: "two")
            if !doomed.hasLink { try FileManager.default.removeItem(atPath: remote["directory/one"]) }
            if let inner = doomed.inner {
                let outer = try FileDescriptor.openDirectory(remote.root.appending("directory"))
                defer { try? outer.close() }
                try outer.makeDirectory(named: inner, permissions: 0o700)
                let place = try outer.openDirectory(named: inner)
                defer { try? place.close() }
                try outer.rename(copy, to: copy, in: place)
            }
            let other = try FileHandle(forUpdating: URL(fileURLWithPath: remote["two"]))
            let directory = try await session.find("directory")
            try await session.delete(directory, recursively: doomed.isRecursive)
            #expect(!FileManager.default.fileExists(atPath: remote["directory"]))
            #expect(remote.text("two") == "the content")
            #expect(remote.text(copy) == Self.new)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).first?.record.holder == [])
            try other.close()
            try await restart(remote, session)
            #expect(remote.text("two") == Self.new)
            #expect(try hidden(remote) == [])
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: a directory that another program has trashed leaves the new content of a file when it is deleted")
    func deletedFromTheTrash() async throws {
        try await FolderRemote.run { remote, session in
            try await interruptAndMoveOut(remote, session)
            try await makeTrash(in: remote)
            try await remote.rename("directory", to: ".Trash-1000/files/directory")
            let listed = try await session.list(.trashContainer)
            let trashed = try #require(listed.first)
            try await session.delete(trashed, recursively: true, onlyFromTrash: true)
            #expect(!FileManager.default.fileExists(atPath: remote[".Trash-1000/files/directory"]))
            // No search of the folder had found the new content in the trash.
            #expect(remote.text("two") == Self.new)
            #expect(try hidden(remote) == [])
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: a directory that an interrupted deletion has left in the trash leaves the new content of a file")
    func leftInTheTrash() async throws {
        try await FolderRemote.run { remote, session in
            let copy = try await interruptAndMoveOut(remote, session)
            try await makeTrash(in: remote)
            let aside = ".Trash-1000/files/" + HiddenName.make()
            try await remote.rename("directory", to: aside)
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 0)
            let listed = try folder.trashedItems {}
            #expect(listed.isEmpty)
            #expect(!FileManager.default.fileExists(atPath: remote[aside]))
            #expect(remote.text("two") == Self.new)
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
        }
    }

    @Test("FOLDER-4: a directory that is trashed here leaves the new content of a file")
    func trashedHere() async throws {
        try await FolderRemote.run { remote, session in
            let copy = try await interruptAndMoveOut(remote, session)
            let directory = try await session.find("directory").moved(to: .trashContainer)
            try await session.modify(directory, .parentItemIdentifier)
            #expect(!FileManager.default.fileExists(atPath: remote["directory"]))
            #expect(remote.text(copy) == Self.new)
            try await restart(remote, session)
            #expect(remote.text("two") == Self.new)
            #expect(try hidden(remote) == [])
        }
    }

    @Test("FOLDER-4: a deletion that ends before the directory is empty leaves the new content of a file in it")
    func deletionEndsEarly() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            let (copy, _) = try await interrupt(remote, session, leaving: "the content", in: "directory")
            let folder = try #require(session.provider as? DirectoryProvider).folder
            let directory = try FileDescriptor.openDirectory(remote.root.appending("directory"))
            defer { try? directory.close() }
            let names = try directory.names()
            #expect(names.count == 2)
            var checks = 0
            var isStopped = false
            do {
                try folder.remove(names, in: directory, parent: .rootContainer) {
                    checks += 1
                    // After the search for new contents.
                    if checks > names.count { throw CancellationError() }
                }
            } catch is CancellationError {
                isStopped = true
            }
            #expect(isStopped)
            #expect(remote.text(copy) == Self.new)
            folder.finishWritingInPlace()
            #expect(remote.text("directory/one") == Self.new)
            #expect(try hidden(remote) == [])
        }
    }

    @Test(
        "FOLDER-4: a directory that is deleted leaves the copy of a write of another domain", arguments: [true, false])
    func foreignCopyInADeletedDirectory(isRecursive: Bool) async throws {
        try await FolderRemote.run { remote, session in
            let copy = try await interruptAndMoveOut(remote, session)
            let leftover = HiddenName.make()
            try await remote.write([1], to: "directory/" + leftover)
            let state = try remote.directory.makeDirectory("other")
            let manager = TestManager(domain: remote.domain, stateDirectory: state)
            let deleting = try await remote.makeProvider(for: manager)
            let other = ProviderSession(provider: deleting, manager: manager)
            let directory = try await other.find("directory")
            try await other.delete(directory, recursively: isRecursive)
            await deleting.invalidate()
            #expect(!FileManager.default.fileExists(atPath: remote["directory"]))
            #expect(try hidden(remote) == [copy])
            try await restart(remote, session)
            #expect(remote.text("two") == Self.new)
            #expect(try hidden(remote) == [])
        }
    }

    @Test("FOLDER-4: the new content of a file goes with the last link of the file", arguments: [true, false])
    func fileDeleted(withItsDirectory: Bool) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            _ = try await interrupt(remote, session, leaving: "the content", in: "directory")
            // The write is not completed before.
            let other = try FileHandle(forUpdating: URL(fileURLWithPath: remote["directory/one"]))
            defer { try? other.close() }
            if withItsDirectory {
                try remote.link("directory/one", as: "directory/two")
            } else {
                try await session.delete(session.find("directory/one"))
            }
            try await session.delete(session.find("directory"), recursively: withItsDirectory)
            #expect(try FileManager.default.contentsOfDirectory(atPath: remote.root.string) == [])
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test(
        "FOLDER-4: an interrupted write is completed before the directory with its new content is deleted",
        arguments: [true, false])
    func directoryDeleted(recursively: Bool) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            _ = try await interrupt(remote, session, leaving: "the content", in: "directory")
            try remote.link("directory/one", as: "two")
            if !recursively { try FileManager.default.removeItem(atPath: remote["directory/one"]) }
            let directory = try await session.find("directory")
            try await session.delete(directory, recursively: recursively)
            #expect(remote.text("two") == Self.new)
            #expect(!FileManager.default.fileExists(atPath: remote["directory"]))
            #expect(session.manager.warnings == [])
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }
}
