import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Files with several links whose write in place was interrupted, and that another program uses before it is completed.
@Suite struct InterruptedWriteTests {
    static let old = "old content"
    static let new = "the new content, longer"

    /// Leaves a file as a crash, and perhaps another program after it, leaves it.
    func interrupt(
        _ remote: FolderRemote, _ session: ProviderSession, leaving content: String, in directory: String? = nil
    ) async throws -> (copy: String, item: FileProviderItem) {
        let prefix = directory.map { $0 + "/" } ?? ""
        try await remote.write(Array(Self.old.utf8), to: prefix + "one")
        let item = try await session.find(prefix + "one")
        let copy = InPlaceEdit.makeCopyName()
        try await remote.write(Array(Self.new.utf8), to: prefix + copy)
        let edit = InPlaceEdit(
            directory: directory.map { [$0] } ?? [], name: "one", file: FolderItems.file(of: item.itemIdentifier),
            copy: copy,
            begun: Int64(Date().timeIntervalSince1970), size: Int64(Self.old.utf8.count))
        try session.manager.store.put(edit, at: edit.key, in: InPlaceEdit.namespace)
        try await remote.write(Array(content.utf8), to: prefix + "one")
        return (copy, item)
    }

    /// Leaves a file as a crash leaves it, with its new content in a directory that the file is moved out of then.
    /// - Returns: the name of the new content.
    @discardableResult
    func interruptAndMoveOut(_ remote: FolderRemote, _ session: ProviderSession) async throws -> String {
        try await remote.makeDirectory("directory")
        let (copy, _) = try await interrupt(remote, session, leaving: "the content", in: "directory")
        try FileManager.default.moveItem(atPath: remote["directory/one"], toPath: remote["two"])
        return copy
    }

    /// Starts a provider, which completes the writes that were interrupted, and ends it.
    func restart(_ remote: FolderRemote, _ session: ProviderSession) async throws {
        let provider = try await remote.makeProvider(for: session.manager)
        await provider.invalidate()
    }

    private func content(_ remote: FolderRemote) throws -> String {
        try String(contentsOfFile: remote["one"], encoding: .utf8)
    }

    @Test(
        "FOLDER-4: what another program has written anew, or appended, after a crash is not replaced when the write is completed",
        arguments: [
            // Partly written.
            ("the content", true), ("the new content", true), ("the new content, longer", true),
            // By another program: written anew, and appended to what was partly written.
            ("other", false), ("the content+", false), ("the new content + more of another", false),
        ])
    func writtenMeanwhile(left: String, isCompleted: Bool) async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: left)
            try await restart(remote, session)
            #expect(try content(remote) == (isCompleted ? Self.new : left))
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: an interrupted write is completed although another program reads the file")
    func readMeanwhile() async throws {
        try await FolderRemote.run { remote, session in
            _ = try await interrupt(remote, session, leaving: "the content")
            let reader = try FileHandle(forReadingFrom: URL(fileURLWithPath: remote["one"]))
            defer { try? reader.close() }
            try await restart(remote, session)
            #expect(try content(remote) == Self.new)
        }
    }

    @Test("FOLDER-4: the edit whose write was interrupted waits while another program has the file open for writing")
    func editedMeanwhile() async throws {
        try await FolderRemote.run { remote, session in
            let left = "the new content"
            let (_, item) = try await interrupt(remote, session, leaving: left)
            let other = try FileHandle(forUpdating: URL(fileURLWithPath: remote["one"]))
            let code = await failureCode {
                _ = try await session.modify(item, .contents, content: Array(Self.new.utf8))
            }
            #expect(code == .posix)
            #expect(try content(remote) == left)
            try other.close()
            let stored = try await session.modify(item, .contents, content: Array(Self.new.utf8))
            #expect(stored.item.itemIdentifier == item.itemIdentifier)
            #expect(try content(remote) == Self.new)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: an edit does not wait for an interrupted write that fails although no program has the file open")
    func failsForAnotherReason() async throws {
        try await FolderRemote.run { remote, session in
            let (copy, item) = try await interrupt(remote, session, leaving: "the content")
            let other = try FileHandle(forUpdating: URL(fileURLWithPath: remote["one"]))
            let edit = Array("another edit".utf8)
            let early = await failureCode { _ = try await session.modify(item, .contents, content: edit) }
            #expect(early == .posix)
            try other.close()
            // A link is not followed: this fails for root too.
            try FileManager.default.removeItem(atPath: remote[copy])
            try FileManager.default.createSymbolicLink(atPath: remote[copy], withDestinationPath: "one")
            let code = await failureCode { _ = try await session.modify(item, .contents, content: edit) }
            #expect(code == .localVersionConflictingWithServer)
            #expect(try content(remote) == "the content")
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).count == 1)
        }
    }

    @Test("FOLDER-4: an interrupted write is not completed while another program has the file open for writing")
    func openMeanwhile() async throws {
        try await FolderRemote.run { remote, session in
            let left = "the content"
            let (copy, _) = try await interrupt(remote, session, leaving: left)
            let other = try FileHandle(forUpdating: URL(fileURLWithPath: remote["one"]))
            try await restart(remote, session)
            #expect(try content(remote) == left)
            #expect(FileManager.default.fileExists(atPath: remote[copy]))
            try other.close()
            try await restart(remote, session)
            #expect(try content(remote) == Self.new)
        }
    }

    @Test("FOLDER-4: the copy of a write that waits is no leftover, however old it is")
    func copyIsNoLeftover() async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            let other = try FileHandle(forUpdating: URL(fileURLWithPath: remote["one"]))
            let early = try DirectoryProvider(root: remote.root, manager: session.manager, leftoverAge: 0)
            let listed = try await ProviderSession(provider: early, manager: session.manager).list()
            await early.invalidate()
            #expect(listed.map(\.filename) == ["one"])
            #expect(FileManager.default.fileExists(atPath: remote[copy]))
            try other.close()
            try await restart(remote, session)
            #expect(try content(remote) == Self.new)
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
        }
    }

    @Test("FOLDER-4: another domain of the same folder does not remove the copy of a write that waits for a day")
    func copyOfAnotherDomain() async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            let leftover = HiddenName.make()
            try await remote.write([1], to: leftover)
            let state = try remote.directory.makeDirectory("other")
            let manager = TestManager(domain: remote.domain, stateDirectory: state)
            try await Task.sleep(for: .seconds(2))
            // A day of this test has a second.
            let other = try DirectoryProvider(root: remote.root, manager: manager, leftoverAge: 1)
            let listed = try await ProviderSession(provider: other, manager: manager).list()
            await other.invalidate()
            #expect(listed.map(\.filename) == ["one"])
            #expect(!FileManager.default.fileExists(atPath: remote[leftover]))
            #expect(remote.text(copy) == Self.new)
            // Nothing needs it for ever.
            let late = try DirectoryProvider(root: remote.root, manager: manager, leftoverAge: 0)
            try await ProviderSession(provider: late, manager: manager).list()
            await late.invalidate()
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
        }
    }

    @Test(
        "FOLDER-4: each start with a write that waits says so to other domains of the same folder",
        arguments: [true, false])
    func copyIsRenewed(isFound: Bool) async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            let path = remote.root.appending(copy)
            let before = try FileStatus(at: path)
            let other = try FileHandle(forUpdating: URL(fileURLWithPath: remote["one"]))
            defer { try? other.close() }
            if !isFound { try FileManager.default.removeItem(atPath: remote["one"]) }
            // A clock of the kernel ticks between.
            try await Task.sleep(for: .milliseconds(50))
            try await restart(remote, session)
            let after = try FileStatus(at: path)
            #expect(after.changed != before.changed)
            #expect(after.modified == before.modified)
        }
    }

    /// Calls a closure with a file of the names "one" and "two", and the root that they are in.
    private func withLinkedFile(
        _ body: (FolderRemote, ProviderSession, Folder, FileDescriptor) throws -> Void
    ) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write(Array(Self.old.utf8), to: "one")
            try remote.link("one", as: "two")
            let folder = try #require(session.provider as? DirectoryProvider).folder
            let root = try folder.openRoot()
            defer { try? root.close() }
            try body(remote, session, folder, root)
        }
    }

    @Test("FOLDER-4: a write in place that takes longer than a minute is recorded as one that goes on")
    func longWrite() async throws {
        try await withLinkedFile { remote, session, folder, root in
            let upload = try Upload(in: root, permissions: 0o644)
            try upload.file.writeAll(Self.new.utf8)
            let start = Int64(Date().timeIntervalSince1970)
            var clock = start
            var recorded: InPlaceEdit?
            let isWritten = try upload.writeInPlace(
                "one", expecting: FileStatus(of: "one", in: root), path: [], folder, BlockingCalls.Cancellation(),
                finish: {
                    recorded = try session.manager.store.list(in: InPlaceEdit.namespace).first?.record
                },
                now: {
                    clock += 40
                    return clock
                })
            #expect(isWritten)
            // At the beginning, before the one part, and before the length is set.
            #expect(recorded?.begun == start + 120)
            let copy = try #require(recorded).copy
            #expect(InPlaceEdit.isCopyName(copy))
            #expect(remote.text("two") == Self.new)
        }
    }

    @Test("FOLDER-4: the repair of an older write does not replace a newer one")
    func newerWrite() async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            let folder = try #require(session.provider as? DirectoryProvider).folder
            let root = try folder.openRoot()
            defer { try? root.close() }
            // It is as long as the older one.
            let newer = "THE NEW CONTENT, LONGER"
            let upload = try Upload(in: root, permissions: 0o644)
            try upload.file.writeAll(newer.utf8)
            let isWritten = try upload.writeInPlace(
                "one", expecting: FileStatus(of: "one", in: root), path: [], folder, BlockingCalls.Cancellation(),
                finish: {})
            #expect(isWritten)
            folder.finishWritingInPlace()
            #expect(remote.text("one") == newer)
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: a write in place whose last step fails is completed, and no loss is reported")
    func failedLastStep() async throws {
        try await withLinkedFile { remote, session, folder, root in
            var failure: Errno?
            do {
                let upload = try Upload(in: root, permissions: 0o644)
                try upload.file.writeAll(Self.new.utf8)
                _ = try upload.writeInPlace(
                    "one", expecting: FileStatus(of: "one", in: root), path: [], folder, BlockingCalls.Cancellation(),
                    finish: { throw Errno.ioError })
            } catch let error as Errno {
                failure = error
            }
            #expect(failure == .ioError)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).count == 1)
            folder.finishWritingInPlace()
            #expect(session.manager.warnings == [])
            #expect(try FileManager.default.contentsOfDirectory(atPath: remote.root.string).sorted() == ["one", "two"])
            #expect(remote.text("two") == Self.new)
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: an interrupted write is completed once when the folder is back, and no loss is reported")
    func folderIsBack() async throws {
        try await FolderRemote.run { remote, session in
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            let away = remote.root.string + ".away"
            try FileManager.default.moveItem(atPath: remote.root.string, toPath: away)
            let folder = try Folder(path: remote.root, manager: session.manager, leftoverAge: 1)
            try FileManager.default.moveItem(atPath: away, toPath: remote.root.string)
            let isUnfinished = folder.hasUnfinishedEdits.load(ordering: .relaxed)
            #expect(isUnfinished)
            // The first call that opens the root begins to complete the writes, too.
            folder.finishWritingInPlace()
            #expect(try content(remote) == Self.new)
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
            #expect(session.manager.warnings.filter { $0.contains("was removed from the source") } == [])
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }
}
