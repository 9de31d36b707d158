import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import Testing

@testable import DirectoryProvider

@Suite("What the folder answers to a change")
struct AnswerTests {
    @Test("FOLDER-7: what somebody else wrote before the answer is fetched, and is not taken for what was sent")
    func somebodyElseWrites() async throws {
        try await FolderRemote.run { remote, session in
            let provider = try #require(session.provider as? DirectoryProvider)
            try await remote.write(Array("ours".utf8), to: "file")
            let isFetched = try await provider.calls.run { wish in
                let writer = FolderWriter(folder: provider.folder, wish: wish)
                let root = try provider.folder.openRoot()
                defer { try? root.close() }
                let file = try root.openFile(named: "file")
                defer { try? file.close() }
                let stored = try writer.contentVersion(of: file)
                func isFetched() throws -> Bool {
                    let answer = try writer.answer("file", in: root, .rootContainer, [], stored: stored)
                    guard case .applied(_, _, let isFetched) = answer else { return false }
                    return isFetched
                }
                let before = try isFetched()
                try Data("somebody else's".utf8).write(to: URL(fileURLWithPath: remote["file"]))
                return [before, try isFetched()]
            }
            #expect(isFetched == [false, true])
        }
    }

    @Test("what nobody else writes is not fetched again", arguments: [false, true])
    func nobodyElseWrites(_ hasLinks: Bool) async throws {
        try await FolderRemote.run { remote, session in
            let made = try await session.create(ProviderSession.template("file"), content: [1, 2, 3])
            #expect(!made.shouldFetchContent)
            if hasLinks { try FileManager.default.linkItem(atPath: remote["file"], toPath: remote["other"]) }
            var item = try await session.find("file")
            item.contentModificationDate = FileTimestamp(seconds: 1_000_000_000, nanoseconds: 5)
            let stored = try await session.modify(
                item, [.contents, .contentModificationDate], content: [4, 5, 6, 7])
            #expect(!stored.shouldFetchContent)
            #expect(stored.item.contentModificationDate == item.contentModificationDate)
        }
    }
}
