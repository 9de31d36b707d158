import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// The rank and the tags of an item reach the remote whatever becomes of its content.
@Suite struct MarkedItemTests {
    private let fixture: ReplicaFixture
    private let replica: Replica
    private static let caller = LocalCaller(user: 7, group: 8)
    private static let marks: ItemFields = [.favoriteRank, .tagData]

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    /// Lists a file, and gives it other content, a rank and tags.
    ///
    /// - Returns: its row.
    private func change() async throws -> Int64 {
        let number = try await replica.list(.file("file", size: 100), open: fixture.open)
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: true, caller: Self.caller)
            try $0.contents.endWriting(number)
            _ = try $0.items.setFavoriteRank(3, of: ItemIdentifier("file"))
            _ = try $0.items.setTagData([7], of: ItemIdentifier("file"))
        }
        return try #require(try replica.database.item(ofInode: number)).id
    }

    @Test("SEND-1: a rank and tags are sent although the content is in conflict")
    func inConflict() async throws {
        let row = try await change()
        _ = try await replica.ingest(open: fixture.open) {
            try $0.conflicts.splitConflict(of: row, with: .file("file", size: 70, version: "2"), label: "copy")
        }
        let item = try #require(try replica.database.item(row: row))
        #expect(item.identifier == ItemIdentifier("file") && item.changedFields == Self.marks)
        let sent = try #require(try replica.prepare(row, fields: Self.marks))
        #expect(sent.item.favoriteRank == 3 && sent.item.tagData == [7])
    }

    @Test("SEND-1: a rank and tags are sent with a file that the remote has removed and that is offered again")
    func removedThere() async throws {
        let row = try await change()
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.lose(row, replacedBy: nil) }
        let item = try #require(try replica.database.item(row: row))
        #expect(item.identifier == nil)
        let sent = try #require(try replica.prepare(row, fields: item.changedFields))
        #expect(sent.fields.isSuperset(of: Self.marks))
        #expect(sent.item.favoriteRank == 3 && sent.item.tagData == [7])
    }
}
