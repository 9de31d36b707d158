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

/// Content to which something was written before a power cut without a row, before the comparison of all content files reaches it.
extension RecoveryTests {
    private func reopenWithoutComparison() throws -> Replica {
        try Replica(
            at: fixture.directory, readers: 4, finishesRecovery: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test("WRITE-2: doubtful content is set aside when it is evicted before the comparison of all files reaches it")
    func evictedBeforeComparison() async throws {
        try await leaveOverwritten()
        let replica = try reopenWithoutComparison()
        let number = try #require(try replica.number("a"))
        _ = try await replica.evictFile(number, open: fixture.open)
        #expect(try replica.database.inode(number)?.content == .dataless)
        #expect(fixture.recoveredFiles.count == 1)
    }

    @Test("WRITE-2: a close before all content files were compared does not make content trusted")
    func closedBeforeComparison() async throws {
        try await leaveOverwritten()
        let closed = try reopenWithoutComparison()
        #expect(try closed.database.inode(#require(try closed.number("a")))?.content == .materialized)
        try closed.close()
        let replica = try fixture.replica()
        #expect(try replica.database.inode(#require(try replica.number("a")))?.content == .dataless)
        #expect(fixture.recoveredFiles.count == 1)
        #expect(try replica.database.value(of: .mayMissBytes) == nil)
    }

    @Test("WRITE-2: doubtful content is set aside when it is verified before the comparison of all files reaches it")
    func verifiedBeforeComparison() async throws {
        try await leaveOverwritten()
        let replica = try reopenWithoutComparison()
        let number = try #require(try replica.number("a"))
        let row = try replica.verifyContent(of: number, mayBeInUse: false, open: fixture.open)
        #expect(row?.content == .dataless)
        try await replica.finishRecovery()
        #expect(fixture.recoveredFiles.count == 1)
    }

    @Test("WRITE-2: a comparison of all content files that fails is made again, until it succeeds or is cancelled")
    func failedComparison() async throws {
        try await leaveOverwritten()
        let replica = try reopenWithoutComparison()
        let number = try #require(try replica.number("a"))
        // Nothing can be set aside in a file. A link can be replaced by another in one step.
        let recovered = fixture.directory.appending("recovered")
        try FileManager.default.removeItem(atPath: recovered.string)
        let link = fixture.directory.appending("link")
        for (name, place) in [("file", recovered), ("folder", link)] {
            let target = fixture.directory.appending(name)
            if name == "file" { try Data().write(to: URL(fileURLWithPath: target.string)) }
            if name == "folder" { try target.makeDirectory() }
            try FileManager.default.createSymbolicLink(atPath: place.string, withDestinationPath: target.string)
        }
        let reports = Reports()
        let cancelled = Task {
            await replica.finishRecovery(retryingAfter: .milliseconds(1)) { reports.append($0) }
        }
        #expect(await eventually { reports.all.count > 2 })
        cancelled.cancel()
        #expect(await !cancelled.value)
        #expect(reports.all.allSatisfy { $0.contains("cannot be compared") })
        #expect(try replica.database.inode(number)?.content == .materialized)
        let again = Task {
            await replica.finishRecovery(retryingAfter: .milliseconds(1)) { reports.append($0) }
        }
        let count = reports.all.count
        #expect(await eventually { reports.all.count > count })
        try link.move(to: recovered)
        #expect(await again.value)
        #expect(reports.all.last?.contains("was moved to") == true)
        #expect(try replica.database.inode(number)?.content == .dataless)
        #expect(!replica.mayHaveDoubtfulContent)
    }

    private final class Reports: Sendable {
        private let texts = Mutex<[String]>([])

        var all: [String] { texts.withLock { $0 } }
        func append(_ text: String) { texts.withLock { $0.append(text) } }
    }

    @Test(
        "WRITE-2: doubtful content is set aside when the remote replaces or removes it before the comparison reaches it",
        arguments: [true, false], [true, false])
    func replacedBeforeComparison(isRemoved: Bool, isOfSameLength: Bool) async throws {
        try await leaveOverwritten()
        let replica = try reopenWithoutComparison()
        let number = try #require(try replica.number("a"))
        // The user may have done that.
        try FileManager.default.removeItem(atPath: fixture.directory.appending("recovered").string)
        if !isOfSameLength { try replica.contents.setLength(of: number, to: 120) }
        let effects =
            isRemoved
            ? try await replica.change(deleted: [ItemIdentifier("a")], open: fixture.open)
            : try await replica.change([.file("a", size: 50, version: "2")], open: fixture.open)
        #expect(fixture.recoveredFiles.count == 1)
        #expect(effects.defects.contains { $0.contains("was moved to") }, "\(effects.defects)")
        let row = try replica.database.inode(number)
        if isRemoved { #expect(row == nil) } else { #expect(row?.content == .dataless && row?.size == 50) }
        try await replica.finishRecovery()
        #expect(fixture.recoveredFiles.count == 1)
        #expect(try replica.database.defects() == [])
    }

    @Test("WRITE-2: content without an unrecorded write is not set aside when the remote replaces it after a power cut")
    func replacedAfterPowerCut() async throws {
        try await leaveOverwritten()
        let replica = try reopenWithoutComparison()
        let number = try #require(try replica.number("a"))
        let row = try #require(try replica.database.inode(number))
        try replica.contents.setModificationTime(of: number, to: row.modifiedAt)
        let effects = try await replica.change([.file("a", size: 50, version: "2")], open: fixture.open)
        #expect(fixture.recoveredFiles.isEmpty && effects.defects.isEmpty, "\(effects.defects)")
    }

    @Test("WRITE-2: doubtful content is back in its place when the transaction that has set it aside fails")
    func failedReplacement() async throws {
        struct Failure: Error {}
        try await leaveOverwritten()
        let replica = try reopenWithoutComparison()
        let number = try #require(try replica.number("a"))
        await #expect(throws: Failure.self) {
            try await replica.ingest(open: fixture.open) { ingestion -> Void in
                _ = try ingestion.changes.apply(
                    ChangeBatch(updated: [.file("a", size: 50, version: "2")], anchor: SyncAnchor("x")))
                throw Failure()
            }
        }
        #expect(fixture.recoveredFiles.isEmpty)
        #expect(try replica.contentStatus(of: number).size == 100)
        #expect(try replica.database.inode(number)?.content == .materialized)
    }
}
