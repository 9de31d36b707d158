import FileProvider
import GRDB
import ReplicaTestSupport
import Synchronization
import Testing

@testable import Replica

/// Statements that frequent changes do without.
@Suite struct StatementCountTests {
    private let fixture: ReplicaFixture
    private let replica: Replica
    private let statements = Statements()

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    private final class Statements: Sendable {
        private let texts = Mutex<[String]>([])

        func append(_ text: String) { texts.withLock { $0.append(text) } }
        func take() -> [String] {
            texts.withLock { texts in
                defer { texts = [] }
                return texts
            }
        }
    }

    /// Notes the statements of each later transaction.
    private func trace() async throws {
        let statements = statements
        try await replica.database.write { db in db.trace { statements.append("\($0)") } }
        _ = statements.take()
    }

    private func setDate(of number: InodeNumber, to date: FileTimestamp) throws {
        let dated = LocalAttributes(modifiedAt: .at(date))
        _ = try replica.change(open: fixture.open) {
            try $0.attributes.setAttributes(of: number, to: dated, caller: LocalCaller(user: 7, group: 8))
        }
    }

    @Test("CONFLICT-1: a move of a file that is no conflict copy writes nothing about conflicts")
    func movedFile() async throws {
        let directory = try await replica.list(.directory("d"), .file("a"), .file("b"), open: fixture.open)
        try await replica.list([], in: directory, open: fixture.open)
        try await replica.database.write { db in
            try db.run("UPDATE item SET conflictOf = 'a' WHERE name = 'b'", [])
        }
        try await trace()
        for (name, isCopy) in [("a", false), ("b", true)] {
            _ = try replica.change(open: fixture.open) {
                try $0.names.rename(name, in: .root, to: name, in: directory, .replace)
            }
            let texts = statements.take()
            #expect(texts.contains { $0.hasPrefix("UPDATE item SET parent = ") })
            #expect(texts.contains { $0.hasPrefix("UPDATE item SET conflictOf = NULL") } == isCopy)
        }
        #expect(try replica.database.conflictCopies().isEmpty)
        #expect(try replica.names(in: directory) == ["a", "b"])
    }

    @Test("CHANGE-4: an answer writes nothing about held removals while none are held")
    func answered() async throws {
        let number = try await replica.list(.file("a"), open: fixture.open)
        let row = try #require(try replica.database.item(ofInode: number)).id
        for isHeld in [false, true] {
            try setDate(of: number, to: FileTimestamp(seconds: isHeld ? 1_600_000_001 : 1_600_000_000))
            let sent = try #require(try replica.prepare(row, fields: .contentModificationDate))
            if isHeld {
                _ = try await replica.ingest(open: fixture.open) {
                    try $0.changes.noteAnchor(SyncAnchor("1"), holding: ["a"])
                }
                #expect(try replica.database.heldRemovals() == ["a"])
            }
            try await trace()
            _ = try await replica.ingest(open: fixture.open) {
                try $0.answers.acknowledge(sent, as: .file("a"), stillPending: [], shouldFetchContent: false)
            }
            let texts = statements.take()
            #expect(texts.contains { $0.hasPrefix("UPDATE item SET identifier = ") })
            #expect(texts.contains { $0.hasPrefix("DELETE FROM heldRemoval") } == isHeld)
            #expect(try replica.database.heldRemovals().isEmpty)
        }
    }

    @Test("CHANGE-4: a removal that was held before the start is forgotten with an answer")
    func answeredAfterAStart() async throws {
        let number = try await replica.list(.file("a"), open: fixture.open)
        let row = try #require(try replica.database.item(ofInode: number)).id
        _ = try await replica.ingest(open: fixture.open) {
            try $0.changes.noteAnchor(SyncAnchor("1"), holding: ["a"])
        }
        try setDate(of: number, to: FileTimestamp(seconds: 1_600_000_000))
        let sent = try #require(try replica.prepare(row, fields: .contentModificationDate))
        try replica.close()
        let next = try fixture.replica()
        #expect(try next.database.heldRemovals() == ["a"])
        _ = try await next.ingest(open: fixture.open) {
            try $0.answers.acknowledge(sent, as: .file("a"), stillPending: [], shouldFetchContent: false)
        }
        #expect(try next.database.heldRemovals().isEmpty)
        try next.close()
    }
}
