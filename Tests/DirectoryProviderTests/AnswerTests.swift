import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

@Suite("The answer of the folder to a change")
struct AnswerTests {
    @Test("FOLDER-7: content that another process writes before the answer is fetched")
    func aWriteByAnotherProcessIsFetched() async throws {
        try await FolderRemote.run { remote, session in
            let provider = try #require(session.provider as? DirectoryProvider)
            try await remote.write(Array("ours".utf8), to: "file")
            let isFetched = try await provider.folder.calls.run { cancellation in
                let writer = FolderWriter(folder: provider.folder, cancellation: cancellation)
                let root = try provider.folder.openRoot()
                defer { try? root.close() }
                let file = try root.openFile(named: "file")
                defer { try? file.close() }
                let stored = try writer.contentVersion(of: file)
                func isFetched() throws -> Bool {
                    let entry = FolderWriter.NamedEntry(directory: root, name: "file", parent: .rootContainer)
                    let answer = try writer.answer(entry, [], stored: stored)
                    guard case .applied(_, _, let isFetched) = answer else { return false }
                    return isFetched
                }
                let before = try isFetched()
                try Data("of another process".utf8).write(to: URL(fileURLWithPath: remote["file"]))
                return [before, try isFetched()]
            }
            #expect(isFetched == [false, true])
        }
    }

    @Test("FOLDER-7: what another process writes after the source's bytes were found to be the sent ones is fetched")
    func aWriteAfterTheComparisonIsFetched() async throws {
        try await FolderRemote.run { remote, session in
            let provider = try #require(session.provider as? DirectoryProvider)
            try await remote.write(Array("ours".utf8), to: "file")
            var item = try await session.find("file")
            item.contentModificationDate = FileTimestamp(seconds: 1_000_000_000)
            let sent = item
            let isFetched = try await provider.folder.calls.run { cancellation in
                let writer = FolderWriter(folder: provider.folder, cancellation: cancellation)
                let root = try provider.folder.openRoot()
                defer { try? root.close() }
                func isFetched(comparedAt status: FileStatus) throws -> Bool {
                    let entry = FolderWriter.NamedEntry(directory: root, name: "file", parent: .rootContainer)
                    let (pending, stored) = try writer.apply(
                        .contentModificationDate, of: sent, to: entry, expecting: status)
                    let answer = try writer.answer(entry, pending, stored: stored)
                    guard case .applied(_, _, let isFetched) = answer else { return false }
                    return isFetched
                }
                let before = try isFetched(comparedAt: FileStatus(of: "file", in: root))
                let status = try FileStatus(of: "file", in: root)
                let other = try FileHandle(forWritingTo: URL(fileURLWithPath: remote["file"]))
                try other.write(contentsOf: Data("another process".utf8))
                try other.close()
                return [before, try isFetched(comparedAt: status)]
            }
            #expect(isFetched == [false, true])
            // With the sent date other bytes of this size would look like the sent ones.
            #expect(try await session.find("file").contentModificationDate != sent.contentModificationDate)
        }
    }

    @Test("content that only this provider writes is not fetched again", arguments: [false, true])
    func ownContentIsNotFetchedAgain(_ hasLinks: Bool) async throws {
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
