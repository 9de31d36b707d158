import FileProvider
import FileProviderTesting
import Foundation
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import DirectoryProvider

/// Repairs during which another program writes to the file, and repairs that fail.
extension InterruptedWriteTests {
    @Test(
        "FOLDER-4: a repair stops where another program writes to the file before or between its parts",
        arguments: [0, 1, 2], [false, true])
    func writtenDuringTheRepair(part: Int, isShorter: Bool) async throws {
        try await FolderRemote.run { remote, _ in
            let size: Int64 = 17 << 20
            func file(_ name: String) throws -> FileDescriptor {
                try FileDescriptor.open(
                    remote.root.appending(name), .readWrite, options: [.create, .closeOnExec],
                    permissions: .ownerReadWrite)
            }
            let copy = try file("copy")
            defer { try? copy.close() }
            try copy.setLength(size)
            try copy.writeAll("new".utf8)
            try copy.writeAll(Array("new".utf8).span.bytes, at: size - 3)
            let target = try file("one")
            defer { try? target.close() }
            try target.setLength(size)
            let other = try file("one")
            defer { try? other.close() }
            func writeAsAnother() throws {
                // A clock of the kernel ticks between.
                Thread.sleep(forTimeInterval: 0.05)
                if isShorter { try other.setLength(0) }
                try other.writeAll(Array("other".utf8).span.bytes, at: 0)
            }
            let found = try FileStatus(of: target)
            if part == 0 { try writeAsAnother() }
            var parts = 0
            let isTaken = try target.takeContent(of: copy, size: size, expecting: found) { _ in
                parts += 1
                if parts == part { try writeAsAnother() }
            }
            #expect(!isTaken)
            #expect(parts == part)
            #expect(try target.readBytes(at: 0, count: 5) == Array("other".utf8))
            #expect(try FileStatus(of: target).size == (isShorter ? 5 : size))
        }
    }

    @Test("FOLDER-4: a repair that fails has stopped where another program has written to the file meanwhile")
    func writtenBeforeTheFailure() async throws {
        try await FolderRemote.run { remote, _ in
            try await remote.write(Array("new".utf8), to: "copy")
            try await remote.write(Array("old".utf8), to: "one")
            let copy = try FileDescriptor.open(remote.root.appending("copy"), .readOnly)
            defer { try? copy.close() }
            let target = try FileDescriptor.open(remote.root.appending("one"), .readWrite)
            defer { try? target.close() }
            let isTaken = try target.takeContent(of: copy, size: 3, expecting: FileStatus(of: target)) { file in
                // A clock of the kernel ticks between.
                Thread.sleep(forTimeInterval: 0.05)
                try file.writeAll(Array("her".utf8).span.bytes, at: 0)
                throw Errno.ioError
            }
            #expect(!isTaken)
            #expect(remote.text("one") == "her")
        }
    }

    @Test(
        "FOLDER-4: a failed write is recorded whatever date the file has",
        .enabled(if: FileManager.default.fileExists(atPath: "/dev/shm")))
    func failedWriteOfAnyDate() async throws {
        // Unlike a disk, a tmpfs keeps any date.
        let path = FilePath("/dev/shm/yonder-test-\(UUID().uuidString)")
        let target = try FileDescriptor.open(
            path, .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        defer {
            try? target.close()
            try? FileManager.default.removeItem(atPath: path.string)
        }
        try target.setModified(FileMoment(seconds: .min, nanoseconds: 0))
        try await FolderRemote.run { remote, session in
            _ = try await interrupt(remote, session, leaving: Self.old)
            let edit = try #require(session.manager.store.list(in: InPlaceEdit.namespace).first).record
            let folder = try #require(session.provider as? DirectoryProvider).folder
            try folder.noteFailure(of: edit, target)
            let noted = try session.manager.store.list(in: InPlaceEdit.namespace).first?.record.begun
            #expect(noted == Int64.min)
        }
    }

    @Test(
        "FOLDER-4: a repair without a lease writes all of the content, over a shorter and over a longer one",
        arguments: [0, 5, 1 << 20])
    func repairedWithoutALease(old: Int64) async throws {
        try await FolderRemote.run { remote, _ in
            try await remote.write(Array("new".utf8), to: "copy")
            try await remote.write([UInt8](repeating: 7, count: Int(old)), to: "one")
            let copy = try FileDescriptor.open(remote.root.appending("copy"), .readWrite)
            defer { try? copy.close() }
            try copy.setLength(1 << 18)
            let target = try FileDescriptor.open(remote.root.appending("one"), .readWrite)
            defer { try? target.close() }
            #expect(try target.takeContent(of: copy, size: 1 << 18, expecting: FileStatus(of: target)))
            #expect(try target.readBytes(at: 0, count: 1 << 20) == copy.readBytes(at: 0, count: 1 << 20))
        }
    }

    /// Begins a repair an hour after the write, which fails after it has written.
    ///
    /// - Returns: the record while it wrote, and the date that it has left.
    private func failToRepair(
        _ remote: FolderRemote, _ session: ProviderSession, _ copy: String
    ) throws -> (noted: InPlaceEdit, date: FileMoment) {
        var edit = try #require(session.manager.store.list(in: InPlaceEdit.namespace).first).record
        edit.begun -= 3600
        try session.manager.store.put(edit, at: edit.key, in: InPlaceEdit.namespace)
        let date = Date(timeIntervalSince1970: Double(edit.begun))
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: remote["one"])
        let folder = try #require(session.provider as? DirectoryProvider).folder
        let root = try folder.openRoot()
        defer { try? root.close() }
        let content = try root.openFile(named: copy)
        defer { try? content.close() }
        var noted: InPlaceEdit?
        var failure: Errno?
        do {
            try folder.complete(edit, named: "one", in: root, content) { _ in
                noted = try session.manager.store.list(in: InPlaceEdit.namespace).first?.record
                throw Errno.ioError
            }
        } catch let error as Errno {
            failure = error
        }
        #expect(failure == .ioError)
        let record = try #require(noted)
        return (record, try FileStatus(of: "one", in: root).modified)
    }

    /// Writes a file as it is after a repair, or as another program writes it later.
    private func write(_ content: String, _ date: FileMoment, _ remote: FolderRemote) async throws {
        try await remote.write(Array(content.utf8), to: "one")
        let file = try FileDescriptor.open(remote.root.appending("one"), .readWrite)
        defer { try? file.close() }
        try file.setModified(date)
    }

    @Test(
        "FOLDER-4: a repair that failed or was interrupted is completed, however long after the write",
        arguments: [true, false])
    func interruptedRepair(isKilled: Bool) async throws {
        try await FolderRemote.run { remote, session in
            let left = "the content"
            let (copy, _) = try await interrupt(remote, session, leaving: left)
            let (noted, date) = try failToRepair(remote, session, copy)
            if isKilled { try session.manager.store.put(noted, at: noted.key, in: InPlaceEdit.namespace) }
            // What has not reached the disk is not there after a crash.
            try await write(left, date, remote)
            try #require(session.provider as? DirectoryProvider).folder.finishWritingInPlace()
            #expect(remote.text("one") == Self.new)
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: what another program has written after a repair that failed is not replaced by the next one")
    func writtenAfterAFailedRepair() async throws {
        try await FolderRemote.run { remote, session in
            let theirs = "their words"
            let (copy, _) = try await interrupt(remote, session, leaving: "the content")
            let (_, date) = try failToRepair(remote, session, copy)
            // It is as long as the old content.
            try await write(theirs, FileMoment(seconds: date.seconds + 1, nanoseconds: 0), remote)
            try #require(session.provider as? DirectoryProvider).folder.finishWritingInPlace()
            #expect(remote.text("one") == theirs)
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }

    @Test("FOLDER-4: what another program has written during a repair is not replaced by the next one")
    func stoppedRepair() async throws {
        try await FolderRemote.run { remote, session in
            // It is as long as the old content.
            let theirs = "their words"
            let (copy, _) = try await interrupt(remote, session, leaving: theirs)
            let folder = try #require(session.provider as? DirectoryProvider).folder
            let edit = try #require(session.manager.store.list(in: InPlaceEdit.namespace).first).record
            try folder.stop(edit)
            folder.finishWritingInPlace()
            #expect(remote.text("one") == theirs)
            #expect(!FileManager.default.fileExists(atPath: remote[copy]))
            #expect(try session.manager.store.list(in: InPlaceEdit.namespace).isEmpty)
        }
    }
}
