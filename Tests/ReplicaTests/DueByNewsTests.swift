import FileProvider
import GRDB
import ReplicaTestSupport
import Testing

@testable import Replica

/// When reports of the remote let the uploads plan again: only when something is due earlier than before.
@Suite struct DueByNewsTests {
    @Test("ERROR-6: a deletion that waits is due within a minute of a new version, and is not made due by each report")
    func hastenedDeletion() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.file("a")], open: fixture.open)
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("a", in: .root) }
        let deletion = try #require(try replica.database.pendingDeletions().first)
        let later = FileTimestamp.now.advanced(by: .seconds(3600))
        _ = try await replica.ingest(open: fixture.open) {
            try $0.answers.postpone(deletion, FileProviderError(.cannotSynchronize), until: later)
        }
        #expect(try await !replica.change([.file("a")], open: fixture.open).isSomethingToSend)
        #expect(try replica.database.pendingDeletions().first?.nextTry == later)
        #expect(try await replica.change([.file("a", version: "2")], open: fixture.open).isSomethingToSend)
        let next = try #require(try replica.database.pendingDeletions().first?.nextTry)
        #expect(next <= FileTimestamp.now.advanced(by: .seconds(60)))
        #expect(try await !replica.change([.file("a", version: "2")], open: fixture.open).isSomethingToSend)
        #expect(try replica.database.pendingDeletions().first?.nextTry == next)
    }

    @Test("ERROR-6: a change of place is due when the remote has moved the item, and is not made due by each report")
    func movedOnBothSides() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.file("a", id: "1")], open: fixture.open)
        _ = try replica.change(open: fixture.open) { try $0.names.rename("a", in: .root, to: "z", in: .root, .replace) }
        #expect(try await !replica.change([.file("a", id: "1")], open: fixture.open).isSomethingToSend)
        #expect(try await replica.change([.file("b", id: "1")], open: fixture.open).isSomethingToSend)
        #expect(try await !replica.change([.file("b", id: "1")], open: fixture.open).isSomethingToSend)
        #expect(try replica.names() == ["z"])
    }

    @Test("ERROR-6: a refused change of place waits on, with its reason, when a listing or a report repeats the item")
    func refusedRename() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let open = fixture.open
        try await replica.list([.file("a", id: "1")], open: open)
        _ = try replica.change(open: open) { try $0.names.rename("a", in: .root, to: "z", in: .root, .replace) }
        let row = try #require(try replica.database.item(ItemIdentifier("1"))).id
        let later = FileTimestamp.now.advanced(by: .seconds(3600))
        for attempt in 1...3 {
            let sent = try #require(try replica.prepare(row, fields: .filename))
            _ = try await replica.ingest(open: open) { try $0.answers.noteSent(sent) }
            _ = try await replica.ingest(open: open) {
                try $0.answers.postpone(sent, FileProviderError(.cannotSynchronize, "refused"), until: later)
            }
            try await replica.list([.file("a", id: "1")], open: open)
            try await replica.change([.file("a", id: "1")], open: open)
            #expect(try replica.database.attempts(ofItem: row) == attempt)
            #expect(try replica.database.nextTry(ofItem: row) == later)
            #expect(try replica.database.obstacle(toSending: .item(row))?.error.message == "refused")
        }
        try await replica.change([.file("b", id: "1")], open: open)
        #expect(try replica.database.attempts(ofItem: row) == 0)
        #expect(try replica.database.nextTry(ofItem: row) == nil)
    }

    @Test(
        "ERROR-6: a refused change is due when its directory has another mode, but not when it has another date",
        arguments: [0, PendingStatement.fewFailures])
    func refusedInADirectory(otherFailures: Int) async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let open = fixture.open
        var directory = FileProviderItem.directory("d")
        let others = (0..<otherFailures).map { FileProviderItem.file("f\($0)") }
        try await replica.list([directory] + others, open: open)
        try await replica.database.write { db in
            try db.run(
                """
                INSERT INTO failure (inode, code, message, failedAt)
                SELECT inode, 'timedOut', '', 0 FROM item WHERE name LIKE 'f%'
                """, [])
        }
        #expect(try replica.database.failureCount() == otherFailures)
        let number = try #require(try replica.number("d"))
        try await replica.list([.file("a", in: "d")], in: number, open: open)
        _ = try replica.change(open: open) { try $0.names.rename("a", in: number, to: "z", in: number, .replace) }
        let row = try #require(try replica.database.item(ItemIdentifier("a"))).id
        let sent = try #require(try replica.prepare(row, fields: .filename))
        let later = FileTimestamp.now.advanced(by: .seconds(3600))
        func refuse() async throws {
            _ = try await replica.ingest(open: open) {
                try $0.answers.postpone(sent, FileProviderError(.fileReadNoPermission), until: later)
            }
        }
        try await refuse()
        directory.contentModificationDate = FileTimestamp(seconds: 1_600_000_000, nanoseconds: 0)
        let dated = try await replica.change([directory], open: open)
        #expect(!dated.isSomethingToSend)
        #expect(try replica.database.nextTry(ofItem: row) == later)
        directory.permissions = 0o711
        let permitted = try await replica.change([directory], open: open)
        #expect(permitted.isSomethingToSend)
        #expect(try replica.database.nextTry(ofItem: row) == nil)
        try await refuse()
        let repeated = try await replica.change([directory], open: open)
        #expect(!repeated.isSomethingToSend)
        #expect(try replica.database.nextTry(ofItem: row) == later)
    }

    @Test("ERROR-6: what has failed in a directory is found without a scan of the directory where little has failed")
    func fewFailures() throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        defer { withExtendedLifetime(fixture) {} }
        let plan = try replica.database.read { db in
            try db.all("EXPLAIN QUERY PLAN " + PendingStatement.retryFewFailed, [1, "d"], { $0[3] as String })
        }
        #expect(plan.contains("SEARCH item USING INDEX itemByInode (inode=?)"), "\(plan)")
    }

    @Test("ERROR-6: what waits for the name of an item that is renamed here is due when the remote removes that")
    func freedName() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.file("a", id: "1"), .file("b", id: "2")], open: fixture.open)
        _ = try replica.change(open: fixture.open) { try $0.names.rename("a", in: .root, to: "z", in: .root, .replace) }
        #expect(try await replica.change(deleted: ["1"], open: fixture.open).isSomethingToSend)
        #expect(try await !replica.change(deleted: ["2"], open: fixture.open).isSomethingToSend)
    }
}
