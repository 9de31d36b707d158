import FileProvider
import ReplicaTestSupport
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// What is noted of a change before it is sent.
@Suite struct SendingTests {
    private let fixture: ReplicaFixture
    private let replica: Replica
    private static let caller = LocalCaller(user: 7, group: 8)
    private static let earlier = FileTimestamp(seconds: 1_600_000_000)

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    /// Makes a file in the root.
    ///
    /// - Returns: its row.
    private func make(_ name: String) throws -> Int64 {
        let (made, _) = try replica.change(open: fixture.open) {
            try $0.names.createFile(name, in: .root, permissions: 0o640, caller: Self.caller, usualGroup: 9)
        }
        try made.content.close()
        return try #require(try replica.database.item(ofInode: made.inode.number)).id
    }

    /// The inode and the row of an item that was listed.
    private func place(of identifier: String) throws -> (number: InodeNumber, row: Int64) {
        let number = try #require(try replica.number(identifier))
        return (number, try #require(try replica.database.item(ofInode: number)).id)
    }

    private func empty(_ number: InodeNumber) throws {
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: true, caller: Self.caller)
            try $0.contents.endWriting(number)
        }
    }

    private func setDate(of number: InodeNumber) throws {
        let dated = LocalAttributes(modifiedAt: .at(Self.earlier))
        _ = try replica.change(open: fixture.open) {
            try $0.attributes.setAttributes(of: number, to: dated, caller: Self.caller)
        }
    }

    private func rename(
        _ name: String, in parent: InodeNumber = .root, to newName: String, into newParent: InodeNumber = .root
    ) throws {
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename(name, in: parent, to: newName, in: newParent, .replace)
        }
    }

    private func note(_ sent: SentChange) async throws -> Bool {
        try await replica.ingest(open: fixture.open) { try $0.answers.noteSent(sent) }.0
    }

    /// Records an answer that has the date that was sent.
    private func acknowledge(
        _ sent: SentChange, as item: FileProviderItem, datesMakeVersions: Bool = false
    ) async throws {
        var answer = item
        answer.contentModificationDate = sent.item.contentModificationDate
        _ = try await replica.ingest(open: fixture.open) { [answer] in
            try $0.answers.acknowledge(
                sent, as: answer, stillPending: [], shouldFetchContent: false, datesMakeVersions: datesMakeVersions)
        }
    }

    @Test("SEND-13: a new file that was renamed before it was sent is not sent under its old name")
    func renamedBeforeItIsSent() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        try await replica.list([], in: directory, open: fixture.open)
        let row = try make("old")
        func prepared() throws -> SentChange {
            try #require(try replica.prepare(row, fields: ItemFields.ofNewItem(.file)))
        }
        let first = try prepared()
        try rename("old", to: "new")
        #expect(try await !note(first))
        #expect(try replica.database.unanswered(ofItem: row).isEmpty)
        let second = try prepared()
        try rename("new", to: "new", into: directory)
        #expect(try await !note(second))
        // What was sent and never answered is looked for where it was sent to.
        let third = try prepared()
        #expect(try await note(third))
        #expect(try replica.database.unanswered(ofItem: row).count == 1)
    }

    @Test("PATH-3: the versions of what was removed here and is to be deleted are known")
    func versionsToBeDeleted() async throws {
        try await replica.list(
            [.file("a", id: "a", version: "1"), .file("b", id: "b", version: "2")], open: fixture.open)
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("a", in: .root) }
        let versions = ["1", "2", "3"].map { Array($0.utf8) }
        let items = replica.database.remoteItems
        #expect(try items.contentVersionsToBeDeleted(among: versions) == [versions[0]])
    }

    @Test(
        "SEND-13: what was sent, not answered and removed here is not shown when news bring it, and what has another date is",
        arguments: [true, false])
    func removedBeforeItIsAnswered(hasSameDate: Bool) async throws {
        try await replica.list([], open: fixture.open)
        let row = try make("file")
        let sent = try #require(try replica.prepare(row, fields: ItemFields.ofNewItem(.file)))
        #expect(try await note(sent))
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("file", in: .root) }
        var own = FileProviderItem.file("file", id: "there", size: 0)
        let time = try #require(sent.item.contentModificationDate)
        // A time that the remote has cut may also be that of another machine.
        own.contentModificationDate = hasSameDate ? time : FileTimestamp(seconds: time.seconds)
        try await replica.list([own], open: fixture.open)
        #expect(try replica.names() == (hasSameDate ? [] : ["file"]))
        // Another machine's is.
        try await replica.list([.file("file", id: "there", size: 7, version: "2")], open: fixture.open)
        #expect(try replica.names() == ["file"])
    }

    @Test(
        "SEND-13: content that was sent, not answered and removed here is not taken for newer content of another machine",
        arguments: ["file", "another identifier"])
    func removedBeforeItsContentIsAnswered(_ identifier: String) async throws {
        try await replica.list([.file("file", size: 100)], open: fixture.open)
        let (number, row) = try place(of: "file")
        try empty(number)
        let sent = try #require(try replica.prepare(row, fields: [.contents, .contentModificationDate]))
        #expect(try await note(sent))
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("file", in: .root) }
        // A folder knows a file by its inode, and replaces it.
        var own = FileProviderItem.file("file", id: identifier, size: 0, version: "2")
        own.contentModificationDate = sent.item.contentModificationDate
        try await replica.list([own], open: fixture.open)
        #expect(try replica.names() == [])
        // The content of another machine is newer: of a known item, the provider says so when it is asked to delete the known one.
        let newer = FileProviderItem.file("file", id: identifier, size: 7, version: "3")
        try await replica.list([newer], open: fixture.open)
        if identifier == "file" {
            #expect(try replica.names() == [])
            let deletion = try #require(try replica.database.pendingDeletions().first)
            #expect(deletion.version.contentVersion != newer.itemVersion.contentVersion)
            #expect(deletion.nextTry == nil)
            _ = try await replica.ingest(open: fixture.open) { try $0.conflicts.bringBack(deletion, as: newer) }
        }
        #expect(try replica.names() == ["file"])
    }

    @Test("TRASH-9: what was deleted from the trash here and restored elsewhere is shown, and nothing of it is deleted")
    func restoredBeforeItIsDeleted() async throws {
        try await replica.list([.directory("d"), .file("file")], open: fixture.open)
        for (name, kind, parent) in [
            ("inner", InodeKind.file, "d"), ("d", .directory, ItemIdentifier.trashContainer.rawValue),
            ("file", .file, ItemIdentifier.trashContainer.rawValue),
        ] {
            let version = ItemVersion(contentVersion: [1], metadataVersion: [1])
            try await replica.database.write { db in
                try db.queueDeletion(
                    ItemIdentifier(name + "-there"), kind, in: ItemIdentifier(parent == "d" ? "d-there" : parent),
                    named: name, version: version, at: .now)
            }
        }
        let tops = try replica.database.pendingDeletions().map { try replica.database.trashedTop(of: $0) }
        #expect(tops == [nil, "d-there", "file-there"])
        // Still in the trash, it stays deleted.
        var inTrash = FileProviderItem.file("file", id: "file-there")
        inTrash.parentItemIdentifier = .trashContainer
        let trashed = inTrash
        _ = try await replica.ingest(open: fixture.open) { try $0.changes.placeTrashed([trashed]) { _ in false } }
        #expect(try replica.database.pendingDeletions().count == 3)
        try await replica.list(
            [.directory("d"), .file("file"), .directory("back", id: "d-there"), .file("again", id: "file-there")],
            open: fixture.open)
        #expect(try replica.names().sorted() == ["again", "back", "d", "file"])
        #expect(try replica.database.pendingDeletions().isEmpty)
    }

    @Test(
        "SEND-18: a name that was sent and not answered is not taken for a remote change when the item has its old name again"
    )
    func renamedBackBeforeItIsAnswered() async throws {
        try await replica.list([.directory("d"), .file("old", id: "it", size: 100)], open: fixture.open)
        let directory = try #require(try replica.number("d"))
        try await replica.list([], in: directory, open: fixture.open)
        let row = try place(of: "it").row
        try rename("old", to: "new", into: directory)
        let sent = try #require(try replica.prepare(row, fields: [.filename, .parentItemIdentifier]))
        #expect(try await note(sent))
        // The daemon ends here; the remote has done it.
        try rename("new", in: directory, to: "old")
        var moved = FileProviderItem.file("new", id: "it", size: 100)
        moved.parentItemIdentifier = sent.item.parentItemIdentifier
        _ = try await replica.ingest(open: fixture.open) { [moved] in
            try $0.placement.place(moved, in: directory)
        }
        #expect(try replica.names().sorted() == ["d", "old"])
        let pending = try #require(try replica.prepare(row, fields: [.filename, .parentItemIdentifier]))
        #expect(pending.item.filename == "old")
        #expect(pending.fields == [.filename, .parentItemIdentifier])
        // What was answered leaves nothing to be sent.
        try await acknowledge(pending, as: .file("old", id: "it", size: 100))
        #expect(try replica.prepare(row, fields: [.filename, .parentItemIdentifier]) == nil)
    }

    @Test("SEND-18: a date that was sent and not answered is recognized when the content was changed since")
    func redatedBeforeItIsAnswered() async throws {
        try await replica.list([.file("file", size: 100)], open: fixture.open)
        let (number, row) = try place(of: "file")
        try setDate(of: number)
        let sent = try #require(try replica.prepare(row, fields: .contentModificationDate))
        #expect(try await note(sent))
        try empty(number)
        var redated = FileProviderItem.file("file", size: 100, version: "2")
        redated.contentModificationDate = Self.earlier
        let unanswered = try replica.database.unanswered(ofItem: row)
        #expect(unanswered.contains { $0.matches(redated) })
        redated.contentModificationDate = FileTimestamp(seconds: 1_700_000_000)
        #expect(!unanswered.contains { $0.matches(redated) })
    }

    @Test("what is sent again and again without an answer is recorded once, and beside it what was changed since")
    func sentAgain() async throws {
        try await replica.list([.file("file", size: 100)], open: fixture.open)
        let (number, row) = try place(of: "file")
        try empty(number)
        func send() async throws {
            let sent = try #require(try replica.prepare(row, fields: [.contents, .contentModificationDate]))
            #expect(try await note(sent))
        }
        for _ in 1...10 { try await send() }
        #expect(try replica.database.unanswered(ofItem: row).count == 1)
        try setDate(of: number)
        try await send()
        #expect(try replica.database.unanswered(ofItem: row).count == 2)
    }

    @Test("SEND-5: a date that is set while a file is open for writing hides no store through a mapping")
    func datedWhileOpen() async throws {
        let number = try await replica.list(.file("file", size: 0, version: "1"), open: fixture.open)
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: false, caller: Self.caller)
        }
        let contents = try ContentStore(in: replica.directory)
        // Until change times can tell writing from what was before.
        #expect(try await eventually { try contents.status(of: number).stamp != ContentStamp.unknown })
        let before = try contents.status(of: number).stamp
        try setDate(of: number)
        #expect(try contents.status(of: number).stamp == before)
        _ = try replica.change(open: fixture.open) { try $0.contents.endWriting(number) }
        #expect(try replica.database.inode(number)?.modifiedAt == Self.earlier)
    }

    @Test(
        "SEND-18: content written before its date is answered is based on the version with that date, and on no other content",
        arguments: [true, false], [Int64(100), 7])
    func writtenBeforeItsDateIsAnswered(isWrittenFirst: Bool, remoteSize: Int64) async throws {
        try await replica.list([.file("file", size: 100, version: "1")], open: fixture.open)
        let (number, row) = try place(of: "file")
        if isWrittenFirst { try empty(number) }
        try setDate(of: number)
        var prepared = try #require(try replica.prepare(row, fields: .contentModificationDate))
        prepared.fields = .contentModificationDate
        let sent = prepared
        #expect(try await note(sent))
        if !isWrittenFirst { try empty(number) }
        // Of another size it is what another client has written.
        try await acknowledge(sent, as: .file("file", size: remoteSize, version: "2"), datesMakeVersions: true)
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.changedFields.contains(.contents))
        let version = Array((remoteSize == 100 ? "2" : "1").utf8)
        #expect(item.base.version.contentVersion == version && item.inode.contentVersion == version)
    }

    @Test("CHANGE-4: a removal that is held is forgotten once a change of the item was answered")
    func answeredWhileItsRemovalIsHeld() async throws {
        try await replica.list([.file("file", size: 100), .file("other", size: 100)], open: fixture.open)
        let (number, row) = try place(of: "file")
        try setDate(of: number)
        let sent = try #require(try replica.prepare(row, fields: .contentModificationDate))
        _ = try await replica.ingest(open: fixture.open) {
            try $0.changes.noteAnchor(SyncAnchor("1"), holding: ["file", "other", "unknown"])
        }
        #expect(try replica.database.heldRemovals() == ["file", "other"])
        try await acknowledge(sent, as: .file("file", size: 100, version: "2"))
        #expect(try replica.database.heldRemovals() == ["other"])
        // A round that had begun before holds it no more, unless the provider has reported it again.
        for before in [["file", "other"], ["other"]] as [Set<ItemIdentifier>] {
            _ = try await replica.ingest(open: fixture.open) {
                try $0.changes.noteAnchor(SyncAnchor("2"), holding: ["file", "other"], heldBefore: before)
            }
            let held: Set<ItemIdentifier> = before.contains("file") ? ["other"] : ["file", "other"]
            #expect(try replica.database.heldRemovals() == held)
        }
    }

    @Test("SEND-18: content that is sent again, because it was written while it was sent, is sent with its date")
    func contentIsSentWithItsDate() async throws {
        try await replica.list([.file("file", size: 100)], open: fixture.open)
        let (number, row) = try place(of: "file")
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: true, caller: Self.caller)
        }
        // A copy of a file that is being written has no stamp.
        let sent = try #require(try replica.prepare(row, fields: [.contents, .contentModificationDate]))
        try await acknowledge(sent, as: .file("file", size: 0, version: "2"))
        #expect(try replica.database.item(ofInode: number)?.changedFields == .contents)
        let again = try #require(try replica.prepare(row, fields: .contents))
        #expect(again.fields == [.contents, .contentModificationDate])
    }

    @Test("SEND-18: an item that was renamed while its date was sent keeps its name when the date is answered")
    func renamedWhileItsDateIsSent() async throws {
        try await replica.list([.directory("home")], open: fixture.open)
        let (number, row) = try place(of: "home")
        try setDate(of: number)
        try rename("home", to: "moved")
        // The plan knew of the date alone.
        let sent = try #require(try replica.prepare(row, fields: .contentModificationDate))
        #expect(sent.fields == .contentModificationDate)
        try await acknowledge(sent, as: .directory("home"))
        #expect(try replica.names() == ["moved"])
        #expect(try replica.database.item(ofInode: number)?.changedFields.contains(.filename) == true)
    }

    @Test("SEND-1: a change that was made while an earlier one was sent is waited for also after the answer to that")
    func pendingSinceItWasSent() async throws {
        try await replica.list([.file("file", size: 100)], open: fixture.open)
        let (number, row) = try place(of: "file")
        try rename("file", to: "first")
        let sent = try #require(try replica.prepare(row, fields: .filename))
        try rename("first", to: "second")
        let start = FileTimestamp.now
        try await acknowledge(sent, as: .file("first", id: "file", size: 100))
        #expect(try replica.database.item(ofInode: number)?.changedFields.contains(.filename) == true)
        #expect(try replica.database.hasPending(since: start))
    }

    @Test("SEND-1: a rank, tags and a date of use that are set while earlier ones are sent are sent, too")
    func markedWhileMarksAreSent() async throws {
        try await replica.list([.file("file", size: 100)], open: fixture.open)
        let (number, row) = try place(of: "file")
        func mark(_ value: UInt8) throws {
            _ = try replica.change(open: fixture.open) {
                _ = try $0.items.setFavoriteRank(Int64(value), of: "file")
                _ = try $0.items.setTagData([value], of: "file")
                _ = try $0.items.setLastUsedDate(FileTimestamp(seconds: Int64(value)), of: "file")
            }
        }
        let marks: ItemFields = [.favoriteRank, .tagData, .lastUsedDate]
        try mark(1)
        let first = try #require(try replica.prepare(row, fields: marks))
        try mark(2)
        try await acknowledge(first, as: .file("file", size: 100))
        #expect(try replica.database.item(ofInode: number)?.changedFields == marks)
        let second = try #require(try replica.prepare(row, fields: marks))
        #expect(second.item.favoriteRank == 2 && second.item.tagData == [2])
        try await acknowledge(second, as: .file("file", size: 100))
        #expect(try replica.database.item(ofInode: number)?.changedFields.isEmpty == true)
    }

    @Test("CONFLICT-5: what is written here stays based on one content: its version, its size and its date")
    func basesAreOfOneContent() async throws {
        func listed(_ version: String, size: Int64) async throws {
            var item = FileProviderItem.file("file", size: size, version: version)
            item.contentModificationDate = FileTimestamp(seconds: size)
            try await replica.list([item], open: fixture.open)
        }
        func base() throws -> ItemBase {
            let number = try #require(try replica.number("file"))
            return try #require(try replica.database.item(ofInode: number)).base
        }
        try await listed("1", size: 99)
        let number = try #require(try replica.number("file"))
        try empty(number)
        let first = try base()
        try await listed("2", size: 5099)
        #expect(try base().size == 99)
        #expect(try base().modifiedAt == first.modifiedAt)
        #expect(try base().version.contentVersion == first.version.contentVersion)
    }
}
