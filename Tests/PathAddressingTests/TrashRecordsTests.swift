import FileProvider
import TestSupport
import Testing

@testable import PathAddressing

@Suite("records of a remote's trash", .tags(.timing)) struct TrashRecordsTests {
    private func entry(_ identifier: String, _ name: String = "name", tag: String = "tag") -> RemoteEntry {
        RemoteEntry(
            name: name, kind: .file, tag: Array(tag.utf8), isTagStrong: true, stableIdentifier: identifier, size: 1)
    }

    private func trashed(_ identifier: String, at place: String, wasHere: Bool = true) -> TrashedEntry {
        TrashedEntry(entry: entry(identifier, "binned", tag: "t1"), place: [place], wasHere: wasHere)
    }

    @Test("BIN-1: what was thrown away is what it was, until somebody else does it again") func thrown() throws {
        let store = ReportingStore.temporary
        let book = TrashRecords(in: store)
        book.willThrow(entry("1"))
        book.ended(entry("1"))
        for book in [book, TrashRecords(in: store)] {
            let shown = book.settle([trashed("1", at: "a", wasHere: false)], since: book.now)
            #expect(shown.map(\.entry.name) == ["name"])
            #expect(shown.map(\.entry.tag) == [Array("tag".utf8)])
        }
        let again = book.settle([trashed("1", at: "b")], since: book.now)
        #expect(again.map(\.entry.tag) == [Array("t1".utf8)])
    }

    @Test("BIN-2: what was deleted is not shown; the oldest is forgotten first") func deleted() throws {
        let store = ReportingStore.temporary
        let book = TrashRecords(in: store, mostDeleted: 20)
        for number in 1...25 {
            book.willDelete(entry("\(number)"))
            book.ended(entry("\(number)"))
        }
        let all = (1...25).map { trashed("\($0)", at: "\($0)") }
        let shown = book.settle(all, since: book.now).compactMap(\.entry.stableIdentifier)
        #expect(shown == ["1", "2", "3", "4", "5", "6"])
        // What was certainly not done is none of it.
        book.ended(entry("25"), because: FileProviderError(.cannotSynchronize, "refused"))
        book.ended(entry("24"), because: FileProviderError(.serverUnreachable, "who knows"))
        #expect(book.settle(all, since: book.now).contains { $0.entry.stableIdentifier == "25" })
        #expect(!book.settle(all, since: book.now).contains { $0.entry.stableIdentifier == "24" })
    }

    @Test("BIN-2: a listing that is older than what was done forgets nothing of it") func order() throws {
        let store = ReportingStore.temporary
        let book = TrashRecords(in: store)
        let before = book.now
        book.willDelete(entry("1"))
        book.ended(entry("1"))
        book.willDelete(entry("2"))
        #expect(book.settle([], since: before).isEmpty)
        #expect(book.settle([trashed("1", at: "a"), trashed("2", at: "b")], since: book.now).isEmpty)
        // Emptied out by somebody, it is not remembered any longer.
        #expect(book.settle([], since: book.now).isEmpty)
        let anew = TrashRecords(in: store)
        #expect(anew.settle([trashed("1", at: "c")], since: anew.now).count == 1)
    }

    @Test("BIN-9: what was emptied out of a large bin is forgotten in a time that grows with its number alone")
    func manyForgotten() throws {
        let store = ReportingStore.temporary
        let book = TrashRecords(in: store)
        let count = 4000
        for number in 0..<count {
            book.willThrow(entry("\(number)"))
            book.ended(entry("\(number)"))
        }
        let all = (0..<count).map { trashed("\($0)", at: "\($0)") }
        #expect(book.settle(all, since: book.now).count == count)
        // What is not listed any more is gone; what was begun since is not.
        book.willDelete(entry("new"))
        #expect(book.settle(Array(all.dropLast()), since: book.now).count == count - 1)
        #expect(book.thrown("\(count - 1)") == nil && book.thrown("0") != nil)
        let start = ContinuousClock.now
        for number in 0..<count { book.forget("\(number)") }
        // Half of the square of 4,000 steps would take a hundred times as long.
        #expect(ContinuousClock.now - start < .seconds(4))
        #expect(book.thrown("0") == nil)
    }
}
