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
}
