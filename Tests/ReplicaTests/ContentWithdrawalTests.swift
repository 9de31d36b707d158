import Dispatch
import FileProvider
import Foundation
import Logging
import ReplicaTestSupport
import Synchronization
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// The content file of an inode that goes is there as long as the row is, and no longer.
@Suite struct ContentWithdrawalTests {
    let fixture: ReplicaFixture
    let replica: Replica

    private let synced = SyncedNames()

    private struct Failure: Error {}

    private final class SyncedNames: Sendable {
        private let names = Mutex<[String]>([])
        var all: [String] { names.withLock { $0 } }

        func append(_ path: FilePath) { names.withLock { $0.append(path.lastComponent?.string ?? "") } }
    }

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    /// A file whose content is here, which has lost its name while it is open.
    private func nameless(_ name: String) async throws -> InodeNumber {
        try await replica.list([.file(name, size: 100)], open: fixture.open)
        let number = try #require(try replica.number(name))
        try await replica.fill(number)
        fixture.open.insert(number)
        _ = try replica.change(open: fixture.open) { try $0.names.unlink(name, in: .root) }
        #expect(fixture.contentFiles.contains(number.description))
        fixture.open.remove(number)
        return number
    }

    private var withdrawn: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: replica.contents.withdrawn.string) }
    }

    @Test("OPEN-2: the last close of an unlinked file removes inode and content in one transaction")
    func lastClose() async throws {
        let number = try await nameless("a")
        _ = try await replica.ingest(open: fixture.open) { try $0.versions.settle(number) }
        #expect(try replica.database.inode(number) == nil)
        #expect(fixture.contentFiles.isEmpty)
        try replica.database.deleteWithdrawnFiles()
        #expect(try withdrawn.isEmpty)
    }

    @Test("a transaction that fails puts back the content that it has withdrawn") func failure() async throws {
        let number = try await nameless("a")
        await #expect(throws: Failure.self) {
            _ = try await replica.ingest(open: fixture.open) { ingestion in
                try ingestion.versions.settle(number)
                throw Failure()
            }
        }
        #expect(try replica.database.inode(number)?.content == .materialized)
        #expect(fixture.contentFiles == [number.description])
        #expect(try withdrawn.isEmpty)
    }

    @Test("a local change that fails puts back the content that it has withdrawn") func localFailure() async throws {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        try await replica.fill(number)
        #expect(throws: Failure.self) {
            _ = try replica.change(open: fixture.open) { changes in
                try changes.names.unlink("a", in: .root)
                #expect(fixture.contentFiles.isEmpty)
                throw Failure()
            }
        }
        #expect(try replica.names() == ["a"])
        #expect(fixture.contentFiles == [number.description])
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("a", in: .root) }
        #expect(fixture.contentFiles.isEmpty)
        try replica.database.deleteWithdrawnFiles()
        #expect(try withdrawn.isEmpty)
    }

    @Test("a transaction that runs once more withdraws what its last run says, and nothing else")
    func secondRun() async throws {
        let (first, second) = (try await nameless("a"), try await nameless("b"))
        let withdrawals = ContentWithdrawals(from: replica.contents, of: replica.database)
        try withdrawals.run {
            for number in [first, second] {
                withdrawals.begin()
                let generation = try #require(try replica.database.inode(number)).contentGeneration
                try withdrawals.withdraw(number, generation: generation)
            }
        }
        #expect(fixture.contentFiles == [first.description])
        try replica.database.deleteWithdrawnFiles()
        #expect(try withdrawn.isEmpty)
    }

    @Test("content that cannot be withdrawn keeps its inode, and nothing else from being removed")
    func cannotBeWithdrawn() async throws {
        let (broken, whole) = (try await nameless("a"), try await nameless("b"))
        let path = replica.contents.path(of: broken).string
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let (_, effects) = try await replica.ingest(open: fixture.open) { ingestion in
            for number in [broken, whole] { try ingestion.versions.settle(number) }
        }
        #expect(effects.defects.count == 1)
        #expect(effects.defects.first?.contains("inode \(broken)") == true)
        #expect(try replica.database.inode(broken) != nil)
        #expect(try replica.database.inode(whole) == nil)
        #expect(fixture.contentFiles == [broken.description])
    }

    @Test("after a crash, the content of an unlinked file goes with its row, whether that was deleted or not")
    func crash() async throws {
        let (left, gone) = (try await nameless("a"), try await nameless("b"))
        for number in [left, gone] {
            let generation = try #require(try replica.database.inode(number)).contentGeneration
            var content = WithdrawnContent(number, generation: generation, in: replica.contents)
            try content.withdraw()
        }
        try await replica.database.write { db in _ = try db.deleteNameless(gone) }
        let reopened = try fixture.replica()
        #expect(reopened.findings == [])
        #expect(try reopened.database.inode(left) == nil)
        #expect(fixture.contentFiles.isEmpty)
        try reopened.database.deleteWithdrawnFiles()
        #expect(try withdrawn.isEmpty)
    }

    @Test(
        "CRASH-1: content that a truncation has withdrawn is put back when the daemon was killed before the commit",
        arguments: [0, 5])
    func killedDuringTruncation(newBytes: Int) async throws {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        try await replica.fill(number, 0..<10)
        let row = try #require(try replica.database.inode(number))
        #expect(row.content == .partial)
        var content = WithdrawnContent(number, generation: row.contentGeneration, in: replica.contents)
        try content.withdraw()
        let new = try replica.contents.create(number, size: 0)
        try new.writeAll([UInt8](repeating: 8, count: newBytes).span.bytes, at: 0)
        try new.close()
        let reopened = try Replica(
            at: fixture.directory, readers: 4, finishesRecovery: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        #expect(try reopened.database.presentRanges(of: number).ranges == [0..<10])
        let file = try reopened.openContent(of: number)
        defer { try? file.close() }
        #expect(try file.readBytes(at: 0, count: 10) == [UInt8](repeating: 7, count: 10))
        #expect(try FileStatus(of: file).size == 100)
        #expect(try withdrawn.isEmpty)
        #expect(fixture.recoveredFiles.count == (newBytes == 0 ? 0 : 1))
    }

    // MARK: - Power cuts

    /// A file that was written here.
    private func make(_ name: String, size: Int64) throws -> InodeNumber {
        let caller = LocalCaller(user: 7, group: 8)
        let made = try replica.change(open: fixture.open) {
            try $0.names.createFile(name, in: .root, permissions: 0o600, caller: caller, usualGroup: 8)
        }.0
        try made.content.setLength(size)
        try made.content.close()
        let number = made.inode.number
        _ = try replica.change(open: fixture.open) { try $0.contents.endWriting(number) }
        return number
    }

    @Test("WRITE-2: a power cut that undoes a rename over a file, or a removal, brings back what was synced")
    func powerCut() async throws {
        try await replica.list([], open: fixture.open)
        let (old, new, removed) = (
            try make("doc", size: 200), try make("doc.tmp", size: 300), try make("gone", size: 400)
        )
        try replica.synchronize()
        let cut = try ReplicaFixture()
        try DiskImage.copy(replica.directory, to: cut.directory)
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename("doc.tmp", in: .root, to: "doc", in: .root, .replace)
        }
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("gone", in: .root) }
        try replica.database.commitAll()
        #expect(fixture.contentFiles == [new.description])
        try copyFolders(of: replica, to: cut)
        let reopened = try cut.replica()
        #expect(try reopened.names() == ["doc", "doc.tmp", "gone"])
        for (number, size) in [(old, 200), (new, 300), (removed, 400)] as [(InodeNumber, Int64)] {
            #expect(try reopened.contentStatus(of: number).size == size)
            #expect(try reopened.database.inode(number)?.size == size)
        }
        #expect(try reopened.database.defects() == [])
    }

    /// The file system writes names before long; the pages of the database's log that are not synced come later.
    private func copyFolders(of replica: Replica, to cut: ReplicaFixture) throws {
        for folder in ["contents", "withdrawn"] {
            try FileManager.default.removeItem(atPath: cut.directory.appending(folder).string)
            try DiskImage.copy(replica.directory.appending(folder), to: cut.directory.appending(folder))
        }
    }

    @Test("WRITE-2: a power cut that undoes an eviction brings back the content, and no holes of a later download")
    func powerCutAfterEviction() async throws {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        try await replica.fill(number)
        try replica.close()
        let again = try fixture.replica()
        try again.database.set(.bootIdentifier, to: "an earlier boot")
        let cut = try ReplicaFixture()
        try DiskImage.copy(again.directory, to: cut.directory)
        let (freed, _) = try await again.evictFile(number, open: fixture.open)
        #expect(freed == 100)
        try await again.beginContent(of: number, version: nil).descriptor.close()
        try again.database.commitAll()
        try copyFolders(of: again, to: cut)
        let reopened = try cut.replica()
        #expect(try reopened.database.inode(number)?.content == .materialized)
        let file = try reopened.openContent(of: number)
        defer { try? file.close() }
        #expect(try file.readBytes(at: 0, count: 100) == [UInt8](repeating: 7, count: 100))
        #expect(try reopened.database.defects() == [])
    }

    /// A database on which removed content waits so long, and a file that waits.
    private func waiting(_ pause: DispatchTimeInterval) throws -> (ReplicaDatabase, WithdrawnFile) {
        let directory = fixture.directory.appending("other")
        try directory.makeDirectory()
        _ = try ContentStore(in: directory)
        let database = try ReplicaDatabase(
            at: directory.appending(ReplicaDatabase.fileName), readers: 2, withdrawn: WithdrawnFiles(pause: pause),
            onSync: { [synced] in synced.append($0) })
        let file = WithdrawnFile(path: directory.appending("removed"), bytes: 100)
        #expect(FileManager.default.createFile(atPath: file.path.string, contents: nil))
        database.deleteWhenDurable([file])
        return (database, file)
    }

    private func isThere(_ file: WithdrawnFile) -> Bool { FileManager.default.fileExists(atPath: file.path.string) }

    @Test("WRITE-2: the renames of withdrawn content are on the disk before the rows, and are synced for nothing else")
    func syncOrder() throws {
        let (database, file) = try waiting(.never)
        try database.deleteWithdrawnFiles()
        #expect(!isThere(file))
        let log = ReplicaDatabase.fileName + "-wal"
        #expect(synced.all == ["withdrawn", "contents", log])
        try database.synchronize()
        #expect(synced.all == ["withdrawn", "contents", log, log])
    }

    @Test("removed content is deleted with the next fsync", arguments: [true, false])
    func deletion(isClosed: Bool) throws {
        let (database, file) = try waiting(.never)
        #expect(isThere(file))
        if isClosed { try database.close() } else { try database.synchronize() }
        database.withdrawn.wait()
        #expect(!isThere(file))
    }

    @Test("a caller that needs the room of removed content waits for a deletion that has begun") func deletionInFlight()
        throws
    {
        let (database, file) = try waiting(.never)
        // The queue is busy while the file leaves the list.
        let large = WithdrawnFile(path: file.path, bytes: .max)
        database.withdrawn.add([large], room: { 0 }, deletion: { Thread.sleep(forTimeInterval: 0.2) })
        try database.synchronize()
        #expect(database.withdrawn.isEmpty)
        try database.deleteWithdrawnFiles()
        #expect(!isThere(file))
    }

    @Test("after a sync that failed, removed content is deleted without another change") func failedSync()
        async throws
    {
        let (database, file) = try waiting(.milliseconds(20))
        let away = database.log.string + "-away"
        try FileManager.default.moveItem(atPath: database.log.string, toPath: away)
        // The first may be deleted by now.
        database.deleteWhenDurable([file])
        #expect(throws: (any Error).self) { try database.deleteWithdrawnFiles() }
        try await Task.sleep(for: .milliseconds(200))
        try FileManager.default.moveItem(atPath: away, toPath: database.log.string)
        let isDeleted = await eventually { database.withdrawn.isEmpty && !isThere(file) }
        #expect(isDeleted)
    }

    @Test("removed content that takes much of what is free is deleted at once, all together", .timeLimit(.minutes(1)))
    func large() async {
        let waiting = WithdrawnFiles(pause: .never)
        let file = WithdrawnFile(path: replica.contents.withdrawn.appending("4711-1"), bytes: 100)
        let (calls, continuation) = AsyncStream<Void>.makeStream()
        for _ in 0..<21 {
            waiting.add([file], room: { 1 << 20 }) {
                waiting.deleteSoon(upTo: waiting.beginSync())
                continuation.yield()
            }
        }
        for await _ in calls { break }
    }
}
