import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// Items that no directory shows until news of the remote is taken in.
@Suite struct PlacelessItemTests {
    let fixture: ReplicaFixture
    let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    private func placeless(_ findings: [CheckFinding]) -> Int {
        findings.count { $0.text.hasPrefix("has no place") }
    }

    @Test("CHECK-1: an item that makes room for another when the daemon is killed is no damage, and gets a name again")
    func madeRoom() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try await replica.list(.file("a", id: "1", in: "d"), in: directory, open: fixture.open)
        try await replica.fill(number)
        // The last page of the listing never comes.
        let beginning = try #require(try await replica.beginListing(of: directory))
        _ = try await replica.ingest(open: fixture.open) { ingestion in
            try ingestion.listings.page(
                of: directory, listing: beginning.number, items: [.file("a", id: "2", in: "d")],
                observed: beginning.observation)
        }
        try replica.close()
        let opened = try fixture.replica()
        let hidden = try #require(try opened.database.item(ItemIdentifier("1")))
        #expect(hidden.isHidden && hidden.nameForUser == "a")
        #expect(try opened.database.path(of: number, isForUser: true) == ["d", "a"])
        for isRepairing in [false, true] {
            #expect(try opened.check(open: fixture.open, isRepairing: isRepairing).findings == [])
        }
        #expect(fixture.contentFiles == [number.description])
        try await opened.list(
            [.file("a", id: "2", in: "d"), .file("b", id: "1", in: "d")], in: directory, open: fixture.open)
        #expect(try opened.database.item(ItemIdentifier("1"))?.name == "b")
        #expect(try opened.database.defects() == [])
    }

    /// - Parameter reimport: as after a reimport in which it was recognized.
    @Test(
        "CHECK-1: what lies in a directory that is not known here is no damage, nor is what it holds; it is looked up",
        arguments: [0, -1])
    func movedAway(reimport: Int) async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try await replica.list(.file("f", in: "d"), in: directory, open: fixture.open)
        try await replica.fill(number)
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.move(.directory("d", in: "elsewhere")) }
        try await replica.database.write { db in
            try db.run("UPDATE item SET reimport = ? WHERE identifier = 'd'", [reimport])
        }
        #expect(try replica.database.item(ofInode: directory)?.parent == nil)
        for isRepairing in [false, true] {
            #expect(try replica.check(open: fixture.open, isRepairing: isRepairing).findings == [])
        }
        #expect(fixture.contentFiles == [number.description])
        let waiting = try replica.database.itemsWithoutDirectory(after: 0, limit: 10).map(\.identifier)
        #expect(waiting == [ItemIdentifier("d")])
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.move(.directory("d")) }
        #expect(try replica.names() == ["d"])
        #expect(try replica.database.path(of: number) == ["d", "f"])
    }

    @Test(
        "CHECK-1: an item that no news gives a place is found, under the name that it had, and taken out",
        arguments: ["identifier = NULL", "baseName = NULL", "identifier = NULL, parent = NULL"])
    func neverPlaced(damage: String) async throws {
        try await replica.list([.file("a"), .file("b")], open: fixture.open)
        try await fixture.sabotage("UPDATE item SET name = '/' || id, \(damage) WHERE identifier = 'a'")
        let found = try replica.check(open: fixture.open, isRepairing: false).findings
        #expect(placeless(found) == 1, "\(found)")
        #expect(found.allSatisfy { $0.name?.hasPrefix("/") != true }, "\(found)")
        let mended = try replica.check(open: fixture.open, isRepairing: true).findings
        #expect(!mended.isEmpty && mended.allSatisfy(\.isMended), "\(mended)")
        #expect(try replica.check(open: fixture.open, isRepairing: false).findings == [])
        #expect(try replica.names() == ["b"])
    }
}
