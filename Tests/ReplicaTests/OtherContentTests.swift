import FileProvider
import ReplicaTestSupport
import Testing

@testable import Replica

/// The remote has other bytes than those that were sent to it: it made them itself, or another program wrote them.
@Suite struct OtherContentTests {
    private static let caller = LocalCaller(user: 0, group: 0)

    /// Empties a file of 100 bytes, of which the remote had version 1, and records the answer that the remote has 70 bytes.
    ///
    /// - Parameters:
    ///   - version: of those bytes.
    ///   - isWrittenAgain: whether the file was written again while it was sent.
    ///   - change: what else is changed here meanwhile.
    /// - Returns: the item after that, and the inode that it had before.
    private func send(
        answering version: String, isWrittenAgain: Bool = false, _ fixture: ReplicaFixture, _ replica: Replica,
        meanwhile change: (LocalChanges, InodeNumber) throws -> Void = { _, _ in }
    ) async throws -> (item: ItemRecord, number: InodeNumber) {
        let number = try await replica.list(.file("file", size: 100), open: fixture.open)
        let row = try #require(try replica.database.item(ofInode: number)).id
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: true, caller: Self.caller)
            try $0.contents.endWriting(number)
        }
        var prepared = try #require(try replica.prepare(row, fields: [.contents, .contentModificationDate]))
        // Content whose stamp is not known counts as written since.
        if !isWrittenAgain { prepared.contentStamp = try replica.contentStatus(of: number).stamp }
        let sent = prepared
        _ = try replica.change(open: fixture.open) { try change($0, number) }
        var answer = FileProviderItem.file("file", size: 70, version: version)
        answer.contentModificationDate = sent.item.contentModificationDate
        _ = try await replica.ingest(open: fixture.open) { [answer] in
            try $0.answers.acknowledge(sent, as: answer, stillPending: [], shouldFetchContent: true)
        }
        return (try #require(try replica.database.item(ItemIdentifier("file"))), number)
    }

    @Test(
        "SEND-15: the remote's bytes are shown, whatever else is changed here meanwhile, and also where it had them before",
        arguments: [false, true], ["1", "2"])
    func isShown(isChangedMeanwhile: Bool, version: String) async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let (item, _) = try await send(answering: version, fixture, replica) { changes, number in
            guard isChangedMeanwhile else { return }
            let attributes = LocalAttributes(permissions: 0o600)
            _ = try changes.attributes.setAttributes(of: number, to: attributes, caller: Self.caller)
        }
        #expect(item.inode.content == .dataless && item.inode.size == 70)
        #expect(item.inode.contentVersion == Array(version.utf8))
        #expect(item.base.version.contentVersion == Array(version.utf8))
        #expect(!item.changedFields.contains(.contents))
        #expect(item.changedFields.contains(.permissions) == isChangedMeanwhile)
    }

    @Test("CONFLICT-1: what is written while other bytes come to be on the remote is not based on those")
    func isNoBase() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let (item, number) = try await send(answering: "2", isWrittenAgain: true, fixture, replica)
        #expect(item.changedFields.contains(.contents))
        #expect(item.inode.number == number && item.inode.size == 0)
        #expect(item.base.version.contentVersion == Array("1".utf8) && item.base.size == 100)
    }

    @Test("SEND-15: other bytes under one of two names leave the content of the other name, which is still to be sent")
    func ofOneOfTwoNames() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let (item, number) = try await send(answering: "2", fixture, replica) { changes, number in
            _ = try changes.names.link(number, as: "other", in: .root)
        }
        #expect(item.inode.number != number && item.inode.content == .dataless && item.inode.size == 70)
        let other = try #require(try replica.database.item(ofInode: number))
        #expect(other.name == "other" && other.changedFields.contains(.contents))
        #expect(other.inode.content == .materialized && other.inode.linkCount == 1)
    }

    @Test("SEND-15: another program's content that comes with the answer to a renaming is shown under one of two names")
    func ofOneOfTwoNamesThatIsRenamed() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let number = try await replica.list(.file("file", size: 0), open: fixture.open)
        let row = try #require(try replica.database.item(ofInode: number)).id
        _ = try replica.change(open: fixture.open) {
            _ = try $0.names.link(number, as: "other", in: .root)
            try $0.names.rename("file", in: .root, to: "new", in: .root, .replace)
        }
        let sent = try #require(try replica.prepare(row, fields: .filename))
        _ = try await replica.ingest(open: fixture.open) {
            try $0.answers.acknowledge(
                sent, as: .file("new", id: "file", size: 70, version: "2"), stillPending: [], shouldFetchContent: false)
        }
        let item = try #require(try replica.database.item(ItemIdentifier("file")))
        #expect(item.name == "new" && item.changedFields.isEmpty)
        #expect(item.inode.number != number && item.inode.content == .dataless && item.inode.size == 70)
        let other = try #require(try replica.database.item(ofInode: number))
        #expect(other.name == "other" && other.inode.size == 0 && other.inode.linkCount == 1)
    }

    @Test("SEND-15: other content that a reimport finds is shown under one of two names")
    func ofOneOfTwoNamesThatIsOffered() async throws {
        let (fixture, replica) = try ReplicaFixture.opened()
        let number = try await replica.list(.file("file", size: 0), open: fixture.open)
        let row = try #require(try replica.database.item(ofInode: number)).id
        _ = try replica.change(open: fixture.open) { try $0.names.link(number, as: "other", in: .root) }
        let link = try #require(try replica.database.pendingItems(after: row, limit: 1).first).item.id
        let made = try #require(try replica.prepare(link, fields: ItemFields.ofNewItem(.file)))
        var answer = FileProviderItem.file("other", size: 0)
        answer.contentModificationDate = made.item.contentModificationDate
        _ = try await replica.ingest(open: fixture.open) { [answer] in
            try $0.answers.acknowledge(made, as: answer, stillPending: [], shouldFetchContent: false)
        }
        try await replica.beginReimport(below: .root)
        let sent = try #require(try replica.prepareOffer(row))
        let offer = try #require(sent.offer)
        _ = try await replica.ingest(open: fixture.open) {
            try $0.offers.acknowledgeOffer(
                sent, offer, as: .file("file", size: 70, version: "2"), stillPending: [], isSameContent: false)
        }
        let item = try #require(try replica.database.item(ItemIdentifier("file")))
        #expect(item.inode.number != number && item.inode.content == .dataless && item.inode.size == 70)
        #expect(try replica.database.inode(number)?.linkCount == 1)
    }
}
