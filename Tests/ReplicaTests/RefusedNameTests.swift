import FileProvider
import ReplicaTestSupport
import SystemPackage
import Testing

@testable import Replica

/// The remote refuses a name that the item does not have any more.
@Suite struct RefusedNameTests {
    private let fixture: ReplicaFixture
    private let replica: Replica
    private static let caller = LocalCaller(user: 7, group: 8)
    private static let refusal = FileProviderError(.excludedFromSync)

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    private func rename(_ name: String, to newName: String) throws {
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename(name, in: .root, to: newName, in: .root, .replace)
        }
    }

    @Test("SEND-16: a new file that is renamed before its old name is refused is sent under its new one")
    func renamedBeforeItIsRefused() async throws {
        try await replica.list([], open: fixture.open)
        let (made, _) = try replica.change(open: fixture.open) {
            try $0.names.createFile("part", in: .root, permissions: 0o640, caller: Self.caller, usualGroup: 9)
        }
        try made.content.close()
        let row = try #require(try replica.database.item(ofInode: made.inode.number)).id
        func refuse(_ sent: SentChange) async throws {
            _ = try await replica.ingest(open: fixture.open) {
                try $0.answers.noteAnswered(sent)
                try $0.refusals.exclude(sent, Self.refusal)
            }
        }
        func send() async throws -> SentChange {
            let sent = try #require(try replica.prepare(row, fields: ItemFields.ofNewItem(.file)))
            let isNoted = try await replica.ingest(open: fixture.open) { try $0.answers.noteSent(sent) }.0
            #expect(isNoted)
            return sent
        }
        let first = try await send()
        try rename("part", to: "whole")
        try await refuse(first)
        let item = try #require(try replica.database.item(row: row))
        #expect(item.name == "whole" && !item.isExcluded)
        #expect(try replica.database.pendingDeletions().isEmpty)
        let second = try await send()
        #expect(second.item.filename == "whole")
        // A file that has kept its name stays here.
        try await refuse(second)
        #expect(try replica.database.item(row: row)?.isExcluded == true)
    }

    @Test("CONFLICT-3: a new file that is moved before its first name turns out to be taken makes no conflict copy")
    func movedBeforeItCollides() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        try await replica.list([], in: directory, open: fixture.open)
        let (made, _) = try replica.change(open: fixture.open) {
            try $0.names.createFile("file", in: .root, permissions: 0o640, caller: Self.caller, usualGroup: 9)
        }
        try made.content.close()
        let row = try #require(try replica.database.item(ofInode: made.inode.number)).id
        let sent = try #require(try replica.prepare(row, fields: ItemFields.ofNewItem(.file)))
        _ = try await replica.ingest(open: fixture.open) { try $0.answers.noteSent(sent) }
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename("file", in: .root, to: "file", in: directory, .replace)
        }
        _ = try await replica.ingest(open: fixture.open) {
            try $0.answers.noteAnswered(sent)
            _ = try $0.conflicts.resolveCollision(
                of: row, with: .file("file", id: "theirs"), label: "copy", sent: sent)
        }
        #expect(try replica.names(in: directory) == ["file"])
        #expect(try replica.names() == ["d", "file"])
        #expect(try replica.number("theirs") != made.inode.number)
        #expect(try replica.database.conflictCopies().isEmpty)
    }

    @Test("SEND-16: a file that is renamed again before its new name is refused stays on the remote")
    func renamedBeforeItIsWithdrawn() async throws {
        let number = try await replica.list(.file("file", size: 0), open: fixture.open)
        let row = try #require(try replica.database.item(ofInode: number)).id
        func withdraw(_ sent: SentChange) async throws -> Bool {
            try await replica.ingest(open: fixture.open) { try $0.refusals.withdraw(sent, Self.refusal) }.0
        }
        try rename("file", to: "unwanted")
        let first = try #require(try replica.prepare(row, fields: .filename))
        try rename("unwanted", to: "wanted")
        #expect(try await withdraw(first))
        let item = try #require(try replica.database.item(row: row))
        #expect(item.name == "wanted" && !item.isExcluded && item.changedFields == .filename)
        #expect(try replica.database.pendingDeletions().isEmpty)
        let second = try #require(try replica.prepare(row, fields: .filename))
        #expect(try await withdraw(second))
        let deletions = try replica.database.pendingDeletions().map(\.identifier)
        #expect(deletions == [ItemIdentifier("file")])
    }
}
