import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Files of the source that are written in place with the same size, and get their old time.
@Suite struct RewrittenContentTests {
    /// Writes a file in place, and gives it its old time.
    private func rewrite(_ name: String, _ bytes: [UInt8], in remote: FolderRemote) throws {
        try Self.rewrite(remote.root.appending(name), bytes)
    }

    private static func rewrite(_ path: FilePath, _ bytes: [UInt8]) throws {
        let writer = try FileDescriptor.open(path, .writeOnly)
        try writer.closeAfter {
            let date = try FileStatus(of: writer).modified
            _ = try writer.writeAll(bytes)
            try writer.setModified(date)
        }
    }

    @Test("FOLDER-17: content that is written in place with its size and date has another metadata version")
    func writtenWithTheOldDate() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            try rewrite("file", [3, 4], in: remote)
            let written = try await session.item(file.itemIdentifier)
            #expect(written.itemVersion.contentVersion == file.itemVersion.contentVersion)
            #expect(written.itemVersion.metadataVersion != file.itemVersion.metadataVersion)
            #expect(session.provider.features.contentVersionsMayRepeat)
            // What was written here is based on other bytes.
            let code = await failureCode { _ = try await session.modify(file, .contents, content: [5, 6]) }
            #expect(code == .localVersionConflictingWithServer)
            #expect(remote.text("file") == "\u{3}\u{4}")
            _ = try await session.modify(written, .contents, content: [5, 6])
            #expect(remote.text("file") == "\u{5}\u{6}")
        }
    }

    @Test("FOLDER-17: what is saved by a rename does not replace content that was written in place")
    func savedOverRewritten() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            try rewrite("file", [3, 4], in: remote)
            // The attributes of the new file come with its content.
            let fields: ItemFields = [.contents, .contentModificationDate, .permissions, .ownership]
            let code = await failureCode { _ = try await session.modify(file, fields, content: [5, 6]) }
            #expect(code == .localVersionConflictingWithServer)
            #expect(remote.text("file") == "\u{3}\u{4}")
            // They may have been stored before, by a call without an answer.
            let base = ItemVersion(contentVersion: file.itemVersion.contentVersion, metadataVersion: [])
            _ = try await session.modify(file, fields, content: [5, 6], base: base)
            #expect(remote.text("file") == "\u{5}\u{6}")
        }
    }

    @Test(
        "FOLDER-17: content that is written in place while other content is copied over is not replaced",
        arguments: ["file", "other"])
    func rewrittenDuringAnUpload(newName: String) async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            var file = try await session.find("file")
            let fields: ItemFields = newName == file.filename ? .contents : [.contents, .filename]
            file.filename = newName
            let changed = file
            let path = remote.root.appending("file")
            let content = try FileDescriptor.open(remote.directory.makeFile("content", [5, 6]), .readOnly)
            // It is confirmed once all of it is copied.
            let source = ContentSource(
                descriptor: content, size: 2, confirm: { try Self.rewrite(path, [3, 4]) })
            let code = await failureCode { _ = try await session.modify(changed, fields, source: source) }
            #expect(code == .localVersionConflictingWithServer)
            #expect(remote.text("file") == "\u{3}\u{4}")
        }
    }

    @Test("FOLDER-17: a file that was written in place with its date is not deleted")
    func deletionOfRewritten() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            try rewrite("file", [3, 4], in: remote)
            let error = await failure { try await session.delete(file) }
            #expect(error?.code == .deletionRejected)
            #expect(remote.text("file") == "\u{3}\u{4}")
            let present = try await session.item(file.itemIdentifier)
            #expect(error?.item == present)
            try await session.delete(present)
            #expect(!FileManager.default.fileExists(atPath: remote["file"]))
        }
    }

    @Test("FOLDER-17: a file that was written in place is not deleted before its new content was looked at")
    func deletionOfNoticed() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            let anchor = try await session.anchor()
            try rewrite("file", [3, 4], in: remote)
            // The second round says that the first was taken in.
            let batch = try await session.changes(from: anchor)
            #expect(batch.updated.map(\.itemIdentifier).contains(file.itemIdentifier))
            _ = try await session.changes(from: batch.anchor)
            let code = await failureCode { try await session.delete(file) }
            #expect(code == .deletionRejected)
            #expect(remote.text("file") == "\u{3}\u{4}")
        }
    }

    @Test(
        "FOLDER-17: a file whose attributes alone were changed there is deleted, also one that was written just before it was listed",
        arguments: [true, false])
    func deletionAfterAttributes(isOlder: Bool) async throws {
        try await FolderRemote.run { remote, session in
            if isOlder { try await remote.write([1, 2], to: "file") }
            _ = try await session.list()
            let anchor = try await session.anchor()
            if !isOlder { try await remote.write([1, 2], to: "file") }
            var batch = try await session.changes(from: anchor)
            let file = try await session.find("file")
            try await Command.run("chmod", "600", remote["file"]).expectSuccess()
            // The second round says that the first was taken in.
            for _ in 0..<2 { batch = try await session.changes(from: batch.anchor) }
            try await session.delete(file)
            #expect(!FileManager.default.fileExists(atPath: remote["file"]))
        }
    }

    @Test("FOLDER-17: a file that was written in place, and got another mode afterwards, is not deleted")
    func deletionOfRewrittenWithAttributes() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            var batch = try await session.changes(from: session.anchor())
            // The clock of change times is a slow one.
            try await Task.sleep(for: .milliseconds(20))
            try rewrite("file", [3, 4], in: remote)
            for _ in 0..<2 { batch = try await session.changes(from: batch.anchor) }
            try await Command.run("chmod", "600", remote["file"]).expectSuccess()
            let code = await failureCode { try await session.delete(file) }
            #expect(code == .deletionRejected)
            #expect(remote.text("file") == "\u{3}\u{4}")
        }
    }

    @Test(
        "FOLDER-17: a file that was renamed is not deleted if it was written in place, too",
        arguments: ["written before", "written after", "written before, and is back", "not written"])
    func deletionOfRenamed(how: String) async throws {
        try await FolderRemote.run { remote, session in
            _ = try await session.list()
            let anchor = try await session.anchor()
            try await remote.write([1, 2], to: "file")
            _ = try await session.changes(from: anchor)
            let file = try await session.find("file")
            // The clock of change times is a slow one.
            try await Task.sleep(for: .milliseconds(20))
            if how.hasPrefix("written before") { try rewrite("file", [3, 4], in: remote) }
            try FileManager.default.moveItem(atPath: remote["file"], toPath: remote["other"])
            if how == "written after" { try rewrite("other", [3, 4], in: remote) }
            let (isWritten, isBack) = (how != "not written", how.hasSuffix("is back"))
            if isBack { try FileManager.default.moveItem(atPath: remote["other"], toPath: remote["file"]) }
            let code = await failureCode { try await session.delete(file) }
            #expect(code == (isWritten ? FileProviderError.Code.deletionRejected : nil))
            #expect(remote.text(isBack ? "file" : "other") == (isWritten ? "\u{3}\u{4}" : ""))
        }
    }

    @Test("FOLDER-17: after a loss of events any file may have been written before")
    func lostEvents() throws {
        let log = ChangeLog()
        let place = ChangeLog.Place("file", in: "d")
        let (before, seen) = (FileTimestamp(seconds: 1), FileTimestamp(seconds: 2, nanoseconds: 1))
        #expect(!log.isWritten(place, since: before))
        log.append([place], written: [place])
        #expect(log.isWritten(place, since: before))
        let write = try #require(log.lastWrite(at: place))
        log.noteSeen(place, changedAt: seen, after: write)
        log.expire()
        #expect(log.isWritten(place, since: before))
        #expect(!log.isWritten(place, since: seen))
        log.reset()
        #expect(log.isWritten(place, since: seen))
        let after = FileTimestamp(nanosecondsSince1970: .max)
        #expect(!log.isWritten(place, since: after))
    }

    @Test("FOLDER-17: a file of whose writes the log has forgotten the oldest may have been written") func forgotten() {
        let log = ChangeLog()
        let place = ChangeLog.Place("file", in: "d")
        log.append([], written: [place])
        log.append([], written: Set((0..<70_000).map { ChangeLog.Place("\($0)", in: "d") }))
        #expect(log.lastWrite(at: place) == nil)
        #expect(log.isWritten(place, since: FileTimestamp(seconds: 1)))
    }

    @Test("FOLDER-17: a file that was written in place is not deleted after the clock was set back")
    func deletionAfterAClockStep() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            var file = try await session.find("file")
            // The system knows it from when the clock was ahead.
            file.itemVersion.metadataVersion = Array("\(FileTimestamp.now.seconds + 3600).1".utf8)
            let known = file
            try rewrite("file", [3, 4], in: remote)
            let code = await failureCode { try await session.delete(known) }
            #expect(code == .deletionRejected)
            #expect(remote.text("file") == "\u{3}\u{4}")
        }
    }

    @Test("FOLDER-17: what the system has noticed is heeded, whatever explains it now, and without an entry in the log")
    func noticed() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("never")
            var files: [FileProviderItem] = []
            for name in ["edited", "deleted"] {
                try await remote.write([1, 2], to: name)
                var file = try await session.find(name)
                file.itemVersion.metadataVersion = Array("?".utf8) + file.itemVersion.metadataVersion
                files.append(file)
            }
            _ = try await session.changes(from: session.anchor())
            try await Command.run("chmod", "600", remote["edited"]).expectSuccess()
            let conflict = await failureCode {
                _ = try await session.modify(files[0], .contents, content: [5, 6], base: files[0].itemVersion)
            }
            #expect(conflict == .localVersionConflictingWithServer)
            try remote.link("deleted", as: "never/link")
            try await remote.delete("never/link")
            let refusal = await failureCode { try await session.delete(files[1]) }
            #expect(refusal == .deletionRejected)
            #expect(remote.text("edited") == "\u{1}\u{2}" && remote.text("deleted") == "\u{1}\u{2}")
        }
    }

    @Test("FOLDER-17: a file that had another hard link elsewhere for a while is deleted")
    func deletionAfterLink() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("never")
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            _ = try await session.changes(from: session.anchor())
            try remote.link("file", as: "never/link")
            try await remote.delete("never/link")
            try await session.delete(file)
            #expect(!FileManager.default.fileExists(atPath: remote["file"]))
        }
    }

    @Test("SEND-14: a file that was changed here before the daemon was killed does not come back when it is deleted")
    func deletionAfterOwnChange() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            // Its answer was lost.
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: remote["file"])
            let later = try await remote.makeProvider(for: session.manager)
            try await withCleanUp({ await later.invalidate() }) {
                try await ProviderSession(provider: later, manager: session.manager).delete(file)
            }
            #expect(!FileManager.default.fileExists(atPath: remote["file"]))
        }
    }

    @Test("FOLDER-17: a change of attributes does not hide that the content was written in place")
    func attributesOfRewritten() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            var file = try await session.find("file")
            try rewrite("file", [3, 4], in: remote)
            file.permissions = 0o600
            let answer = try await session.modify(file, .permissions).item
            #expect(answer.permissions == 0o600 && answer.itemVersion == file.itemVersion)
            // Where nothing was written in between, the answer has the present version.
            file = try await session.item(file.itemIdentifier)
            file.permissions = 0o640
            let next = try await session.modify(file, .permissions).item
            let present = try await session.item(file.itemIdentifier)
            #expect(next.itemVersion == present.itemVersion)
        }
    }

    @Test("FOLDER-17: new content is no conflict where attributes show why the metadata version is another one")
    func contentAfterAttributes() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: remote["file"])
            _ = try await session.modify(file, .contents, content: [5, 6])
            #expect(remote.text("file") == "\u{5}\u{6}")
        }
    }

    @Test("FOLDER-17: new content is no conflict where the file has got another name")
    func contentAfterRename() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            try FileManager.default.moveItem(atPath: remote["file"], toPath: remote["other"])
            _ = try await session.modify(file, .contents, content: [5, 6])
            #expect(remote.text("other") == "\u{5}\u{6}")
        }
    }

    @Test("FOLDER-17: new content is no conflict where another hard link was removed")
    func contentAfterUnlinking() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.writeLinked("file", "link")
            let file = try await session.find("file")
            try await remote.delete("link")
            _ = try await session.modify(file, .contents, content: [5, 6])
            #expect(remote.text("file") == "\u{5}\u{6}")
        }
    }

    @Test("FOLDER-17: content that was written there, too, is stored with the present version")
    func sameContent() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            let file = try await session.find("file")
            try rewrite("file", [3, 4], in: remote)
            let answer = try await session.modify(file, .contents, content: [3, 4]).item
            let present = try await session.item(file.itemIdentifier)
            #expect(answer.itemVersion == present.itemVersion)
            #expect(answer.itemVersion.metadataVersion != file.itemVersion.metadataVersion)
        }
    }

    @Test("FOLDER-17: new content with a new name does not replace content that was written in place")
    func contentWithAName() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.write([1, 2], to: "file")
            var file = try await session.find("file")
            try rewrite("file", [3, 4], in: remote)
            file.filename = "other"
            let renamed = file
            let code = await failureCode {
                _ = try await session.modify(renamed, [.contents, .filename], content: [5, 6])
            }
            #expect(code == .localVersionConflictingWithServer)
            #expect(remote.text("file") == "\u{3}\u{4}")
        }
    }
}
