import FileProvider
import GRDB
import ReplicaTestSupport
import Testing

@testable import Replica

/// What the provider says becomes what the mount shows.
@Suite struct IngestionTests {
    let fixture: ReplicaFixture
    let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    @Test func aListedItemShowsAllThatTheProviderSaid() async throws {
        var item = FileProviderItem.file("a", size: 42)
        item.permissions = 0o4751
        item.owner = 12
        item.group = 34
        item.extendedAttributes = ["note": [1, 2]]
        try await replica.list([item], open: fixture.open)
        let inode = try #require(try replica.database.item("a").map(\.inode))
        #expect(inode.size == 42)
        #expect(inode.permissions == 0o4751)
        #expect(inode.owner == 12)
        #expect(inode.group == 34)
        #expect(inode.modifiedAt.nanoseconds == 123_456_789)
        #expect(try replica.database.extendedAttribute("note", of: inode.number) == [1, 2])
    }

    @Test func anItemIsTheSameInodeAfterItsListingWasEvicted() async throws {
        try await replica.list([.file("a"), .directory("d")], open: fixture.open)
        let before = try replica.number("a")
        _ = try await replica.evictListing(of: .root)
        #expect(try replica.database.inode(.root)?.content == .dataless)
        // The names have changed places meanwhile.
        try await replica.list([.file("d", id: "a"), .directory("a", id: "d")], open: fixture.open)
        #expect(try replica.number("a") == before)
        #expect(try replica.names() == ["a", "d"])
        #expect(try replica.database.item("a")?.name == "d")
    }

    @Test func aRenameKeepsInodeAndContent() async throws {
        let number = try await replica.list(.file("a"), .directory("d"), open: fixture.open)
        try await replica.fill(number)
        let directory = try #require(try replica.number("d"))
        try await replica.list([], in: directory, open: fixture.open)
        try await replica.change([.file("b", id: "a", in: "d")], open: fixture.open)
        let item = try #require(try replica.database.item("a"))
        #expect(item.inode.number == number)
        #expect(item.inode.content == .materialized)
        #expect(try replica.database.path(of: number) == ["d", "b"])
        #expect(try replica.database.remoteItems.path(of: "a") == ["d", "b"])
    }

    @Test func movedItemOutlivesItsOldDirectory() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        let number = try await replica.list(.file("a", in: "d"), in: directory, open: fixture.open)
        try await replica.fill(number)
        try await replica.change([.file("a")], deleted: ["d"], open: fixture.open)
        #expect(try replica.names() == ["a"])
        #expect(try replica.number("a") == number)
        #expect(fixture.contentFiles == [number.description])
    }

    @Test func twoItemsOfOneNameAreBothShownUntilOneGoes() async throws {
        let effects = try await replica.list(
            [.file("a.txt", id: "1"), .file("a.txt", id: "2")], open: fixture.open)
        #expect(effects.decoratedItems.map(\.identifier) == ["2"])
        #expect(try replica.names() == ["a (2).txt", "a.txt"])
        #expect(try replica.database.item("2")?.base.name == "a.txt")
        try await replica.change(deleted: ["1"], open: fixture.open)
        #expect(try replica.names() == ["a.txt"])
        #expect(try replica.database.item("2")?.name == "a.txt")
    }

    @Test("NAME-7: a change that gives an item the name of another has their directory compared")
    func aTakenNameHasTheDirectoryCompared() async throws {
        try await replica.list([.file("a", id: "1"), .file("b", id: "2")], open: fixture.open)
        try await replica.change([.file("c", id: "2")], open: fixture.open)
        #expect(try replica.database.directoriesToCompare() == [])
        try await replica.change([.file("a", id: "2")], open: fixture.open)
        #expect(try replica.database.directoriesToCompare() == [.root])
        #expect(try replica.names() == ["a", "a (2)"])
    }

    @Test("NAME-7: what gives an item the name of another while they are listed has them compared")
    func aTakenNameInAListing() async throws {
        let beginning = try #require(try await replica.beginListing(of: .root))
        _ = try await replica.ingest(open: fixture.open) {
            try $0.listings.page(
                of: .root, listing: beginning.number, items: [.file("a", id: "1")], observed: beginning.observation)
        }
        try await replica.change([.file("a", id: "2")], open: fixture.open)
        // Comparing it now would be waiting for its listing.
        #expect(try replica.database.directoriesToCompare() == [])
        _ = try await replica.ingest(open: fixture.open) { try $0.listings.finishListing(of: .root, gone: []) }
        #expect(try replica.database.directoriesToCompare() == [.root])
    }

    @Test("a directory that is noted to be compared is not written once more") func notedOnce() async throws {
        try await replica.list([.directory("d")], open: fixture.open)
        let changes = try await replica.database.write { db in
            try (0..<2).map { _ in
                try db.noteIncompleteIfListed(.root)
                return db.changesCount
            }
        }
        #expect(changes == [1, 0])
    }

    @Test("nothing is left to be compared of a listing that was abandoned", arguments: [true, false])
    func abandonedListing(isAlone: Bool) async throws {
        _ = try #require(try await replica.beginListing(of: .root))
        _ = try await replica.ingest(open: fixture.open) { try $0.listings.noteListingsUnderWay() }
        #expect(try replica.database.isToBeCompared(.root))
        try await replica.database.write { db in
            if isAlone { try db.abandonListing(of: .root) } else { try db.abandonListings() }
        }
        #expect(try !replica.database.isToBeCompared(.root))
    }

    @Test func namesThatDifferOnlyInUnicodeFormAreTwoItems() async throws {
        let composed = "caf\u{e9}"
        let decomposed = "cafe\u{301}"
        try await replica.list([.file(composed, id: "1"), .file(decomposed, id: "2")], open: fixture.open)
        let names = try replica.database.entries(of: .root, after: 0, limit: 10).map { Array($0.name.utf8) }
        #expect(names == [Array(composed.utf8), Array(decomposed.utf8)])
    }

    @Test func aSwapOfTwoNamesInOneBatchLeavesNoneDecorated() async throws {
        try await replica.list([.file("a", id: "1"), .file("b", id: "2")], open: fixture.open)
        let effects = try await replica.change([.file("b", id: "1"), .file("a", id: "2")], open: fixture.open)
        #expect(effects.defects.isEmpty)
        #expect(try replica.database.item("1")?.name == "b")
        #expect(try replica.database.item("2")?.name == "a")
        #expect(effects.invalidations.contains(.entry(parent: .root, name: "a")))
        #expect(effects.invalidations.contains(.entry(parent: .root, name: "b")))
    }

    @Test("CHANGE-1: changes below a dataless directory take no space") func changesBelowADatalessDirectoryTakeNoSpace()
        async throws
    {
        try await replica.list([.directory("d")], open: fixture.open)
        try await replica.change([.file("new", in: "d")], open: fixture.open)
        #expect(try replica.database.item("new") == nil)
    }

    @Test func aNewParentMayComeAfterItsChildInOneBatch() async throws {
        try await replica.list([], open: fixture.open)
        try await replica.change([.file("a", in: "d"), .directory("d")], open: fixture.open)
        #expect(try replica.names() == ["d"])
        #expect(try replica.database.inode(#require(try replica.number("d")))?.content == .dataless)
    }

    @Test func parentsInACircleAreReportedAndChangeNothing() async throws {
        let a = try await replica.list(.directory("a"), open: fixture.open)
        try await replica.list([.directory("b", in: "a")], in: a, open: fixture.open)
        let effects = try await replica.change([.directory("a", in: "b")], open: fixture.open)
        #expect(effects.defects.count == 1)
        #expect(try replica.database.path(of: a) == ["a"])
    }

    @Test("CHANGE-2: directories that change their nesting are placed in any order", arguments: [false, true])
    func directoriesThatChangeTheirNestingArePlaced(isReversed: Bool) async throws {
        let a = try await replica.list(.directory("a"), .directory("d"), open: fixture.open)
        let d = try #require(try replica.number("d"))
        let b = try await replica.list(.directory("b", in: "a"), .file("fa", in: "a"), in: a, open: fixture.open)
        // The remote moves a below b, and d takes the name of a.
        let batch: [FileProviderItem] = [
            .directory("a", in: "b"), .directory("a", id: "d"), .directory("c", id: "b"),
        ]
        let effects = try await replica.change(isReversed ? batch.reversed() : batch, open: fixture.open)
        #expect(effects.defects.isEmpty)
        #expect(try replica.database.path(of: b) == ["c"])
        #expect(try replica.database.path(of: a) == ["c", "a"])
        #expect(try replica.database.path(of: d) == ["a"])
        #expect(try replica.database.path(of: #require(try replica.number("fa"))) == ["c", "a", "fa"])
    }

    @Test("CHANGE-2: a directory whose new parent still lies below it stays shown, and both directories are compared")
    func aDirectoryThatWouldLieBelowItselfStaysShown() async throws {
        let a = try await replica.list(.directory("a"), .directory("d"), open: fixture.open)
        let b = try await replica.list(.directory("b", in: "a"), in: a, open: fixture.open)
        try await replica.list([], in: b, open: fixture.open)
        let moved = FileProviderItem.directory("a", in: "b")
        let effects = try await replica.change([moved, .directory("a", id: "d")], open: fixture.open)
        #expect(effects.defects.count == 1)
        #expect(try replica.names() == ["a", "a (2)"])
        #expect(try replica.database.path(of: a) == ["a (2)"])
        #expect(Set(try replica.database.directoriesToCompare()) == [.root, b])
        try await replica.change([.directory("c", id: "b")], open: fixture.open)
        let later = try await replica.change([moved], open: fixture.open)
        #expect(try replica.database.path(of: a) == ["c", "a"])
        #expect(later.endedDefects.contains(effects.defects[0]))
    }

    @Test(arguments: ["", ".", "..", "a/b", "a\0b", String(repeating: "x", count: 256)])
    func impossibleFileNameIsReportedAndNotShown(_ name: String) async throws {
        let effects = try await replica.list([.file(name, id: "bad"), .file("good")], open: fixture.open)
        #expect(try replica.names() == ["good"])
        #expect(effects.defects.count == 1)
    }

    @Test func anItemThatBecomesADirectoryIsAnotherItem() async throws {
        try await replica.list([.file("a")], open: fixture.open)
        let number = try replica.number("a")
        try await replica.change([.directory("a")], open: fixture.open)
        #expect(try replica.names() == ["a"])
        #expect(try replica.number("a") != number)
    }

    @Test func aListingRemovesWhatIsGone() async throws {
        let number = try await replica.list(.file("a"), .file("b"), open: fixture.open)
        let effects = try await replica.list([.file("b")], open: fixture.open)
        #expect(try replica.names() == ["b"])
        #expect(try replica.database.inode(number) == nil)
        #expect(effects.invalidations.contains(.deletion(parent: .root, child: number, name: "a")))
    }
}
