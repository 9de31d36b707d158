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

/// What a crash leaves behind is mended when the replica is opened again.
@Suite struct RecoveryTests {
    let fixture: ReplicaFixture

    init() throws {
        fixture = try ReplicaFixture()
    }

    /// Makes a replica with one file and lets go of it without closing, as a crash does.
    private func leave(_ body: (Replica, InodeNumber) async throws -> Void) async throws {
        let replica = try fixture.replica()
        try await replica.list([.file("a", size: 100)], open: fixture.open)
        try await body(replica, #require(try replica.number("a")))
    }

    private func place(_ bytes: Int, as name: String) throws {
        let path = fixture.directory.appending("contents").appending(name).string
        #expect(FileManager.default.createFile(atPath: path, contents: Data(count: bytes)))
    }

    @Test("NAME-4: inodes and content are the same after a crash")
    func inodesAndContentAreTheSameAfterACrash() async throws {
        let before = Mutex<InodeNumber?>(nil)
        try await leave { replica, number in
            try await replica.fill(number)
            before.withLock { $0 = number }
        }
        let replica = try fixture.replica()
        let number = try #require(try replica.number("a"))
        let isSame = before.withLock { $0 == number }
        #expect(isSame)
        #expect(try replica.database.inode(number)?.content == .materialized)
        #expect(replica.findings.isEmpty)
    }

    @Test func contentThatWasBegunAndNeverRecordedIsDataless() async throws {
        try await leave { replica, number in
            let beginning = try await replica.beginContent(of: number, version: nil)
            try beginning.descriptor.writeAll([UInt8](repeating: 1, count: 50).span.bytes, at: 0)
            try beginning.descriptor.close()
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .dataless)
        #expect(fixture.contentFiles.isEmpty)
        #expect(fixture.recoveredFiles.isEmpty)
    }

    @Test("CRASH-1: only recorded ranges count") func onlyRecordedRangesCount() async throws {
        try await leave { replica, number in
            let beginning = try await replica.beginContent(of: number, version: nil)
            try beginning.descriptor.writeAll([UInt8](repeating: 1, count: 100).span.bytes, at: 0)
            _ = try await replica.recordContent(
                of: number, generation: beginning.generation, ranges: ByteRanges([0..<10]))
            try beginning.descriptor.close()
        }
        let replica = try fixture.replica()
        let number = try #require(try replica.number("a"))
        #expect(try replica.database.inode(number)?.content == .partial)
        #expect(try replica.database.presentRanges(of: number).ranges == [0..<10])
    }

    @Test func aFileWithoutARowIsSetAsideAndReported() async throws {
        try await leave { _, _ in }
        try place(5, as: "4711")
        try place(5, as: "stray")
        // The file of a creation that was not committed holds nothing that could be kept.
        try place(0, as: "4712")
        let replica = try fixture.replica()
        #expect(fixture.contentFiles.isEmpty)
        #expect(fixture.recoveredFiles.count == 2)
        #expect(replica.findings.count == 2)
    }

    @Test func aFileOfTheWrongLengthIsSetAsideAndFetchedAgain() async throws {
        try await leave { replica, number in
            try await replica.fill(number)
            try place(3, as: number.description)
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .dataless)
        #expect(fixture.recoveredFiles.count == 1)
    }

    @Test(
        "WRITE-2: of a file that was written here bytes are lost: what is left does not replace what the remote has",
        arguments: [true, false])
    func truncatedUnsentFile(isKnown: Bool) async throws {
        let replica = try fixture.replica()
        try await replica.list([.file("a", size: 100)], open: fixture.open)
        let caller = LocalCaller(user: 7, group: 8)
        let number: InodeNumber
        if isKnown {
            number = try #require(try replica.number("a"))
            try await replica.fill(number)
            _ = try replica.change(open: fixture.open) {
                try $0.contents.truncate(number, to: 200, caller: caller)
            }
        } else {
            let made = try replica.change(open: fixture.open) {
                try $0.names.createFile("b", in: .root, permissions: 0o600, caller: caller, usualGroup: 8)
            }.0
            try made.content.setLength(200)
            try made.content.close()
            number = made.inode.number
            _ = try replica.change(open: fixture.open) { try $0.contents.endWriting(number) }
        }
        #expect(try replica.database.inode(number)?.size == 200)
        try replica.contents.setLength(of: number, to: 5)
        if isKnown { try replica.database.set(.bootIdentifier, to: "an earlier boot") }
        let reopened = try fixture.replica()
        let item = try #require(try reopened.database.item(ofInode: number))
        if isKnown {
            #expect(item.inode.content == .dataless && !item.changedFields.contains(.contents))
            #expect(item.inode.size == 100 && item.inode.contentVersion == Array("1".utf8))
            #expect(fixture.recoveredFiles.count == 1)
            #expect(reopened.findings.contains { $0.contains("only 5 of 200 bytes") }, "\(reopened.findings)")
        } else {
            #expect(item.inode.size == 5 && item.changedFields.contains(.contents))
            #expect(fixture.recoveredFiles.isEmpty)
        }
        #expect(try reopened.database.defects() == [])
    }

    @Test func aMissingFileIsFetchedAgain() async throws {
        try await leave { replica, number in
            try await replica.fill(number)
            try FileManager.default.removeItem(
                atPath: fixture.directory.appending("contents").appending(number.description).string)
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .dataless)
        #expect(replica.findings.count == 1)
    }

    @Test func aListingThatWasUnderWayIsNotTakenForComplete() async throws {
        try await leave { replica, _ in
            _ = try await replica.evictListing(of: .root)
            _ = try await replica.beginListing(of: .root)
        }
        #expect(try fixture.replica().database.inode(.root)?.content == .dataless)
    }

    @Test func afterAPowerCutUnsyncedContentIsFetchedAgain() async throws {
        try await leave { replica, number in
            try await replica.fill(number)
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .dataless)
    }

    @Test("CRASH-1: after a power cut a file is fetched again whose download went on after an orderly close")
    func completedAfterAClose() async throws {
        try await leave { replica, number in
            try await replica.fill(number, 0..<50)
            try replica.close()
        }
        do {
            let replica = try fixture.replica()
            let number = try #require(try replica.number("a"))
            #expect(try replica.database.inode(number)?.content == .partial)
            try await replica.fill(number)
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .dataless)
    }

    @Test(
        "WRITE-2: after a power cut, synced content is not trusted to which something was written without a row",
        arguments: [true, false])
    func overwrittenWithoutRow(isWritten: Bool) async throws {
        try await leaveSynced()
        do {
            let replica = try fixture.replica()
            let number = try #require(try replica.number("a"))
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
            if isWritten {
                // The kernel writes as many bytes. The row that says so does not reach the disk.
                let file = try replica.contents.open(number, .readWrite)
                try file.writeAll([UInt8](repeating: 8, count: 100).span.bytes, at: 0)
                try file.close()
                try replica.contents.setModificationTime(
                    of: number, to: FileTimestamp(seconds: FileTimestamp.now.seconds + 1, nanoseconds: 0))
            }
        }
        let replica = try fixture.replica()
        let number = try #require(try replica.number("a"))
        let state = isWritten ? ContentState.dataless : .materialized
        #expect(try replica.database.inode(number)?.content == state)
        #expect(fixture.recoveredFiles.count == (isWritten ? 1 : 0))
        #expect(replica.findings.count == (isWritten ? 1 : 0))
    }

    /// Leaves a replica that was closed in order, with a file whose content is here.
    private func leaveSynced() async throws {
        try await leave { replica, number in
            try await replica.fill(number)
            try replica.close()
        }
    }

    /// Leaves a replica after a power cut, with a synced file to which as many bytes were written without a row.
    func leaveOverwritten() async throws {
        try await leaveSynced()
        let replica = try fixture.replica()
        let number = try #require(try replica.number("a"))
        try replica.database.set(.bootIdentifier, to: "an earlier boot")
        try replica.contents.setModificationTime(
            of: number, to: FileTimestamp(seconds: FileTimestamp.now.seconds + 1, nanoseconds: 0))
    }

    @Test(
        "WRITE-2: after a power cut, content is trusted whose date was set here and is in whole seconds on the remote")
    func datedInWholeSeconds() async throws {
        try await leaveSynced()
        do {
            let replica = try fixture.replica()
            let number = try #require(try replica.number("a"))
            let date = FileTimestamp(seconds: FileTimestamp.now.seconds + 1, nanoseconds: 123)
            _ = try replica.change(open: fixture.open) {
                try $0.attributes.setAttributes(
                    of: number, to: LocalAttributes(modifiedAt: .at(date)), caller: LocalCaller(user: 7, group: 8))
            }
            // The remote's answer.
            let row = FileTimestamp(seconds: date.seconds)
            try await replica.database.write { db in
                try db.run(
                    "UPDATE inode SET modifiedAt = \(row.nanosecondsSince1970) WHERE number = \(number.rawValue)", [])
            }
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .materialized)
        #expect(fixture.recoveredFiles.isEmpty && replica.findings.isEmpty, "\(replica.findings)")
    }

    @Test(
        "WRITE-2: after a power cut, synced content is trusted that was downloaded before the clock was set back",
        arguments: [true, false])
    func downloadedBeforeClockWasSetBack(isClosed: Bool) async throws {
        try await leave { replica, number in
            try await replica.fill(number)
            let time = FileTimestamp(seconds: FileTimestamp.now.seconds + 3600)
            try replica.contents.setModificationTime(of: number, to: time)
            if isClosed { return try replica.close() }
            // A change time that was given just now may be given to another write.
            let isSynced = try await eventually { try replica.syncContents() }
            #expect(isSynced)
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        if isClosed { try fixture.replica().database.set(.bootIdentifier, to: "an earlier boot") }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .materialized)
        #expect(fixture.recoveredFiles.isEmpty && replica.findings.isEmpty, "\(replica.findings)")
    }

    @Test("the time of the last sync does not fall when the clock is set back") func timeOfSync() throws {
        let time = FileTimestamp(seconds: FileTimestamp.now.seconds + 3600)
        do {
            let replica = try fixture.replica()
            try replica.database.set(.contentsSyncedAt, to: String(time.nanosecondsSince1970))
            try replica.close()
        }
        #expect(try fixture.replica().database.value(of: .contentsSyncedAt) == String(time.nanosecondsSince1970))
    }

    @Test("a time of the last sync that is far ahead is not kept") func wrongTimeOfSync() throws {
        let now = FileTimestamp.now
        do {
            let replica = try fixture.replica()
            let time = FileTimestamp(seconds: now.seconds + 10 * 365 * 86_400)
            try replica.database.set(.contentsSyncedAt, to: String(time.nanosecondsSince1970))
            try replica.close()
        }
        let time = try #require(try fixture.replica().database.value(of: .contentsSyncedAt).flatMap { Int64($0) })
        #expect(FileTimestamp(nanosecondsSince1970: time).seconds < now.seconds + 86_400)
    }

    @Test(
        "WRITE-2: content that was synced while the replica was in use survives a power cut, and other content does not"
    )
    func syncedWithoutAClose() async throws {
        do {
            let replica = try fixture.replica()
            try await replica.list([.file("a", size: 100), .file("b", size: 100)], open: fixture.open)
            let (early, late) = (try #require(try replica.number("a")), try #require(try replica.number("b")))
            try await replica.fill(early)
            try replica.database.set(.mayMissBytes, to: "1")
            #expect(try replica.syncContents())
            #expect(try replica.database.value(of: .contentsSyncedAt) == nil)
            try replica.database.set(.mayMissBytes, to: nil as String?)
            // A change time that was given just now may be given to another write.
            let isSynced = try await eventually { try replica.syncContents() }
            #expect(isSynced)
            try await replica.fill(late)
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .materialized)
        #expect(try replica.database.inode(#require(try replica.number("b")))?.content == .dataless)
        #expect(replica.findings.count == 1 && fixture.recoveredFiles.isEmpty, "\(replica.findings)")
    }

    @Test(
        "CRASH-2: after a power cut, unsynced content is set aside while removals are held, and in a reimport",
        arguments: [true, false])
    func lastCopiesAreSetAside(isReimport: Bool) async throws {
        try await leave { replica, number in
            try await replica.fill(number)
            if isReimport {
                try await replica.beginReimport(below: .root)
            } else {
                try replica.database.set(.changesAreHeld, to: "7")
            }
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        let replica = try fixture.replica()
        #expect(try replica.database.item(named: "a", in: .root)?.inode.content == .dataless)
        #expect(fixture.contentFiles.isEmpty)
        let name = try #require(fixture.recoveredFiles.first)
        let place = fixture.directory.appending("recovered").appending(name).string
        #expect(FileManager.default.contents(atPath: place) == Data(repeating: 7, count: 100))
        #expect(replica.findings.count { $0.contains("'a' may be the last copy") } == 1, "\(replica.findings)")
    }

    @Test func afterAnOrderlyCloseAndABootEverythingIsThere() async throws {
        try await leaveSynced()
        do {
            let replica = try fixture.replica()
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .materialized)
    }

    /// Recovers the replica with a file that waits for a sync of the database's log.
    ///
    /// - Returns: whether the recovery has synced the log.
    private func isSyncedByRecovery() throws -> Bool {
        let database = try ReplicaDatabase(
            at: fixture.directory.appending(ReplicaDatabase.fileName), readers: 2,
            withdrawn: WithdrawnFiles(pause: .never))
        defer { try? database.close() }
        let file = WithdrawnFile(path: fixture.directory.appending("removed"), bytes: 100)
        #expect(FileManager.default.createFile(atPath: file.path.string, contents: nil))
        database.deleteWhenDurable([file])
        var recovery = Recovery(
            database: database, contents: try ContentStore(in: fixture.directory),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        try recovery.run()
        #expect(try database.value(of: .wasClosed) == "0")
        database.withdrawn.wait()
        return !FileManager.default.fileExists(atPath: file.path.string)
    }

    @Test(
        "WRITE-2: before the first answer it is on the disk that the database is in use, by one sync after a close or a boot"
    )
    func useIsDurable() throws {
        try fixture.replica().close()
        #expect(try isSyncedByRecovery())
        // As after SIGKILL.
        #expect(try !isSyncedByRecovery())
        try fixture.replica().database.set(.bootIdentifier, to: "an earlier boot")
        #expect(try isSyncedByRecovery())
    }

    @Test("a domain can be opened whose daemon was killed before it wrote to the new database") func killedWhileMade()
        throws
    {
        _ = try ContentStore(in: fixture.directory)
        for name in [ReplicaDatabase.fileName, "contents/.probe"] {
            #expect(FileManager.default.createFile(atPath: fixture.directory.string + "/" + name, contents: nil))
        }
        let replica = try fixture.replica()
        #expect(replica.findings == [])
        try replica.close()
    }

    @Test func aDatabaseThatIsNoneIsAClearError() throws {
        let path = fixture.directory.appending(ReplicaDatabase.fileName).string
        #expect(FileManager.default.createFile(atPath: path, contents: Data(repeating: 0x58, count: 8192)))
        #expect(throws: (any Error).self) { try fixture.replica() }
        #expect(FileManager.default.contents(atPath: path)?.count == 8192)
    }
}
