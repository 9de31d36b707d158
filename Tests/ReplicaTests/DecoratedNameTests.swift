import FileProvider
import GRDB
import ReplicaTestSupport
import Synchronization
import Testing

@testable import Replica

/// Items that are shown under another name than their own get it when it becomes free, at the cost of that name alone.
@Suite struct DecoratedNameTests {
    let fixture: ReplicaFixture
    let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    @Test("an item that waits for a name is found without reading the others that wait") func plan() throws {
        let plan = try replica.database.read { db in
            try db.all("EXPLAIN QUERY PLAN " + ShownNames.waitingItem, [1, "a"], { $0[3] as String })
        }
        #expect(plan.contains { $0.contains("INDEX renamedItem (parent=? AND baseName=?)") }, "\(plan)")
    }

    @Test("NAME-7: an item that is looked up alone asks for no other names than the one that it frees")
    func lookedUp() async throws {
        let count = 200
        let items = (0..<count).flatMap { number -> [FileProviderItem] in
            [.file("\(number)", id: "a\(number)"), .file("\(number)", id: "b\(number)")]
        }
        try await replica.list(items, open: fixture.open)
        #expect(try replica.database.item("b7")?.name == "7 (2)")
        let queries = Mutex(0)
        try await replica.database.write { db in db.trace { _ in queries.withLock { $0 += 1 } } }
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.move(.file("moved", id: "a7")) }
        let ofMove = queries.withLock { $0 }
        #expect(try replica.database.item("b7")?.name == "7")
        #expect(ofMove < count / 2, "\(ofMove)")
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.removeIfKnown("a8") }
        let ofBoth = queries.withLock { $0 }
        #expect(try replica.database.item("b8")?.name == "8")
        #expect(ofBoth - ofMove < count / 2, "\(ofBoth - ofMove)")
        #expect(try replica.database.item("b9")?.name == "9 (2)")
    }

    @Test("NAME-7: a decorated name that becomes free goes to the item whose own it is") func chain() async throws {
        try await replica.list(
            [.file("a", id: "1"), .file("a", id: "2"), .file("a (2)", id: "3")], open: fixture.open)
        #expect(try replica.names() == ["a", "a (2)", "a (2) (2)"])
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.removeIfKnown("1") }
        #expect(try replica.names() == ["a", "a (2)"])
        #expect(try replica.database.item("2")?.name == "a")
        #expect(try replica.database.item("3")?.name == "a (2)")
    }

    @Test("NAME-7: a name that is given up here goes to the remote's item when the remote has the change")
    func renamedHere() async throws {
        try await replica.list([.file("a", id: "1"), .file("a", id: "2")], open: fixture.open)
        let row = try #require(try replica.database.item("1")).id
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename("a", in: .root, to: "b", in: .root, .replace)
        }
        let sent = try #require(try replica.prepare(row, fields: .filename))
        _ = try await replica.ingest(open: fixture.open) {
            try $0.answers.acknowledge(sent, as: .file("b", id: "1"), stillPending: [], shouldFetchContent: false)
        }
        #expect(try replica.names() == ["a", "b"])
    }
}
