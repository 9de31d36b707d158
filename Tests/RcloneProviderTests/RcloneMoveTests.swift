import FileProvider
import FileProviderPaths
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import RcloneProvider

@Suite(.tags(.server), .enabled(if: RcloneFolder.isInstalled)) struct RcloneMoveTests {
    private static let move = RcloneMove(from: RemotePath(["old"]), to: RemotePath(["new"]))
    private static let names = ["1", "2", "3", "4", "5"]

    private static func list(_ folder: RcloneFolder, _ path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder[path])) ?? []).sorted()
    }

    private static func remote(_ folder: RcloneFolder, _ store: ReportingStore) throws -> RcloneRemote {
        try RcloneProviderFactory.remote(
            folder.domain.source, folder.settings, in: folder.directory["remote"], nil, store: store
        ) { _ in }
    }

    /// A directory of which a part is in the new place.
    private static func makeHalves(_ folder: RcloneFolder) async throws {
        try await folder.makeDirectory("old")
        try await folder.makeDirectory("new")
        for name in names { try await folder.write(Array(name.utf8), to: (name < "3" ? "new/" : "old/") + name) }
    }

    /// Calls a closure with the halves of a directory whose renaming an earlier process has begun.
    private static func withInterruptedMove(
        _ body: (RcloneFolder, RcloneRemote, ReportingStore) async throws -> Void
    ) async throws {
        let folder = try await RcloneFolder(program: "exec \"$RCLONE\" \"$@\" --disable DirMove")
        let store = ReportingStore.temporary
        struct Killed: Error {}
        await #expect(throws: Killed.self) { try await RcloneMoves(in: store).make(move) { throw Killed() } }
        let remote = try Self.remote(folder, store)
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            try await makeHalves(folder)
            try await body(folder, remote, store)
        }
    }

    @Test("RCLONE-10: a renaming of a directory in which rclone is killed is finished", .timeLimit(.minutes(2)))
    func killedMoves() async throws {
        // About a second for each file.
        let folder = try await RcloneFolder(
            program: "exec \"$RCLONE\" \"$@\" --disable DirMove,Move,Copy --transfers 1 --bwlimit 400k")
        let remote = try Self.remote(folder, .temporary)
        try await withCleanUp({
            await remote.close()
            await folder.dispose()
        }) {
            try await folder.makeDirectory("old")
            for name in Self.names { try await folder.write([UInt8](repeating: 1, count: 300_000), to: "old/" + name) }
            #expect(try await remote.features().movesDirectories == false)
            let moving = Task { try await remote.move(Self.move.from, to: Self.move.to, kind: .directory) }
            let isTorn = await eventually { !Self.list(folder, "new").isEmpty && Self.list(folder, "old").count < 5 }
            try #require(isTorn)
            _ = try await RcloneSafetyTests.killPrograms(of: folder)
            _ = await moving.result
            try #require(!Self.list(folder, "old").isEmpty)
            #expect(try await remote.entries(in: .root, from: nil, limit: 10).entries.map(\.name) == ["new"])
            #expect(Self.list(folder, "new") == Self.names && !FileManager.default.fileExists(atPath: folder["old"]))
            #expect(remote.moves.interrupted.isEmpty)
        }
    }

    @Test(
        "RCLONE-10: a renaming of a directory that an earlier process has begun is finished, and not taken for a collision",
        arguments: [false, true])
    func begunMoves(isAskedFor: Bool) async throws {
        try await Self.withInterruptedMove { folder, remote, store in
            if isAskedFor {
                let moved = try await remote.move(Self.move.from, to: Self.move.to, kind: .directory)
                #expect(moved.name == "new" && moved.kind == .directory)
            } else {
                let error = await #expect(throws: FileProviderError.self) {
                    _ = try await remote.entry(at: Self.move.from)
                }
                #expect(error?.code == .noSuchItem)
            }
            #expect(Self.list(folder, "new") == Self.names && !FileManager.default.fileExists(atPath: folder["old"]))
            #expect(RcloneMoves(in: store).interrupted.isEmpty)
            // What another client has made there is a collision.
            try await folder.makeDirectory("old")
            await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(Self.move.from, to: Self.move.to, kind: .directory)
            }
        }
    }

    @Test("RCLONE-10: a renaming that is finished replaces nothing that another client has written in the new place")
    func foreignFiles() async throws {
        try await Self.withInterruptedMove { folder, remote, store in
            try await folder.write(Array("theirs".utf8), to: "new/4")
            _ = try await remote.entries(in: .root, from: nil, limit: 10)
            let other = try #require(Self.list(folder, "new").first { $0.hasPrefix("4 (other version ") })
            #expect(Self.list(folder, "new") == (Self.names + [other]).sorted())
            #expect(try String(contentsOfFile: folder["new/4"], encoding: .utf8) == "4")
            #expect(try String(contentsOfFile: folder["new/" + other], encoding: .utf8) == "theirs")
        }
    }

    @Test func extents() {
        let move = RcloneMove(from: RemotePath(["a", "b"]), to: RemotePath(["c", "d", "e"]))
        for (path, extents) in [
            (["a", "b"], [.item, .listing, .tree]), (["c", "d", "e", "f"], [.item, .listing, .tree]),
            (["a"], [.listing, .tree]), (["c"], [.tree]), ([], [.tree]), (["b"], []),
        ] as [([String], Set<RcloneMove.Extent>)] {
            for extent in [RcloneMove.Extent.item, .listing, .tree] {
                #expect(move.concerns(RemotePath(path), extent) == extents.contains(extent), "\(path) \(extent)")
            }
        }
    }
}
