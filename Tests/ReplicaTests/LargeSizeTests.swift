import FileProvider
import Foundation
import ReplicaTestSupport
import Testing

@testable import Replica

/// Sizes near the end of 64 bits, in a database that holds them already.
@Suite struct LargeSizeTests {
    let fixture: ReplicaFixture

    init() throws {
        fixture = try ReplicaFixture()
    }

    @Test("WRITE-7: an item that is larger than 2^62 bytes is not shown and reported")
    func tooLargeItemIsADefect() async throws {
        let replica = try fixture.replica()
        let effects = try await replica.list(
            [.file("a", size: .max), .file("b", size: FileProviderItem.maximumDocumentSize)], open: fixture.open)
        #expect(try replica.names() == ["b"])
        #expect(effects.defects.contains { $0.contains("9223372036854775807 bytes") })
    }

    @Test("WRITE-7: a database that holds sizes of 2^63-1 is counted, opened and checked without a crash")
    func storedSizesAreCounted() async throws {
        let replica = try fixture.replica()
        try await replica.list([.file("a"), .file("b"), .file("c")], open: fixture.open)
        try await fixture.sabotage(
            """
            UPDATE inode SET size = 9223372036854775807, localBytes = 9223372036854775807, hasContentFile = 1,
                content = 2 WHERE kind = 1;
            UPDATE item SET changedFields = 1 WHERE identifier IN ('a', 'b')
            """)
        #expect(try replica.database.counts().localBytes == .max)
        #expect(try replica.database.localBytes() == .max)
        #expect(try replica.database.pendingCounts().bytes == .max)
        #expect(try !replica.check(open: fixture.open, isRepairing: false).findings.isEmpty)
        try replica.close()
        // What is to be here and is not is dataless, and fetched again.
        let reopened = try fixture.replica()
        #expect(try reopened.database.localBytes() == 0)
    }

    @Test("numbers from outside are added and subtracted without a crash") func arithmeticSaturates() {
        #expect(Int64.max.saturatingAdd(1) == .max)
        #expect(Int64.min.saturatingAdd(-1) == .min)
        #expect(Int64.min.saturatingSubtract(1) == .min)
        #expect(Int64.max.saturatingSubtract(-1) == .max)
        #expect((5 as Int64).saturatingSubtract(7) == -2)
        #expect(Int64(saturating: 1e300) == .max)
        #expect(Int64(saturating: -1e300) == .min)
        #expect(Int64(saturating: .nan) == 0)
        #expect(Int64(saturating: 12.5) == 12)
    }
}
