import FileProvider
import GRDB
import ReplicaTestSupport
import Testing

@testable import Replica

/// What is pending in a directory, before the date of the directory can be sent.
@Suite struct PendingChildTests {
    @Test("what is pending in a directory is found without reading the other items in it") func plan() throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        defer { withExtendedLifetime(fixture) {} }
        let plan = try replica.database.read { db in
            try db.all("EXPLAIN QUERY PLAN " + Database.changesOfDate, [1, "d"], { $0[3] as String })
        }
        let searches = plan.filter { $0.contains("item") || $0.contains("deletion") }
        let indexes = ["pendingChild", "deletionByPlace", "movedItem"]
        #expect(searches.count == indexes.count, "\(plan)")
        for (search, index) in zip(searches, indexes) { #expect(search.contains("INDEX \(index) "), "\(plan)") }
    }

    @Test("a renamed or removed file is pending for its directory, and for no other") func kinds() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let renamed = try await replica.list(
            .directory("renamed"), .directory("removed"), .directory("none"), open: fixture.open)
        let removed = try #require(try replica.number("removed"))
        let none = try #require(try replica.number("none"))
        for (name, number) in [("renamed", renamed), ("removed", removed), ("none", none)] {
            let file = FileProviderItem.file("a", id: "a in \(name)", in: ItemIdentifier(name))
            try await replica.list([file], in: number, open: fixture.open)
        }
        func isPending(_ number: InodeNumber) throws -> Bool {
            let item = try #require(try replica.database.item(ofInode: number))
            return try replica.database.read { db in try db.hasPendingChildren(item) }
        }
        for number in [renamed, removed, none] { #expect(try !isPending(number)) }
        _ = try replica.change(open: fixture.open) { changes in
            try changes.names.rename("a", in: renamed, to: "b", in: renamed, .replace)
            try changes.names.unlink("a", in: removed)
        }
        #expect(try isPending(renamed) && isPending(removed))
        #expect(try !isPending(none))
    }
}
