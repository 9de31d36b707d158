import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// What was moved here into directories that the remote removes.
@Suite struct MovedIntoRemovedTests {
    @Test(
        "CONFLICT-2: what was moved here into directories that the remote removes stays the item that it was, in any order",
        arguments: [["z", "y", "x"], ["y", "x", "z"], ["x", "y", "z"]], [false, true])
    func staysWhatItWas(order: [String], isWritten: Bool) async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let outer = try await replica.list(.directory("x"), .file("f", size: 0), open: fixture.open)
        let middle = try await replica.list(.directory("y", in: "x"), in: outer, open: fixture.open)
        let inner = try await replica.list(.directory("z", in: "y"), in: middle, open: fixture.open)
        try await replica.list([], in: inner, open: fixture.open)
        let number = try #require(try replica.number("f"))
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename("f", in: .root, to: "g", in: inner, .replace)
            guard isWritten else { return }
            try $0.contents.beginWriting(number, truncating: true, caller: LocalCaller(user: 0, group: 0))
            try $0.contents.endWriting(number)
        }
        for identifier in order {
            _ = try await replica.ingest(open: fixture.open) {
                try $0.changes.vanish([ItemIdentifier(identifier)])
            }
        }
        let item = try #require(try replica.database.item(ItemIdentifier("f")))
        #expect(item.inode.number == number && item.parent == inner && item.name == "g")
        #expect(item.changedFields.contains(.parentItemIdentifier))
        for directory in [outer, middle, inner] {
            let made = try #require(try replica.database.item(ofInode: directory))
            #expect(made.identifier == nil)
        }
        #expect(try replica.names() == ["x"])
    }

    @Test("CONFLICT-2: what was written in a directory that was moved into one that comes together with another stays")
    func writtenBelowMoved() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let moved = try await replica.list(
            .directory("c"), .directory("twin"), .directory("d"), open: fixture.open)
        try await replica.list([.file("f", in: "c")], in: moved, open: fixture.open)
        let twin = try #require(try replica.number("twin"))
        try await replica.list([], in: twin, open: fixture.open)
        let directory = try #require(try replica.number("d"))
        let other = try await replica.list(.directory("c", id: "e", in: "d"), in: directory, open: fixture.open)
        try await replica.list([.file("f", id: "g", in: "e")], in: other, open: fixture.open)
        let number = try #require(try replica.number("f"))
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename("c", in: .root, to: "c", in: twin, .replace)
            try $0.contents.beginWriting(number, truncating: true, caller: LocalCaller(user: 0, group: 0))
            try $0.contents.endWriting(number)
        }
        let gone = try #require(try replica.database.item("twin"))
        let item = try #require(try replica.database.item("d"))
        _ = try await replica.ingest(open: fixture.open) { try $0.removal.forgetTwin(gone, of: item) }
        let written = try #require(try replica.database.item(ofInode: number))
        #expect(written.parent == other && written.name != "f")
        #expect(try replica.names() == ["d"])
    }
}
