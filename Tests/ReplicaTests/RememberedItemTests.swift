import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// Items in directories without a listing: what was made here, and what is only remembered.
@Suite struct RememberedItemTests {
    private let fixture: ReplicaFixture
    private let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    /// Makes a link or an empty file in a directory.
    private func create(_ name: String, _ kind: InodeKind, in directory: InodeNumber) throws -> InodeNumber {
        let new = NewInode(kind: kind, permissions: 0o644, linkTarget: kind == .symbolicLink ? "target" : nil)
        let (made, _) = try replica.change(open: fixture.open) {
            try $0.names.create(
                name, in: directory, new, caller: LocalCaller(user: 7, group: 8), usualGroup: 9, isListed: false)
        }
        return made.number
    }

    /// Makes one, and sends it.
    private func make(_ name: String, _ kind: InodeKind, in directory: InodeNumber) async throws -> ItemRecord {
        let number = try create(name, kind, in: directory)
        // As the answer leaves it.
        try await replica.database.write { db in
            try db.run(
                """
                UPDATE item SET identifier = name, baseParent = 'd', baseName = name, changedFields = 0,
                    pendingSince = NULL WHERE inode = ?
                """, [number.rawValue])
        }
        return try #require(try replica.database.item(ofInode: number))
    }

    @Test(
        "REIMPORT-3: what was made in a directory without a listing is here until that is evicted",
        arguments: [InodeKind.symbolicLink, .file], [false, true])
    func made(kind: InodeKind, wasListed: Bool) async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        if wasListed {
            try await replica.list([.file("old", in: "d", size: 0)], in: directory, open: fixture.open)
            _ = try await replica.evictListing(of: directory)
        }
        let made = try await make("made", kind, in: directory)
        #expect(try replica.database.inode(directory)?.content == .dataless)
        #expect(try !replica.database.isOnlyRemembered(made))
        if wasListed {
            let old = try #require(try replica.database.item("old"))
            #expect(try replica.database.isOnlyRemembered(old))
        }
        try await replica.database.write { db in try db.makeListed(directory, comparison: .none) }
        #expect(try !replica.database.isOnlyRemembered(made))
        _ = try await replica.evictListing(of: directory)
        #expect(try replica.database.isOnlyRemembered(made))
    }

    @Test("REIMPORT-3: what a listing has brought that was abandoned is only remembered", arguments: [true, false])
    func abandonedListing(isAlone: Bool) async throws {
        func abandon(_ directory: InodeNumber) async throws {
            try await replica.database.write { db in
                if isAlone { try db.abandonListing(of: directory) } else { try db.abandonListings() }
            }
        }
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let early = try await make("early", .symbolicLink, in: directory)
        // The remote is away.
        _ = try #require(try await replica.beginListing(of: directory))
        try await abandon(directory)
        #expect(try !replica.database.isOnlyRemembered(early))
        let beginning = try #require(try await replica.beginListing(of: directory))
        _ = try await replica.ingest(open: fixture.open) {
            try $0.listings.page(
                of: directory, listing: beginning.number, items: [.file("empty", in: "d", size: 0)],
                observed: beginning.observation)
        }
        try await abandon(directory)
        let empty = try #require(try replica.database.item("empty"))
        #expect(try replica.database.isOnlyRemembered(empty))
        let late = try await make("late", .symbolicLink, in: directory)
        #expect(try !replica.database.isOnlyRemembered(late))
    }

    @Test("WRITE-14: a lookup in a directory without a listing finds what the remote has never heard of")
    func lookedUp() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try create("new", .symbolicLink, in: directory)
        _ = try await make("sent", .symbolicLink, in: directory)
        let new = try replica.database.lookup("new", in: directory)
        #expect(new.inode?.number == number && new.directory == .dataless)
        for name in ["sent", "other"] {
            let answer = try replica.database.lookup(name, in: directory)
            #expect(answer.inode == nil && answer.directory == .dataless, "\(name)")
        }
        // What waits to be recognized may be gone on the remote.
        try await replica.database.write { db in try db.run("UPDATE item SET reimport = 1 WHERE name = 'new'", []) }
        #expect(try replica.database.lookup("new", in: directory).inode == nil)
    }

    @Test("WRITE-14: without a listing, what the remote has never heard of is renamed, linked and removed")
    func changed() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try create("new", .file, in: directory)
        _ = try create("other", .file, in: directory)
        _ = try await make("sent", .file, in: directory)
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename("new", in: directory, to: "newer", in: directory, .keep, isListed: false)
            try $0.names.rename("other", in: directory, to: "another", in: directory, .keep, isListed: false)
            try $0.names.rename("newer", in: directory, to: "another", in: directory, .replace, isListed: false)
            _ = try $0.names.link(number, as: "linked", in: directory, isListed: false)
            try $0.names.unlink("another", in: directory, isListed: false)
        }
        let names = try replica.database.entries(of: directory, after: 0, limit: 100).map(\.name)
        #expect(Set(names) == ["linked", "sent"])
        #expect(try replica.database.lookup("linked", in: directory).inode?.number == number)
        #expect(throws: LocalObstacle.listing(of: directory)) {
            _ = try replica.change(open: fixture.open) { try $0.names.unlink("linked", in: directory) }
        }
        #expect(throws: LocalObstacle.listing(of: directory)) {
            _ = try replica.change(open: fixture.open) { try $0.names.unlink("sent", in: directory, isListed: false) }
        }
        #expect(throws: LocalObstacle.listing(of: directory)) {
            _ = try replica.change(open: fixture.open) {
                try $0.names.rename("sent", in: directory, to: "moved", in: directory, .keep, isListed: false)
            }
        }
        #expect(throws: LocalObstacle.listing(of: directory)) {
            _ = try replica.change(open: fixture.open) {
                try $0.names.rename("linked", in: directory, to: "sent", in: directory, .replace, isListed: false)
            }
        }
    }
}
