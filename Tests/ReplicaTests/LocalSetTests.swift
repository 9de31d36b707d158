import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// The histories of the sets of materialized and pending items.
@Suite struct LocalSetTests {
    @Test func aHistoryIsKeptShortAndWhatIsBeforeItHasExpired() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list((0..<20).map { .file("f\($0)", id: "f\($0)", size: 10) }, open: fixture.open)
        #expect(try replica.database.localSets.lastChange(of: .materialized) == 0, "no provider follows it")
        try replica.database.localSets.followSets()
        let start = try replica.database.localSets.lastChange(of: .materialized)
        for number in 0..<20 { try await replica.fill(#require(try replica.number("f\(number)"))) }
        let database = replica.database
        let last = try database.localSets.lastChange(of: .materialized)
        #expect(last >= start + 20)
        #expect(try database.localSets.changes(of: .materialized, after: start, limit: 100)?.updated.count == 20)
        // It goes back so far, and no further.
        #expect(
            try database.localSets.changes(of: .materialized, after: last - 5, limit: 100, history: 5)?.updated.count
                == 5)
        #expect(try database.localSets.changes(of: .materialized, after: last - 6, limit: 100, history: 5) == nil)
        #expect(
            try database.localSets.changes(of: .materialized, after: last + 1, limit: 100) == nil, "of no time that was"
        )
        try database.localSets.shortenHistories(to: 5)
        #expect(
            try database.localSets.changes(of: .materialized, after: last - 5, limit: 100, history: 5)?.updated.count
                == 5)
        #expect(
            try database.localSets.changes(of: .materialized, after: start, limit: 100)?.updated.count == 6,
            "rows are gone")
        // What is there now does not depend on it.
        let page = try database.localSets.members(of: .materialized, from: 0, limit: 100)
        #expect(page.items.count == 21)
    }

    @Test func removedItemsAreNotCounted() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([], open: fixture.open)
        let before = try replica.database.counts()
        _ = try replica.change(open: fixture.open) {
            try $0.names.create(
                "directory", in: .root, NewInode(kind: .directory, permissions: 0o755),
                caller: LocalCaller(user: 7, group: 8), usualGroup: 9)
        }
        #expect(try replica.database.counts().materializedDirectories == before.materializedDirectories + 1)
        _ = try replica.change(open: fixture.open) { try $0.names.removeDirectory("directory", in: .root) }
        #expect(try replica.database.counts() == before)
    }

    @Test func removedFilesAreNotCounted() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let number = try await replica.list(.file("a"), open: fixture.open)
        try await replica.fill(number)
        #expect(try replica.database.counts().materializedFiles == 1)
        fixture.open.insert(number)
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("a", in: .root) }
        #expect(try replica.database.inode(number)?.linkCount == 0)
        #expect(try replica.database.counts().materializedFiles == 0)
    }

    @Test func pagesGiveEveryMemberOnce() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list((0..<250).map { .file("f\($0)", id: "f\($0)", size: 10) }, open: fixture.open)
        for number in 0..<250 { try await replica.fill(#require(try replica.number("f\(number)"))) }
        var place: Int64? = 0
        var seen: [ItemIdentifier] = []
        while let from = place {
            let page = try replica.database.localSets.members(of: .materialized, from: from, limit: 100)
            seen += page.items.map(\.itemIdentifier)
            place = page.next
        }
        #expect(Set(seen).count == seen.count)
        #expect(Set(seen).isSuperset(of: (0..<250).map { ItemIdentifier("f\($0)") }))
    }
}
