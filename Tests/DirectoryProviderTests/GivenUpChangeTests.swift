import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Changes that are given up, or fail, before their last step.
@Suite struct GivenUpChangeTests {
    private func givenUp() -> BlockingCalls.Cancellation {
        let cancellation = BlockingCalls.Cancellation()
        cancellation.request()
        return cancellation
    }

    private func content(_ remote: FolderRemote, _ name: String) throws -> String {
        try String(contentsOfFile: remote[name], encoding: .utf8)
    }

    private func names(_ remote: FolderRemote) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: remote.root.string).sorted()
    }

    @Test(
        "FOLDER-4: an upload that is given up before its last step makes and replaces no file",
        arguments: [true, false])
    func uploads(isNameless: Bool) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("theirs".utf8), to: "there")
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 1)
            let root = try folder.openRoot()
            defer { try? root.close() }
            let status = try FileStatus(of: "there", in: root)
            let cancellation = givenUp()
            do {
                let upload = try Upload(in: root, permissions: 0o644, isNameless: isNameless)
                try upload.file.writeAll("ours".utf8)
                #expect(throws: CancellationError.self) { try upload.publish(as: "new", cancellation) }
                #expect(throws: CancellationError.self) {
                    _ = try upload.replace("there", expecting: status, folder, cancellation)
                }
            }
            #expect(try names(remote) == ["there"])
            #expect(try content(remote, "there") == "theirs")
        }
    }

    @Test("FOLDER-4: an upload that is given up before a file with several links is written leaves it as it was")
    func writingInPlace() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array("theirs".utf8), to: "there")
            try FileManager.default.linkItem(atPath: remote["there"], toPath: remote["other"])
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 1)
            let root = try folder.openRoot()
            defer { try? root.close() }
            let status = try FileStatus(of: "there", in: root)
            let cancellation = givenUp()
            do {
                let upload = try Upload(in: root, permissions: 0o644)
                try upload.file.writeAll("ours, and longer".utf8)
                #expect(throws: CancellationError.self) {
                    _ = try upload.writeInPlace("there", expecting: status, path: [], folder, cancellation) {}
                }
            }
            #expect(try names(remote) == ["other", "there"])
            #expect(try content(remote, "other") == "theirs")
            #expect(try FileStatus(of: "there", in: root).isUnchanged(from: status))
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: a change that is given up before its last step renames and makes nothing")
    func namesAndDirectories() async throws {
        try await FolderRemote.run { remote, session in
            let provider = try #require(session.provider as? DirectoryProvider)
            try await remote.write(Array("theirs".utf8), to: "there")
            let item = try await session.find("there")
            let renamed = item.renamed("renamed")
            let writer = FolderWriter(folder: provider.folder, cancellation: givenUp())
            for template in [renamed, ProviderSession.template("made", kind: .directory)] {
                do {
                    if template.kind == .file {
                        _ = try writer.modify(template, base: item.itemVersion, .filename, contents: nil)
                    } else {
                        _ = try writer.create(template, [], contents: nil, options: [])
                    }
                    Issue.record("'\(template.filename)' was made")
                } catch is CancellationError {}
            }
            #expect(try names(remote) == ["there"])
        }
    }

    /// A store whose disk can be full.
    private final class FullStore: ProviderStore {
        let isFull = Mutex(false)
        /// The number of writes after which it is full; nil for any number.
        let room = Mutex<Int?>(nil)
        private let store = InMemoryProviderStore()

        func read<Value>(_ body: (any ProviderStoreSnapshot) throws -> Value) throws -> Value { try store.read(body) }

        func write<Value>(
            _ durability: ProviderStoreDurability, _ body: (any ProviderStoreTransaction) throws -> Value
        ) throws -> Value {
            let hasRoom = room.withLock { room in
                guard let left = room else { return true }
                room = max(0, left - 1)
                return left > 0
            }
            if !hasRoom || isFull.withLock({ $0 }) { throw FileProviderError.posix(.noSpace, "full") }
            return try store.write(durability, body)
        }
    }

    /// Runs a body with the item `one`, which has the link `two`.
    private func withLinkedFile(
        _ body: (FolderRemote, FullStore, ProviderSession, FileProviderItem) async throws -> Void
    ) async throws {
        let remote = try FolderRemote()
        defer { remote.directory.remove() }
        let store = FullStore()
        let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory, store: store)
        let provider = try await remote.makeProvider(for: manager)
        try await withCleanUp({ await provider.invalidate() }) {
            let session = ProviderSession(provider: provider, manager: manager)
            try await remote.write(Array("short".utf8), to: "one")
            try FileManager.default.linkItem(atPath: remote["one"], toPath: remote["two"])
            let item = try await session.find("one")
            try await body(remote, store, session, item)
        }
    }

    @Test("FOLDER-4: a file with several links stays as it was where its write cannot be recorded")
    func unrecordedWrite() async throws {
        try await withLinkedFile { remote, store, session, item in
            store.isFull.withLock { $0 = true }
            let code = await failureCode {
                _ = try await session.modify(item, .contents, content: Array("a longer content".utf8))
            }
            #expect(code == .posix)
            #expect(try content(remote, "two") == "short")
            #expect(try names(remote) == ["one", "two"])
            store.isFull.withLock { $0 = false }
            let stored = try await session.modify(item, .contents, content: Array("a longer content".utf8))
            #expect(stored.item.itemIdentifier == item.itemIdentifier)
            #expect(try content(remote, "two") == "a longer content")
        }
    }

    @Test("FOLDER-4: a link whose write cannot be recorded has its old name, too")
    func unrecordedWriteAfterARename() async throws {
        try await withLinkedFile { remote, store, session, item in
            let renamed = item.renamed("renamed")
            // The renaming is recorded, and nothing after it.
            store.room.withLock { $0 = 1 }
            let code = await failureCode {
                _ = try await session.modify(
                    renamed, [.filename, .contents], content: Array("a longer content".utf8))
            }
            #expect(code == .posix)
            #expect(try names(remote) == ["one", "two"])
            #expect(try content(remote, "one") == "short")
            store.room.withLock { $0 = nil }
            let stored = try await session.modify(
                renamed, [.filename, .contents], content: Array("a longer content".utf8))
            #expect(stored.item.itemIdentifier == item.itemIdentifier)
            #expect(try names(remote) == ["renamed", "two"])
            #expect(try content(remote, "two") == "a longer content")
        }
    }
}
