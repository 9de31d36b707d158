import FileProvider
import GRDB
import ReplicaTestSupport
import Testing

@testable import Replica

/// The index of subdirectories.
@Suite("subdirectories") struct SubdirectoryTests {
    @Test("the unlisted subdirectories of a directory are found without a scan of its files")
    func queryReadsNoFiles() async throws {
        let fixture = try ReplicaFixture()
        let replica = try fixture.replica()
        let files = (0..<50).map { FileProviderItem.file("f\($0)") }
        try await replica.list([.directory("b")] + files + [.directory("a"), .directory("c")], open: fixture.open)
        let numbers = try ["b", "a", "c"].map { try #require(try replica.number($0)) }
        #expect(try replica.database.datalessDirectories(in: .root, limit: 10) == numbers)
        #expect(try replica.database.datalessDirectories(in: .root, limit: 2) == Array(numbers.prefix(2)))
        let plan = try replica.database.read { db in
            try db.all("EXPLAIN QUERY PLAN " + ReplicaDatabase.datalessDirectories, [1, 10], { $0[3] as String })
        }
        #expect(
            plan == [
                "SEARCH item USING INDEX subdirectory (parent=?)",
                "SEARCH inode USING INTEGER PRIMARY KEY (rowid=?)",
            ])
        try replica.close()
    }
}
