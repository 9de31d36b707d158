import FileProvider
import GRDB
import ReplicaTestSupport
import Testing

@testable import Replica

/// The index of subdirectories.
@Suite("subdirectories") struct SubdirectoryTests {
    @Test("the unlisted subdirectories of a directory are found without a scan of its files")
    func queryReadsNoFiles() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
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

    @Test("directories count in their parent's link count as they come, move and go, also when the sets are followed")
    func counts() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let caller = LocalCaller(user: 7, group: 8)
        func change(_ body: (LocalChanges) throws -> Void) throws {
            _ = try replica.change(open: fixture.open) { try body($0) }
            let defects = try replica.database.defects()
            #expect(defects.isEmpty)
            #expect(try replica.database.readCommitted { try SchemaComparison.differences(in: $0) } == [])
        }
        func count(_ number: InodeNumber) throws -> Int? { try replica.database.inode(number)?.subdirectories }
        let a = try await replica.list(.directory("a"), .directory("b"), .file("f"), open: fixture.open)
        try await replica.list([], in: a, open: fixture.open)
        #expect(try count(.root) == 2)
        for isFollowed in [false, true] {
            if isFollowed { try replica.database.localSets.followSets() }
            try change {
                _ = try $0.names.create(
                    "c", in: .root, NewInode(kind: .directory, permissions: 0o755), caller: caller, usualGroup: 9)
            }
            #expect(try count(.root) == 3)
            try change { try $0.names.rename("c", in: .root, to: "d", in: a, .replace) }
            #expect(try count(.root) == 2)
            #expect(try count(a) == 1)
            try change { try $0.names.removeDirectory("d", in: a) }
            #expect(try count(a) == 0)
        }
        try await replica.database.write { try $0.execute(sql: "UPDATE item SET isDirectory = 0 WHERE name = 'b'") }
        #expect(try replica.database.defects().contains { $0.hasPrefix("is not marked as what it is") })
    }
}
