import FileProvider
import GRDB
import ReplicaTestSupport
import Synchronization
import Testing

@testable import Replica

/// Deep trees in one batch of changes cost as many queries for each item as flat ones.
@Suite struct DeepBatchTests {
    @Test(
        "a deep tree in one batch, the children first, is placed with few queries", arguments: [false, true])
    func childrenFirst(hasTrash: Bool) async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        defer { withExtendedLifetime(fixture) {} }
        try await replica.list([], open: fixture.open)
        let (contents, depth) = (replica.contents, 300)
        if hasTrash {
            try await replica.database.write { db in
                var directories = TrashDirectories(db: db, contents: contents, now: FileTimestamp.now)
                _ = try directories.trash(of: 0, group: 0)
            }
        }
        let tree = (0..<depth).map { level in
            FileProviderItem.directory(
                "d", id: "\(level)", in: level == 0 ? .rootContainer : ItemIdentifier("\(level - 1)"))
        }
        let batch = ChangeBatch(updated: tree.reversed(), deleted: [], anchor: SyncAnchor("x"))
        let queries = Mutex(0)
        try await replica.database.write { db in db.trace { _ in queries.withLock { $0 += 1 } } }
        _ = try await replica.ingest(open: fixture.open) {
            try $0.changes.apply(batch, required: Set(tree.map(\.itemIdentifier)))
        }
        let made = queries.withLock { $0 }
        #expect(made < depth * 60, "\(made)")
        let deepest = try #require(try replica.number("\(depth - 1)"))
        #expect(try replica.database.path(of: deepest)?.count == depth)
    }

    @Test("an item waits for its parent, and not for others") func order() {
        let (a, b) = (FileProviderItem.directory("a"), FileProviderItem.directory("b", in: "a"))
        let (c, d) = (FileProviderItem.directory("c", in: "d"), FileProviderItem.directory("d", in: "c"))
        let e = FileProviderItem.file("e")
        var order = PlacingOrder([b, c, d, a, e])
        var placed: [String] = []
        while let item = order.next() {
            let isKnown =
                item.parentItemIdentifier == .rootContainer
                || placed.contains { $0 == item.parentItemIdentifier.rawValue }
            if !isKnown, order.waitsForParent(item) { continue }
            placed.append(item.filename)
            order.finish(item)
        }
        #expect(placed == ["a", "e", "b"])
        #expect(order.waiting == [c, d])
        order.waitForMoves(a)
        let none = order.next()
        #expect(order.hasMoves && none == nil)
        order.retryMoves()
        let retried = order.next()
        #expect(retried == a)
    }
}
