import FileProvider
import FileProviderPaths
import Testing

@testable import WebDAVProvider

@Suite struct LostContentTests {
    @Test("PATH-10: contents with unknown tags are recognized after a SIGKILL, and under another name")
    func survive() throws {
        let store = ReportingStore.temporary
        let (date, mark) = (FileTimestamp(seconds: 7, nanoseconds: 8), LostUploads.digest(of: [1, 2]))
        let first = SentContents(in: store)
        first.note("name", mark, size: 2, date: date)
        first.note("dated", .seconds(7), size: 2, date: date)
        first.carry("name", to: "other")
        let second = SentContents(in: store)
        for name in ["name", "other"] {
            let found = second.candidates(name, size: 2, tag: [9])
            #expect(found.map(\.date) == [date] && found.map(\.mark) == [mark])
        }
        let dated = try #require(second.candidates("dated", size: 2, tag: [9]).first)
        second.settle("dated", tag: [9], as: dated)
        #expect(SentContents(in: store).candidates("dated", size: 2, tag: [8]).isEmpty)
    }
}
