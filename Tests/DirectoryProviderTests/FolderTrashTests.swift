import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// The folder's trash: as other programs expect it, and as they leave it.
@Suite struct FolderTrashTests {
    private let top = ".Trash-\(getuid())"

    private func trash(_ path: String, _ session: ProviderSession) async throws -> FileProviderItem {
        let item = try await session.find(path).moved(to: .trashContainer)
        return try await session.modify(item, .parentItemIdentifier).item
    }

    @Test func aTrashedFileLiesWhereOtherProgramsFindIt() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("a b")
            try await remote.write([1], to: "a b/é.txt")
            try await remote.write([2], to: "é.txt")
            _ = try await trash("a b/é.txt", session)
            let second = try await trash("é.txt", session)
            #expect(second.filename == "é 2.txt")
            #expect(FileManager.default.contents(atPath: remote["\(top)/files/é.txt"]) == Data([1]))
            #expect(FileManager.default.contents(atPath: remote["\(top)/files/é 2.txt"]) == Data([2]))
            let information = remote.text("\(top)/info/é.txt.trashinfo")
            #expect(information.hasPrefix("[Trash Info]\nPath=a%20b/%C3%A9.txt\nDeletionDate=20"))
            #expect(try await session.list().map(\.filename) == ["a b"])
            // For good.
            try await session.delete(second)
            let names = try FileManager.default.contentsOfDirectory(atPath: remote["\(top)/info"])
            #expect(names == ["é.txt.trashinfo"])
        }
    }

    @Test("TRASH-6: a trashed item has the date of its file in 'info'") func dates() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1], to: "file")
            let before = Date().timeIntervalSince1970.rounded(.down)
            _ = try await trash("file", session)
            let own = try #require(try await session.list(.trashContainer).first?.trashDate)
            #expect(Double(own.seconds) >= before && Double(own.seconds) < before + 60)
            let noon = Array("[Trash Info]\nPath=file\nDeletionDate=2021-07-01T12:00:00\n".utf8)
            try await remote.write(noon, to: "\(top)/info/file.trashinfo")
            let other = try #require(try await session.list(.trashContainer).first?.trashDate)
            // Noon is no further from noon in Greenwich.
            #expect(abs(other.seconds - 1_625_140_800) <= 14 * 3600)
            try await remote.write(Array("[Trash Info]\n".utf8), to: "\(top)/info/file.trashinfo")
            #expect(try await session.list(.trashContainer).first?.trashDate == nil)
        }
    }

    @Test func equalNamesAreNumbered() async throws {
        try await FolderRemote.run { remote, session in
            for number in 1...12 {
                try await remote.write([UInt8(number)], to: "file")
                _ = try await trash("file", session)
            }
            for number in 1...12 {
                let name = number == 1 ? "file" : "file \(number)"
                #expect(FileManager.default.contents(atPath: remote["\(top)/files/\(name)"]) == Data([UInt8(number)]))
            }
            // A name whose file in `info` was left by another program is not taken.
            try await remote.write([13], to: "\(top)/info/file 13.trashinfo")
            try await remote.write([14], to: "file")
            #expect(try await trash("file", session).filename == "file 14")
        }
    }

    @Test func aFailedTrashingLeavesNothing() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1], to: "file")
            let item = try await session.find("file").moved(to: .trashContainer)
            try await remote.write([1, 2], to: "file")
            await #expect(throws: FileProviderError.self) {
                try await session.modify(item, .parentItemIdentifier, content: [3])
            }
            #expect(remote.text("file") == "\u{1}\u{2}")
            #expect(!FileManager.default.fileExists(atPath: remote["\(top)/info/file.trashinfo"]))
            #expect(!FileManager.default.fileExists(atPath: remote["\(top)/files/file"]))
        }
    }

    @Test func itemTrashedByOthersKeepsItsIdentifier() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("d")
            try await remote.write([1], to: "d/file")
            let file = try await session.find("d/file")
            let anchor = try await session.anchor()
            try await remote.makeDirectory(".Trash-4711")
            try await remote.makeDirectory(".Trash-4711/info")
            try await remote.makeDirectory(".Trash-4711/files")
            try await remote.rename("d/file", to: ".Trash-4711/files/file")
            let news = try await session.changes(from: anchor, until: "the trashing") { batch in
                batch.updated.contains { $0.itemIdentifier == file.itemIdentifier && $0.isTrashed }
            }
            #expect(!news.deleted.contains(file.itemIdentifier))
            #expect(try await session.list(.trashContainer).map(\.itemIdentifier) == [file.itemIdentifier])
            #expect(try await session.list().map(\.filename) == ["d"])
            let listed = try await session.anchor()
            try await remote.rename(".Trash-4711/files/file", to: "d/back")
            _ = try await session.changes(from: listed, until: "the restoring") { batch in
                batch.updated.contains { $0.itemIdentifier == file.itemIdentifier && $0.filename == "back" }
            }
        }
    }

    @Test("TRASH-9: a deletion from the trash leaves what another client has restored, with all below it")
    func restored() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("d")
            try await remote.write([1], to: "d/file")
            let file = try await session.find("d/file")
            let directory = try await trash("d", session)
            try await remote.rename("\(top)/files/d", to: "back")
            for item in [directory, file] {
                let failure = await failureCode {
                    try await session.delete(item, recursively: true, onlyFromTrash: true)
                }
                #expect(failure == .deletionRejected)
            }
            #expect(remote.text("back/file") == "\u{1}")
        }
    }

    @Test func directoryWhoseDeletionIsCancelledKeepsItsName() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("d")
            try await remote.write([1], to: "d/file")
            let directory = try await trash("d", session)
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 0)
            let hasBegun = Atomic<Bool>(false)
            let hasEnded = Atomic<Bool>(false)
            let deletion = Task {
                try await folder.calls.run { cancellation in
                    defer { hasEnded.store(true, ordering: .relaxed) }
                    hasBegun.store(true, ordering: .relaxed)
                    while (try? cancellation.check()) != nil { usleep(1000) }
                    let writer = FolderWriter(folder: folder, cancellation: cancellation)
                    #expect(throws: CancellationError.self) {
                        try writer.delete(directory.itemIdentifier, base: directory.itemVersion, .recursive)
                    }
                }
            }
            #expect(await eventually { hasBegun.load(ordering: .relaxed) })
            deletion.cancel()
            #expect(await eventually { hasEnded.load(ordering: .relaxed) })
            #expect(remote.text("\(top)/files/d/file") == "\u{1}")
        }
    }

    @Test func directoriesThatACrashHasLeftAreRemovedFromTheTrashAlone() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("d")
            _ = try await trash("d", session)
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 0)
            let hidden = HiddenName.make()
            for path in [hidden, "\(top)/files/\(hidden)"] { try await remote.makeDirectory(path) }
            #expect(try folder.trashedItems {}.map(\.filename) == ["d"])
            #expect(!FileManager.default.fileExists(atPath: remote["\(top)/files/\(hidden)"]))
            let root = try folder.openRoot()
            defer { try? root.close() }
            #expect(!folder.isShown(Array(hidden.utf8), in: root))
            #expect(FileManager.default.fileExists(atPath: remote[hidden]))
        }
    }

    @Test func trashDirectoryNamesAreExcluded() async throws {
        try await FolderRemote.run { remote, session in
            for name in [".Trash", ".Trash-1000"] {
                let template = ProviderSession.template(name, kind: .directory)
                let error = await #expect(throws: FileProviderError.self) { try await session.create(template) }
                #expect(error?.code == .excludedFromSync)
            }
            for name in [".Trashes", ".Trash-x", ".Trash-"] {
                try await session.create(ProviderSession.template(name, kind: .directory))
            }
            #expect(try await session.list().map(\.filename).sorted() == [".Trash-", ".Trash-x", ".Trashes"])
        }
    }
}
