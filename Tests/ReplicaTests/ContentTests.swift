import FileProvider
import Foundation
import ReplicaTestSupport
import Syscalls
import SystemPackage
import Testing

@testable import Replica

/// The bytes of files: filled, kept apart by version, evicted.
@Suite struct ContentTests {
    let fixture: ReplicaFixture
    let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    private func number(_ identifier: String = "a") throws -> InodeNumber {
        try #require(try replica.number(identifier))
    }

    @Test func rangesAddUpToAMaterializedFile() async throws {
        try await replica.list([.file("a", size: 100)], open: fixture.open)
        let beginning = try await replica.beginContent(of: number(), version: nil)
        defer { try? beginning.descriptor.close() }
        _ = try await replica.recordContent(
            of: number(), generation: beginning.generation, ranges: ByteRanges([0..<10, 50..<60]))
        #expect(try replica.database.inode(number())?.content == .partial)
        #expect(try replica.database.inode(number())?.localBytes == 20)
        #expect(try replica.database.presentRanges(of: number()).ranges == [0..<10, 50..<60])
        _ = try await replica.recordContent(
            of: number(), generation: beginning.generation, ranges: ByteRanges([0..<100]))
        #expect(try replica.database.inode(number())?.content == .materialized)
        #expect(try replica.database.presentRanges(of: number()).isEmpty)
    }

    @Test func aTransferThatLostItsFileRecordsNothing() async throws {
        try await replica.list([.file("a")], open: fixture.open)
        let beginning = try await replica.beginContent(of: number(), version: nil)
        defer { try? beginning.descriptor.close() }
        try await replica.change([.file("a", version: "2")], open: fixture.open)
        let effects = try await replica.recordContent(
            of: number(), generation: beginning.generation, ranges: ByteRanges([0..<100]))
        #expect(effects == nil)
        #expect(try replica.database.inode(number())?.content == .dataless)
        #expect(fixture.contentFiles.isEmpty)
    }

    /// Makes a file here, and an empty folder.
    private func makeFileAndFolder() async throws -> (number: InodeNumber, folder: FilePath) {
        try await replica.list([], open: fixture.open)
        let made = try replica.change(open: fixture.open) {
            try $0.names.createFile(
                "file", in: .root, permissions: 0o640, caller: LocalCaller(user: 7, group: 8), usualGroup: 9)
        }.0
        try made.content.close()
        let folder = fixture.directory.appending("folder")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        return (made.inode.number, folder)
    }

    @Test("IMPORT-2: a file that was opened for writing after it was taken stays, and the replica has its own")
    func takenFileOfItsOwn() async throws {
        let (number, folder) = try await makeFileAndFolder()
        let content = replica.contents.path(of: number)
        let file = folder.appending("file")
        try content.link(as: file)
        let writer = try FileDescriptor.open(file, .readWrite)
        defer { try? writer.close() }
        var taken = TakenFolder(replica, folder)
        #expect(try taken.clear(keepsFolder: true) == [file.string])
        try writer.writeAll(Array("later".utf8))
        #expect(try FileStatus(at: content).size == 0)
        #expect(try FileStatus(at: file).size == 5)
    }

    @Test("IMPORT-2: a file that was written after it was taken, and closed, is sent as it is") func takenAndWritten()
        async throws
    {
        let (number, folder) = try await makeFileAndFolder()
        _ = try replica.change(open: fixture.open) { try $0.contents.endWriting(number) }
        try replica.contents.path(of: number).link(as: folder.appending("file"))
        let writer = try FileDescriptor.open(folder.appending("file"), .writeOnly)
        try writer.writeAll(Array("later".utf8))
        try writer.close()
        var taken = TakenFolder(replica, folder)
        #expect(try taken.clear(keepsFolder: true) == [])
        #expect(try replica.database.inode(number)?.size == 5)
    }

    @Test("IMPORT-2: a file that was copied, and is written while it is compared with the copy, stays")
    func takenAndComparedWhileWritten() async throws {
        let (number, folder) = try await makeFileAndFolder()
        let content = replica.contents.path(of: number)
        try Data("early".utf8).write(to: URL(fileURLWithPath: content.string))
        _ = try replica.change(open: fixture.open) { try $0.contents.endWriting(number) }
        let file = folder.appending("file")
        try Data("early".utf8).write(to: URL(fileURLWithPath: file.string))
        var taken = TakenFolder(replica, folder)
        taken.compared = { file in
            // Of the same size, and closed at once. The clock of change times ticks slowly.
            Thread.sleep(forTimeInterval: 0.05)
            let writer = try FileDescriptor.open(file, .writeOnly)
            try writer.closeAfter { _ = try writer.writeAll(Array("later".utf8)) }
        }
        #expect(try taken.clear(keepsFolder: true) == [file.string])
        #expect(try file.contents() == Array("later".utf8))
        #expect(try content.contents() == Array("early".utf8))
        // What nothing has written meanwhile goes.
        try Data("early".utf8).write(to: URL(fileURLWithPath: file.string))
        var untouched = TakenFolder(replica, folder)
        #expect(try untouched.clear(keepsFolder: true) == [])
        #expect(!FileManager.default.fileExists(atPath: file.string))
    }

    @Test("IMPORT-2: a symbolic link that was changed after it was taken stays") func takenLink() async throws {
        try await replica.list([], open: fixture.open)
        _ = try replica.change(open: fixture.open) { changes in
            for name in ["same", "other"] {
                _ = try changes.names.create(
                    name, in: .root, NewInode(kind: .symbolicLink, permissions: 0o777, linkTarget: "target"),
                    caller: LocalCaller(user: 7, group: 8), usualGroup: 9)
            }
        }
        let folder = fixture.directory.appending("folder")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        try folder.appending("same").makeLink(to: "target")
        try folder.appending("other").makeLink(to: "another")
        var taken = TakenFolder(replica, folder)
        #expect(try taken.clear(keepsFolder: true) == [folder.appending("other").string])
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.string) == ["other"])
    }

    @Test func aNewVersionGetsAnotherInodeWhileTheOldOneIsOpen() async throws {
        try await replica.list([.file("a", size: 100)], open: fixture.open)
        try await replica.fill(number())
        let old = try number()
        fixture.open.insert(old)
        let effects = try await replica.change([.file("a", size: 7, version: "2")], open: fixture.open)
        #expect(effects.invalidations.contains(.departedFile(parent: .root, name: "a")))
        let opened = try #require(try replica.database.inode(old))
        #expect(opened.size == 100)
        #expect(opened.content == .materialized)
        #expect(opened.linkCount == 0)
        let newest = try #require(try replica.database.inode(number()))
        #expect(newest.number != old)
        #expect(newest.size == 7)
        #expect(newest.content == .dataless)
        await #expect(throws: FileProviderError.self) {
            try await replica.beginContent(of: old, version: Array("2".utf8))
        }
        fixture.open.remove(old)
        _ = try await replica.ingest(open: fixture.open) { try $0.versions.settle(old) }
        #expect(try replica.database.inode(old) == nil)
        #expect(fixture.contentFiles.isEmpty)
        #expect(try replica.database.defects() == [])
    }

    /// Writes to a file that is open, and that has a new version on the remote by then.
    private func writeToAnOldVersion() async throws -> InodeNumber {
        try await replica.list([.file("a", size: 100)], open: fixture.open)
        try await replica.fill(number())
        let old = try number()
        fixture.open.insert(old)
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(old, truncating: false, caller: LocalCaller(user: 0, group: 0))
        }
        try await replica.change([.file("a", size: 7, version: "2")], open: fixture.open)
        #expect(try replica.names() == ["a"])
        let file = try replica.openContentForWriting(of: old)
        try file.writeAll(Array("ours".utf8).span.bytes, at: 0)
        try file.close()
        return old
    }

    @Test func writeToAnOldVersionBecomesAConflictCopy() async throws {
        let old = try await writeToAnOldVersion()
        // A transaction that is to change no names is made again as one that may.
        let (_, effects) = try replica.change(open: fixture.open, changingNames: false) {
            try $0.contents.endWriting(old)
        }
        #expect(effects.conflictCopies.count == 1)
        let copy = try #require(try replica.database.items(in: .root).first { $0.inode.number == old })
        #expect(copy.name.hasPrefix("a (conflicted copy of "))
        #expect(copy.identifier == nil)
        #expect(copy.changedFields.contains(.contents))
        #expect(try replica.database.inode(number())?.size == 7)
        #expect(try replica.database.defects() == [])
    }

    @Test func writeToAnOldVersionBeforeACrashIsFoundAtTheNextStart() async throws {
        let old = try await writeToAnOldVersion()
        try replica.close()
        let next = try fixture.replica()
        #expect(try next.names().count == 2)
        #expect(try next.database.inode(old)?.linkCount == 1)
        #expect(next.findings.contains { $0.contains("'a' was changed here and on the remote") })
        try next.close()
    }

    @Test func evictionGivesTheSpaceBackAndKeepsEverythingElse() async throws {
        try await replica.list([.file("a", size: 100)], open: fixture.open)
        try await replica.fill(number())
        let before = try #require(try replica.database.inode(number()))
        let (freed, effects) = try await replica.evictFile(number(), open: fixture.open)
        var expected = before
        expected.content = .dataless
        expected.localBytes = 0
        expected.contentGeneration += 1
        #expect(try replica.database.inode(number()) == expected)
        #expect(freed == 100)
        #expect(try effects.invalidations == [.contents(number())])
        #expect(fixture.contentFiles.isEmpty)
        #expect(try await replica.evictFile(number(), open: fixture.open).0 == 0)
    }

    @Test("a download that begins while the file is evicted has a content file") func downloadsDuringEvictions()
        async throws
    {
        try await replica.list([.file("a", size: 100)], open: fixture.open)
        let number = try number()
        for _ in 0..<200 {
            try await replica.fill(number)
            async let evicted = replica.evictFile(number, open: fixture.open)
            try await replica.beginContent(of: number, version: nil).descriptor.close()
            _ = try await evicted
            let isBegun = try replica.database.inode(number)?.content != .dataless
            #expect(!isBegun || replica.contents.hasFile(number))
        }
    }

    @Test func anOpenFileIsNotEvicted() async throws {
        try await replica.list([.file("a")], open: fixture.open)
        try await replica.fill(number())
        fixture.open.insert(try number())
        await #expect(throws: EvictionRefusal.isOpen) {
            try await replica.evictFile(self.number(), open: self.fixture.open)
        }
        #expect(fixture.contentFiles.count == 1)
    }

    @Test func keptFileIsNotEvicted() async throws {
        var directory = FileProviderItem.directory("d")
        directory.contentPolicy = .keepDownloaded
        try await replica.list([directory], open: fixture.open)
        try await replica.list([.file("a", in: "d")], in: number("d"), open: fixture.open)
        try await replica.fill(number())
        await #expect(throws: EvictionRefusal.nonEvictable) {
            try await replica.evictFile(self.number(), open: self.fixture.open)
        }
    }

    @Test func aListingIsNotEvictedBeforeWhatItHolds() async throws {
        try await replica.list([.file("a")], open: fixture.open)
        try await replica.fill(number())
        await #expect(throws: EvictionRefusal.nonEvictableChildren) { try await replica.evictListing(of: .root) }
        _ = try await replica.evictFile(number(), open: fixture.open)
        let effects = try await replica.evictListing(of: .root)
        #expect(effects.invalidations.contains(.entry(parent: .root, name: "a")))
        #expect(try replica.database.inode(.root)?.content == .dataless)
    }

    @Test func anOpenFileThatTheRemoteDeletesKeepsItsContent() async throws {
        try await replica.list([.file("a")], open: fixture.open)
        let number = try number()
        try await replica.fill(number)
        fixture.open.insert(number)
        try await replica.change(deleted: ["a"], open: fixture.open)
        #expect(try replica.names().isEmpty)
        #expect(try replica.database.inode(number)?.linkCount == 0)
        #expect(fixture.contentFiles == [number.description])
        fixture.open.remove(number)
        _ = try await replica.ingest(open: fixture.open) { try $0.versions.settle(number) }
        #expect(try replica.database.inode(number) == nil)
        #expect(fixture.contentFiles.isEmpty)
    }
}
