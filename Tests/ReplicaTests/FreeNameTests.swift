import FileProvider
import GRDB
import ReplicaTestSupport
import Synchronization
import Testing

@testable import Replica

/// Names for items whose own names are taken.
@Suite struct FreeNameTests {
    let fixture: ReplicaFixture
    let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    @Test("a free name is found in few steps, however many of its kind are taken") func fewSteps() {
        for count in [0, 1, 2, 3, 4, 7, 8, 9, 1000] {
            let taken = Set(
                (0..<count).map { $0 == 0 ? "a.txt" : Displacement.decorated("a.txt", number: $0 + 1) })
            var steps = 0
            let name = Displacement.freeName(for: "a.txt") { candidate in
                steps += 1
                return !taken.contains(candidate)
            }
            #expect(name == (count == 0 ? "a.txt" : "a (\(count + 1)).txt"))
            #expect(steps <= 20, "\(steps) for \(count)")
        }
    }

    @Test("a free name is found where some of the numbers are free") func gaps() {
        let taken: Set = ["a", "a (2)", "a (4)", "a (5)"]
        let name = Displacement.freeName(for: "a") { !taken.contains($0) }
        #expect(!taken.contains(name) && name.hasPrefix("a ("))
    }

    @Test("many trashed items of one name cost few queries each") func trash() async throws {
        let count = 200
        try await replica.list((0..<count).map { .file("\($0)") }, open: fixture.open)
        let contents = replica.contents
        let queries = Mutex(0)
        let name = try await replica.database.write { db in
            var directories = TrashDirectories(db: db, contents: contents, now: FileTimestamp.now)
            let trash = try directories.trash(of: 0, group: 0)
            for item in try db.items(in: .root) where item.trashRole == .none {
                let name = try directories.freeName(for: "a", in: trash)
                try db.move(item.id, to: trash.files, named: name)
            }
            db.trace { _ in queries.withLock { $0 += 1 } }
            defer { db.trace() }
            return try directories.freeName(for: "a", in: trash)
        }
        #expect(name == "a (\(count + 1))")
        let made = queries.withLock { $0 }
        #expect(made > 0 && made < count / 2, "\(made)")
    }
}
