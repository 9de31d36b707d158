import FileProvider
import Foundation
import ReplicaTestSupport
import Syscalls
import SystemPackage
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

    @Test func inodesAndContentAreTheSameAfterACrash() async throws {
        try await leave { replica, number in try await replica.fill(number) }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .materialized)
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

    @Test func afterAnOrderlyCloseAndABootEverythingIsThere() async throws {
        try await leave { replica, number in
            try await replica.fill(number)
            try replica.close()
        }
        do {
            let replica = try fixture.replica()
            try replica.database.set(.bootIdentifier, to: "an earlier boot")
        }
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .materialized)
    }

    @Test func aDatabaseThatIsNoneIsAClearError() throws {
        let path = fixture.directory.appending(ReplicaDatabase.fileName).string
        #expect(FileManager.default.createFile(atPath: path, contents: Data(repeating: 0x58, count: 8192)))
        #expect(throws: (any Error).self) { try fixture.replica() }
        #expect(FileManager.default.contents(atPath: path)?.count == 8192)
    }
}
