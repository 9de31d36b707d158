import FileProvider
import Foundation
import ReplicaTestSupport
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// A database that was stored with the baseline schema opens with every later version.
///
/// `Stored/baseline.sql` is the dump of such a database (Python's `iterdump`). It is never edited: a schema that differs
/// from it needs a migration.
@Suite("stored databases") struct StoredDatabaseTests {
    /// Makes the database, and a content file for each row that has one.
    private static func restore(_ name: String, in directory: FilePath) async throws {
        let dump = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Stored/\(name)")
        let script = """
            import os, sqlite3, sys
            folder, dump = sys.argv[1:]
            database = sqlite3.connect(folder + "/replica.sqlite")
            database.executescript(open(dump).read())
            os.mkdir(folder + "/contents")
            for number, size in database.execute("SELECT number, size FROM inode WHERE hasContentFile = 1"):
                with open(f"{folder}/contents/{number}", "wb") as file: file.truncate(size)
            database.commit()
            """
        let outcome = try await Command.python(script, directory.string, dump.path)
        try #require(outcome.status == 0, "\(outcome.errors)")
    }

    @Test("migrations after the baseline make of a stored database what they make of a new one, and keep its rows")
    func migrationsRunOnTheBaseline() async throws {
        let fixture = try ReplicaFixture()
        try await Self.restore("baseline.sql", in: fixture.directory)
        let replica = try fixture.replica()
        #expect(replica.findings == [])
        // This also compares the schema with that of a new database.
        #expect(try replica.check(open: fixture.open, isRepairing: false).findings == [])
        #expect(try replica.database.defects() == [])

        let database = replica.database
        #expect(try replica.names() == [".Trash-1000", "directory", "file", "new", "partial", "renamed here"])
        #expect(try replica.number("identifier of file").map { try database.inode($0)?.content } == .materialized)
        let partial = try #require(try replica.number("identifier of partial"))
        #expect(try database.presentRanges(of: partial) == ByteRanges([0..<40]))
        let renamed = try #require(try database.item("identifier of renamed"))
        #expect(renamed.changedFields == .filename && renamed.base.name == "renamed there")
        #expect(try database.pendingDeletions().map(\.identifier) == ["identifier of removed"])
        #expect(try database.pendingDeletions().map(\.inode) == [nil])
        #expect(try database.trashedItems().map(\.ownName) == ["trashed"])
        let new = try #require(try database.item(named: "new", in: .root))
        #expect(new.identifier == nil && new.changedFields.contains(.contents))
        let attribute = ExtendedAttributeName.key(of: "user.comment")
        #expect(try database.extendedAttribute(attribute, of: new.inode.number) == Array("kept".utf8))
        #expect(try database.bytes(of: .syncAnchor) == Array("anchor".utf8))
        #expect(try database.localSets.lastChange(of: .pending) > 0)
        try replica.close()
    }
}
