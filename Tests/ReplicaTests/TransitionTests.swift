import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// Transitions of items, where what they guarantee is seen by no other test.
@Suite("transitions") struct TransitionTests {
    @Test("a displaced item that becomes new is shown again, under a name that is free")
    func becomingNewShowsADisplacedItem() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let number = try await replica.list(.file("a", id: "1"), .file("b", id: "2"), open: fixture.open)
        try await replica.fill(number)
        let row = try #require(try replica.database.item(ofInode: number)?.id)
        try replica.database.write(.everything) { db in
            try db.displace(row)
            // The name that it had is another item's by now.
            let other = try #require(try db.item("2"))
            try db.setName(of: other.id, to: "a")
        }
        _ = try await replica.ingest(open: fixture.open) { ingestion in
            let displaced = try #require(try ingestion.placement.db.item(id: row))
            #expect(displaced.isHidden)
            try ingestion.removal.becomeNew(displaced)
        }
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.name == "a (2)")
        #expect(item.identifier == nil && item.base.name == nil && item.base.modifiedAt == nil && item.base.size == 0)
        #expect(item.changedFields == .ofNewItem(.file))
        #expect(try replica.names() == ["a", "a (2)"])
        #expect(try replica.database.defects() == [])
    }

    @Test("what was to be found in a directory that becomes new is not pending any more")
    func becomingNewForgetsDeletionsToBeFound() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let directory = try await replica.list(.directory("d", id: "d"), open: fixture.open)
        try await replica.list([.file("f", id: "f", in: "d")], in: directory, open: fixture.open)
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("f", in: directory) }
        try await replica.beginReimport(below: directory)
        #expect(try replica.database.pendingDeletions().map(\.isToBeFound) == [true])
        _ = try await replica.ingest(open: fixture.open) { ingestion in
            try ingestion.removal.becomeNew(try #require(try ingestion.placement.db.item(ofInode: directory)))
        }
        #expect(try replica.database.pendingDeletions() == [])
    }

    @Test("what was sent of an item without an answer stays known when it becomes new")
    func becomingNewKeepsWhatWasSent() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let number = try await replica.list(.file("a", id: "1"), open: fixture.open)
        try await replica.fill(number)
        let item = try #require(try replica.database.item(ofInode: number))
        try await fixture.sabotage("INSERT INTO unanswered (item, size, modifiedAt) VALUES (\(item.id), 100, 5)")
        _ = try await replica.ingest(open: fixture.open) { try $0.removal.becomeNew(item) }
        #expect(try replica.database.unanswered(ofItem: item.id).map(\.size) == [100])
    }

    @Test("an item that moves to a row of its own keeps what is said of it here, and its place")
    func movingToANewRowKeepsTheLocalSide() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.file("a", id: "1")], open: fixture.open)
        let item = try #require(try replica.database.item("1"))
        try await fixture.sabotage("UPDATE item SET conflictOf = 'original', userPolicy = 1 WHERE id = \(item.id)")
        let row = try replica.database.write(.everything) { db in try db.moveToNewRow(item) }
        let moved = try #require(try replica.database.item(row: row))
        #expect(row != item.id && moved.inode.number == item.inode.number)
        #expect(moved.name == "a" && moved.parent == item.parent && moved.identifier == nil)
        #expect(moved.policy == .lazy)
        #expect(try replica.database.originalName(ofConflictCopy: moved) == "original")
        #expect(try replica.database.item(row: item.id) == nil)
    }
}
