import FileProvider
import TestSupport
import Testing

@testable import FileProviderPaths

@Suite("records of a remote's trash", .tags(.timing)) struct TrashRecordsTests {
    private func entry(_ identifier: String, _ name: String = "name", tag: String = "tag") -> RemoteEntry {
        RemoteEntry(
            name: name, kind: .file, tag: Array(tag.utf8), isTagStrong: true, stableIdentifier: identifier, size: 1)
    }

    private func trashed(_ identifier: String, at place: String, wasHere: Bool = true) -> TrashedEntry {
        TrashedEntry(entry: entry(identifier, "binned", tag: "t1"), place: [place], wasHere: wasHere)
    }

    @Test("BIN-1: a trashed item is shown as it was before, until another client trashes it again") func trashedItems()
        throws
    {
        let store = ReportingStore.temporary
        let records = TrashRecords(in: store)
        records.begin(entry("1"), as: .trashed)
        records.end(entry("1"))
        for records in [records, TrashRecords(in: store)] {
            let shown = records.settle([trashed("1", at: "a", wasHere: false)], since: records.now)
            #expect(shown.map(\.entry.name) == ["name"])
            #expect(shown.map(\.entry.tag) == [Array("tag".utf8)])
        }
        let again = records.settle([trashed("1", at: "b")], since: records.now)
        #expect(again.map(\.entry.tag) == [Array("t1".utf8)])
    }

    @Test("BIN-2: deleted items are not shown; the oldest record is forgotten first") func deleted() throws {
        #expect(TrashRecords.usualMostDeleted == 50_000)
        let store = ReportingStore.temporary
        let records = TrashRecords(in: store, mostDeleted: 20)
        func shown(of count: Int, by records: TrashRecords) -> [String] {
            let all = (1...count).map { trashed("\($0)", at: "\($0)") }
            return records.settle(all, since: records.now).compactMap(\.entry.stableIdentifier)
        }
        for number in 1...25 {
            records.begin(entry("\(number)"), as: .deleted)
            records.end(entry("\(number)"))
            let forgotten = shown(of: number, by: records)
            #expect(forgotten == (1...25).prefix(forgotten.count).map { "\($0)" })
            #expect(forgotten.count <= max(0, number - 20) && forgotten.count >= number - 22, "\(number)")
        }
        #expect(shown(of: 25, by: TrashRecords(in: store, mostDeleted: 20)) == shown(of: 25, by: records))
        let all = (1...25).map { trashed("\($0)", at: "\($0)") }
        // A refused deletion has no record.
        records.end(entry("25"), because: FileProviderError(.cannotSynchronize, "refused"))
        records.end(entry("24"), because: FileProviderError(.serverUnreachable, "who knows"))
        #expect(records.settle(all, since: records.now).contains { $0.entry.stableIdentifier == "25" })
        #expect(!records.settle(all, since: records.now).contains { $0.entry.stableIdentifier == "24" })
    }

    @Test("BIN-2: a listing that is older than a deletion forgets no record of it") func order() throws {
        let store = ReportingStore.temporary
        let records = TrashRecords(in: store)
        let before = records.now
        records.begin(entry("1"), as: .deleted)
        records.end(entry("1"))
        records.begin(entry("2"), as: .deleted)
        #expect(records.settle([], since: before).isEmpty)
        #expect(records.settle([trashed("1", at: "a"), trashed("2", at: "b")], since: records.now).isEmpty)
        // When another client has emptied the trash, the records go.
        #expect(records.settle([], since: records.now).isEmpty)
        let anew = TrashRecords(in: store)
        #expect(anew.settle([trashed("1", at: "c")], since: anew.now).count == 1)
    }

    @Test("BIN-9: the records of a large trash that was emptied are forgotten in linear time")
    func manyForgotten() throws {
        let store = ReportingStore.temporary
        let records = TrashRecords(in: store)
        let count = 4000
        for number in 0..<count {
            records.begin(entry("\(number)"), as: .trashed)
            records.end(entry("\(number)"))
        }
        let all = (0..<count).map { trashed("\($0)", at: "\($0)") }
        #expect(records.settle(all, since: records.now).count == count)
        // An item that is not listed any more was deleted; a removal that began since is kept.
        records.begin(entry("new"), as: .deleted)
        #expect(records.settle(Array(all.dropLast()), since: records.now).count == count - 1)
        #expect(records.trashed("\(count - 1)") == nil && records.trashed("0") != nil)
        let start = ContinuousClock.now
        for number in 0..<count { records.forget("\(number)") }
        // Half of the square of 4,000 steps would take a hundred times as long.
        #expect(ContinuousClock.now - start < .seconds(4))
        #expect(records.trashed("0") == nil)
    }
}
