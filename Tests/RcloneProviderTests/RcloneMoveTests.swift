import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import TestSupport
import Testing

@testable import RcloneProvider

@Suite(.tags(.server), .enabled(if: RcloneFolder.isInstalled)) struct RcloneMoveTests {
    private static let names = ["1", "2", "3", "4", "5"]

    private static func list(_ folder: RcloneFolder, _ path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder[path])) ?? []).sorted()
    }

    private static func makeProvider(
        _ folder: RcloneFolder, _ manager: TestManager
    ) async throws -> PathAddressedProvider {
        try #require(try await folder.makeProvider(for: manager) as? PathAddressedProvider)
    }

    /// Calls a closure with a directory whose renaming an earlier process has begun.
    private static func withInterruptedMove(
        _ body: (RcloneFolder, ProviderSession, FileProviderItem) async throws -> Void
    ) async throws {
        let folder = try await RcloneFolder(program: "exec \"$RCLONE\" \"$@\" --disable DirMove")
        let manager = TestManager(domain: folder.domain, stateDirectory: folder.stateDirectory)
        try await withCleanUp({ await folder.dispose() }) {
            try await folder.makeDirectory("old")
            for name in names { try await folder.write(Array(name.utf8), to: "old/" + name) }
            let killed = try await makeProvider(folder, manager)
            let item = try await ProviderSession(provider: killed, manager: manager).find("old")
            let remote = try #require(killed.remote as? RcloneRemote)
            let parts = try #require(
                try await remote.parts(of: RemotePath(["old"]), toMoveTo: RemotePath(["new"])))
            let move = LedgerState.Move(
                item: item.itemIdentifier.rawValue, tag: [], directory: ItemIdentifier.rootContainer.rawValue,
                name: "new", parts: parts)
            try OperationLedger(in: ReportingStore(of: manager)).keep(move)
            await killed.invalidate()
            try await folder.makeDirectory("new")
            for name in names where name < "3" { try await folder.rename("old/" + name, to: "new/" + name) }
            let provider = try await makeProvider(folder, manager)
            try await withCleanUp({ await provider.invalidate() }) {
                try await body(folder, ProviderSession(provider: provider, manager: manager), item)
            }
        }
    }

    @Test("RCLONE-10: a renaming of a directory in which rclone is killed is finished", .timeLimit(.minutes(2)))
    func killedMoves() async throws {
        // About a second for each file.
        let folder = try await RcloneFolder(
            program: "exec \"$RCLONE\" \"$@\" --disable DirMove,Move,Copy --transfers 1 --bwlimit 400k")
        let manager = TestManager(domain: folder.domain, stateDirectory: folder.stateDirectory)
        let provider = try await Self.makeProvider(folder, manager)
        let session = ProviderSession(provider: provider, manager: manager)
        try await withCleanUp({
            await provider.invalidate()
            await folder.dispose()
        }) {
            try await folder.makeDirectory("old")
            for name in Self.names { try await folder.write([UInt8](repeating: 1, count: 300_000), to: "old/" + name) }
            let item = try await session.find("old")
            let renamed = item.renamed("new")
            let moving = Task { try await session.modify(renamed, .filename) }
            let isTorn = await eventually { !Self.list(folder, "new").isEmpty && Self.list(folder, "old").count < 5 }
            try #require(isTorn)
            _ = try await RcloneSafetyTests.killPrograms(of: folder)
            _ = await moving.result
            try #require(!Self.list(folder, "old").isEmpty)
            let listed = try await session.list()
            #expect(listed.map(\.filename) == ["new"] && listed.first?.itemIdentifier == item.itemIdentifier)
            #expect(Self.list(folder, "new") == Self.names && !FileManager.default.fileExists(atPath: folder["old"]))
            #expect(OperationLedger(in: ReportingStore(of: manager)).moves.unknown.allSatisfy { $0.isMade == true })
        }
    }

    @Test(
        "RCLONE-10: a renaming of a directory that an earlier process has begun is finished, and not taken for a collision",
        arguments: [false, true])
    func begunMoves(isAskedFor: Bool) async throws {
        try await Self.withInterruptedMove { folder, session, item in
            if isAskedFor {
                let moved = try await session.modify(item.renamed("new"), .filename).item
                #expect(moved.filename == "new" && moved.itemIdentifier == item.itemIdentifier)
            } else {
                #expect(try await session.item(item.itemIdentifier).filename == "new")
            }
            #expect(Self.list(folder, "new") == Self.names && !FileManager.default.fileExists(atPath: folder["old"]))
            // What another client has made there is a collision.
            try await folder.makeDirectory("other")
            let other = try await session.find("other").renamed("new")
            let error = await #expect(throws: FileProviderError.self) { try await session.modify(other, .filename) }
            #expect(error?.code == .filenameCollision)
        }
    }

    @Test(
        "RCLONE-10: the rest is moved before something is made in the directory, and before it is renamed once more",
        arguments: [false, true])
    func changedBeforeItIsRead(isRenamed: Bool) async throws {
        try await Self.withInterruptedMove { folder, session, item in
            if isRenamed {
                let moved = try await session.modify(item.renamed("third"), .filename).item
                #expect(moved.filename == "third" && moved.itemIdentifier == item.itemIdentifier)
            } else {
                let template = ProviderSession.template("6", in: item.itemIdentifier)
                let made = try await session.create(template, content: [6]).item
                #expect(made.parentItemIdentifier == item.itemIdentifier)
            }
            let place = isRenamed ? "third" : "new"
            #expect(Self.list(folder, place) == Self.names + (isRenamed ? [] : ["6"]))
            for other in ["old", "new"] where other != place {
                #expect(!FileManager.default.fileExists(atPath: folder[other]), "\(other)")
            }
        }
    }

    @Test("RCLONE-10: what was not in the directory when its renaming began stays in the old place")
    func laterFiles() async throws {
        try await Self.withInterruptedMove { folder, session, item in
            try await folder.write([6], to: "old/6 {new}*")
            try await folder.write(Array("theirs".utf8), to: "old/5")
            try await folder.makeDirectory("old/later")
            try await folder.write([7], to: "old/later/7")
            let listed = try await session.list()
            #expect(listed.map(\.filename).sorted() == ["new", "old"])
            #expect(listed.first { $0.filename == "new" }?.itemIdentifier == item.itemIdentifier)
            #expect(Self.list(folder, "new") == ["1", "2", "3", "4"])
            #expect(Self.list(folder, "old") == ["5", "6 {new}*", "later"])
            #expect(Self.list(folder, "old/later") == ["7"])
        }
    }

    @Test(
        "RCLONE-10: a new directory in the old place stays where another client has moved the rest",
        arguments: [[], ["1", "later"]])
    func laterDirectories(_ names: [String]) async throws {
        try await Self.withInterruptedMove { folder, session, item in
            for name in Self.list(folder, "old") { try await folder.rename("old/" + name, to: "new/" + name) }
            try await folder.delete("old")
            try await folder.makeDirectory("old")
            for name in names { try await folder.write(Array("theirs".utf8), to: "old/" + name) }
            let listed = try await session.list()
            #expect(listed.map(\.filename).sorted() == ["new", "old"])
            #expect(listed.first { $0.filename == "new" }?.itemIdentifier == item.itemIdentifier)
            #expect(Self.list(folder, "new") == Self.names && Self.list(folder, "old") == names)
        }
    }

    @Test("RCLONE-10: a renaming that is finished replaces nothing that another client has written in the new place")
    func foreignFiles() async throws {
        try await Self.withInterruptedMove { folder, session, _ in
            try await folder.write(Array("theirs".utf8), to: "new/4")
            _ = try await session.list()
            let other = try #require(Self.list(folder, "new").first { $0.hasPrefix("4 (other version ") })
            #expect(Self.list(folder, "new") == (Self.names + [other]).sorted())
            #expect(try String(contentsOfFile: folder["new/4"], encoding: .utf8) == "4")
            #expect(try String(contentsOfFile: folder["new/" + other], encoding: .utf8) == "theirs")
        }
    }
}
