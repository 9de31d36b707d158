import FileProvider
import GRDB
import ReplicaTestSupport
import Testing

@testable import Replica

/// The parts of the schema that are made when they are first needed.
@Suite struct SchemaOnDemandTests {
    @Test("content versions are indexed by the first search for one, which finds what was there before")
    func contentVersionsAreIndexedOnDemand() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.file("a", id: "a"), .file("b", id: "b")], open: fixture.open)
        let database = replica.database
        func isIndexed() throws -> Bool {
            let differences = try database.readCommitted { try SchemaComparison.differences(in: $0) }
            #expect(differences == [])
            return try database.read { db in
                try db.one(
                    "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'itemByContentVersion')", [],
                    { $0[0] as Bool }) ?? false
            }
        }
        #expect(try database.remoteItems.items(withContentVersions: []).isEmpty)
        #expect(try !isIndexed())

        let version = try #require(try database.remoteItems.version(of: "a")).contentVersion
        for _ in 0..<2 {
            let found = try database.remoteItems.items(withContentVersions: [version])
            #expect(found.map(\.itemIdentifier).contains("a"))
            #expect(try isIndexed())
        }
        try await replica.list(
            [.file("a", id: "a"), .file("b", id: "b"), .file("c", id: "c")], open: fixture.open)
        let later = try #require(try database.remoteItems.version(of: "c")).contentVersion
        #expect(
            try database.remoteItems.items(withContentVersions: [later]).map(\.itemIdentifier).contains("c"))
        #expect(try replica.check(open: fixture.open, isRepairing: false).findings == [])
    }

    @Test("content versions are found where they cannot be indexed, as on a full disk")
    func contentVersionsAreFoundWithoutTheirIndex() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.file("a", id: "a"), .file("b", id: "b")], open: fixture.open)
        let database = replica.database
        try database.write(.everything) { db in
            try db.execute(
                sql: """
                    CREATE TRIGGER notIndexed BEFORE INSERT ON domain WHEN NEW.key = 'versionsAreIndexed' BEGIN
                        SELECT RAISE(ABORT, 'the disk is full');
                    END
                    """)
        }
        let version = try #require(try database.remoteItems.version(of: "a")).contentVersion
        for _ in 0..<2 {
            let found = try database.remoteItems.items(withContentVersions: [version])
            #expect(found.map(\.itemIdentifier).contains("a"))
        }
        #expect(try database.remoteItems.items(withContentVersions: [Array("other".utf8)]).isEmpty)
        #expect(try database.value(of: .versionsAreIndexed) == nil)
    }
}
