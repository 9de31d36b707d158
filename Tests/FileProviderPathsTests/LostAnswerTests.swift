import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import FileProviderPaths

/// What was sent to remotes that know only paths, and had no answer, also after the daemon was killed.
@Suite struct LostAnswerTests {
    private let unreachable = FileProviderError(.serverUnreachable)

    /// Runs a test with a remote and a way to begin to look at it, again and again as after a SIGKILL.
    private func run(
        _ habits: MemoryPathRemote.Habits = MemoryPathRemote.Habits(),
        _ test: (MemoryPathRemote, () -> ProviderSession) async throws -> Void
    ) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let remote = MemoryPathRemote(habits: habits)
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "memory:"), stateDirectory: scratch.path)
        try await test(remote) {
            ProviderSession(provider: PathAddressedProvider(remote: remote, manager: manager), manager: manager)
        }
    }

    @Test("PATH-9: content that was sent with a renaming, and had no answer, stays where it was sent")
    func renamedAndWritten() async throws {
        try await run { remote, start async throws in
            let session = start()
            remote.change { $0.make(path("old"), kind: .file, [1]) }
            let base = try await session.find("old")
            var item = base
            item.filename = "new"
            remote.duringWrite.withLock { $0 = { throw unreachable } }
            await #expect(throws: FileProviderError.self) {
                try await session.modify(item, .filename, content: [2, 2])
            }
            remote.duringWrite.withLock { $0 = nil }
            #expect(remote.names(in: .root) == ["new"])
            // Renamed once more before it is known.
            item.filename = "newest"
            let stored = try await session.modify(item, .filename, content: [2, 2])
            #expect(stored.item.itemIdentifier == base.itemIdentifier && stored.item.documentSize == 2)
            #expect(remote.names(in: .root) == ["newest"])
        }
    }

    @Test("PATH-9: an item that was moved is followed until its change succeeds, however long the remote is away")
    func movedLongAgo() async throws {
        try await run { remote, start async throws in
            let session = start()
            remote.change { $0.make(path("old"), kind: .file, [1]) }
            let item = try await session.find("old").itemIdentifier
            let paths = PathMap(manager: session.manager, ledger: OperationLedger(), patience: .zero)
            func place(_ name: String) -> PathMap.Place { PathMap.Place(directory: .rootContainer, name: name) }
            try await paths.moving(item, tag: [], from: path("old"), at: place("old"), to: place("new")) {}
            #expect(paths.path(of: item) == path("new"))
            // What only a listing has shown is forgotten.
            paths.noteSeen(item, from: path("old"), at: place("shown"))
            #expect(paths.path(of: item) == path("old"))
        }
    }

    @Test("PATH-9: what the remote has refused is all of it undone")
    func refusedAfterRenaming() async throws {
        try await run { remote, start async throws in
            let session = start()
            remote.change { $0.make(path("old"), kind: .file, [1]) }
            let item = try await session.find("old").renamed("new")
            remote.duringWrite.withLock { $0 = { throw FileProviderError(.insufficientQuota) } }
            await #expect(throws: FileProviderError.self) {
                try await session.modify(item, .filename, content: [2, 2])
            }
            #expect(remote.names(in: .root) == ["old"])
        }
    }

    @Test(
        "PATH-10: a renaming that had no answer is followed after a SIGKILL, too", arguments: ["lost", "not recorded"])
    func renamedBeforeAKill(_ how: String) async throws {
        try await run { remote, start async throws in
            remote.change {
                $0.make(path("one"), kind: .file, [1])
                $0.make(path("two"), kind: .file, [2])
            }
            let session = start()
            func rename(_ name: String, to newName: String) async throws -> FileProviderItem {
                let base = try await session.find(name)
                let item = base.renamed(newName)
                if how == "lost" { remote.duringMove.withLock { $0 = { throw unreachable } } }
                let change = try? await session.provider.modifyItem(
                    item, baseVersion: base.itemVersion, changedFields: .filename, contents: nil, options: [],
                    request: FileProviderRequest(reason: .synchronization))
                #expect((change == nil) == (how == "lost"))
                remote.duringMove.withLock { $0 = nil }
                return base
            }
            var one = try await rename("one", to: "uno")
            let two = try await rename("two", to: "due")
            #expect(remote.names(in: .root) == ["due", "uno"])

            let again = start()
            try await again.delete(two)
            #expect(remote.names(in: .root) == ["uno"])
            one.filename = "eins"
            let moved = try await again.modify(one, .filename)
            #expect(moved.item.itemIdentifier == one.itemIdentifier)
            #expect(remote.names(in: .root) == ["eins"])
            // Nothing is left to be followed.
            let last = start()
            #expect(try await last.list().map(\.itemIdentifier) == [one.itemIdentifier])
        }
    }

    /// Renames a file and sends content with it: the renaming is acknowledged, and the content has no answer.
    ///
    /// - Returns: the file before, and as it was sent.
    private func renamingWithoutAnswer(
        on remote: MemoryPathRemote, _ session: ProviderSession
    ) async throws -> (base: FileProviderItem, sent: FileProviderItem) {
        remote.change { $0.make(path("old"), kind: .file, [1]) }
        let base = try await session.find("old")
        let sent = base.renamed("new")
        remote.duringWrite.withLock { $0 = { throw unreachable } }
        await #expect(throws: FileProviderError.self) {
            _ = try await session.modify(sent, .filename, content: [2, 2])
        }
        remote.duringWrite.withLock { $0 = nil }
        return (base, sent)
    }

    @Test("PATH-10: content that was sent with a renaming, and had no answer, is followed after a SIGKILL, too")
    func renamedAndWrittenBeforeAKill() async throws {
        try await run { remote, start async throws in
            let (base, renamed) = try await renamingWithoutAnswer(on: remote, start())
            var item = renamed
            #expect(remote.names(in: .root) == ["new"])

            // A deletion finds it, and says what is there: by that the system knows what it has sent.
            let again = start()
            let rejection = await #expect(throws: FileProviderError.self) { try await again.delete(base) }
            #expect(rejection?.code == .deletionRejected && rejection?.item?.itemIdentifier == base.itemIdentifier)
            #expect(rejection?.item?.filename == "new" && rejection?.item?.documentSize == 2)
            // So does a renaming.
            let last = start()
            item.filename = "newest"
            let stored = try await last.modify(item, .filename, content: [2, 2])
            #expect(stored.item.itemIdentifier == base.itemIdentifier)
            #expect(remote.names(in: .root) == ["newest"])
        }
    }

    @Test("PATH-10: an acknowledged renaming does not give an item the place of another one that is known there")
    func renamedToWhatIsOfAnother() async throws {
        try await run { remote, start async throws in
            let session = start()
            let (base, _) = try await renamingWithoutAnswer(on: remote, session)
            remote.change { $0.delete(path("new")) }
            // It was removed on the remote, and what was made there since is known.
            remote.change { $0.make(path("new"), kind: .file, [3]) }
            session.manager.learn([
                FileProviderItem(
                    itemIdentifier: "other", parentItemIdentifier: .rootContainer, filename: "new", kind: .file,
                    itemVersion: base.itemVersion)
            ])
            let again = start()
            try await again.delete(base)
            #expect(remote.names(in: .root) == ["new"])
        }
    }

    @Test("PATH-10: content that had no answer is known again after a SIGKILL, and under another name")
    func contents() throws {
        let store = ReportingStore.temporary
        let date = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 5)
        let first = SentContents(in: store)
        first.note("name", .tag([1, 0, 255]), date: date, permissions: 0o640)
        first.note("answered", .tag([2]), date: date)
        first.forget("answered", .tag([2]))
        first.carry("name", to: "e\u{301}")
        let second = SentContents(in: store)
        #expect(second.date("name", tag: [1, 0, 255]) == date)
        #expect(second.date("e\u{301}", tag: [1, 0, 255]) == date)
        #expect(second.permissions("e\u{301}", tag: [1, 0, 255]) == 0o640)
        #expect(second.permissions("name", tag: [2]) == nil)
        #expect(second.date("\u{e9}", tag: [1, 0, 255]) == nil)
        #expect(second.date("answered", tag: [2]) == nil)
    }

    @Test("DAV-16: content whose date was set since does not get the date that it was sent with, also after a SIGKILL")
    func datesSetSince() throws {
        let store = ReportingStore.temporary
        let date = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 5)
        let first = SentContents(in: store)
        for place in ["acknowledged", "unanswered", "other"] { first.note(place, .tag([1]), date: date) }
        first.acknowledge("acknowledged", .tag([1]))
        for place in ["acknowledged", "unanswered"] { first.forgetAll(place) }
        let second = SentContents(in: store)
        for sent in [first, second] {
            #expect(sent.date("acknowledged", tag: [1]) == nil && sent.date("unanswered", tag: [1]) == nil)
            #expect(sent.date("other", tag: [1]) == date)
        }
    }

    @Test("DAV-16: what has a date on the remote keeps it, and what may still arrive there is recognized")
    func datedOnTheRemote() throws {
        let sent = SentContents(in: .temporary)
        let date = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 5)
        sent.note("name", .tag([1]), date: date)
        sent.note("name", .digest([2]), size: 3, date: date)
        sent.noteDated("name", tag: [1])
        #expect(sent.date("name", tag: [1]) == nil)
        #expect(sent.candidates("name", size: 3, tag: [1]).isEmpty)
        #expect(sent.candidates("name", size: 3, tag: [9]).map(\.date) == [date])
    }

    @Test("DAV-16: the last tags of other contents are remembered, and not all that a server has ever given")
    func strangers() {
        let sent = SentContents(in: .temporary)
        sent.note("name", .digest([2]), size: 3, date: FileTimestamp(seconds: 1), acknowledgedTag: [7])
        for number: UInt8 in 100..<250 { sent.settle("name", tag: [number], as: nil) }
        #expect(sent.candidates("name", size: 3, tag: [249]).isEmpty)
        #expect(sent.candidates("name", size: 3, tag: [7]).isEmpty)
        #expect(sent.candidates("name", size: 3, tag: [100]).count == 1)
    }

    @Test("DAV-29: content that was acknowledged when it was sent again is known by its other tag after a SIGKILL, too")
    func acknowledgedOtherwise() throws {
        let store = ReportingStore.temporary
        let date = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 5)
        let first = SentContents(in: store)
        first.note("small", .digest([2]), size: 3, date: date)
        first.acknowledge("small", .digest([2]))
        first.note("small", .digest([2]), size: 3, date: date, acknowledgedTag: [7])
        first.note("large", .tag([8]), date: nil, acknowledgedTag: [7])
        first.close()
        let second = SentContents(in: store)
        #expect(second.candidates("small", size: 3, tag: [7]).isEmpty)
        // A date on the remote says nothing against it.
        for place in ["small", "large"] { second.noteDated(place, tag: [8]) }
        let found = second.candidates("small", size: 3, tag: [8])
        #expect(found.map(\.acknowledgedTag) == [[7]] && found.map(\.date) == [nil])
        #expect(second.acknowledgedTag("large", tag: [8]) == [7] && second.date("large", tag: [8]) == nil)
        #expect(second.acknowledgedTag("large", tag: [9]) == nil)
    }

    @Test("PATH-10: content that had no answer is not taken for its twin elsewhere, and is known after a move")
    func places() throws {
        let sent = SentContents(in: .temporary)
        let date = FileTimestamp(seconds: 1_700_000_000, nanoseconds: 5)
        sent.note("one/name", .tag([1]), date: date)
        sent.note("one/deep/name", .digest([2]), size: 3, date: date)
        for other in ["name", "two/name", "one/names", "one"] {
            #expect(sent.date(other, tag: [1]) == nil)
            #expect(sent.candidates(other, size: 3, tag: [1]).isEmpty)
        }
        sent.carry("on", to: "wrong")
        sent.carry("one", to: "two/three")
        #expect(sent.date("wrong/name", tag: [1]) == nil && sent.date("wronge/name", tag: [1]) == nil)
        for top in ["one", "two/three"] {
            #expect(sent.date("\(top)/name", tag: [1]) == date)
            #expect(sent.candidates("\(top)/deep/name", size: 3, tag: [1]).map(\.date) == [date])
        }
    }

    @Test("PATH-10: the record of an acknowledged upload outlives a SIGKILL directly after it, and no orderly end")
    func acknowledged() throws {
        let store = ReportingStore.temporary
        let date = FileTimestamp(seconds: 1_700_000_000)
        let mark = SentContents.Mark.seconds(5)
        let first = SentContents(in: store)
        for name in ["once", "again"] {
            first.note(name, mark, size: 3, date: date)
            first.acknowledge(name, mark)
            #expect(first.candidates(name, size: 3, tag: [1]).isEmpty)
        }
        #expect(SentContents(in: store).candidates("once", size: 3, tag: [1]).map(\.date) == [date])
        // Sent once more, and not acknowledged this time.
        first.note("again", mark, size: 3, date: date)
        first.close()
        let next = SentContents(in: store)
        #expect(next.candidates("once", size: 3, tag: [1]).isEmpty)
        #expect(next.candidates("again", size: 3, tag: [1]).count == 1)
    }

    @Test("PATH-10: records outlive the process, and one that cannot be read is reported and left in the store")
    func records() throws {
        let memory = InMemoryProviderStore()
        let reports = Mutex<[String]>([])
        let store = ReportingStore(memory) { text in reports.withLock { $0.append(text) } }
        let first = SurvivingRecords<Int>("numbers", in: store)
        for round in 0..<1000 { first.set([UInt8(round % 3)], round) }
        first.remove([0])
        try first.save([0xFF, 0], 5, .synced)
        try memory.write(.committed) { try $0.setEncodedRecord(Array("{\"".utf8), at: "broken", in: "numbers") }
        let second = SurvivingRecords<Int>("numbers", in: store)
        #expect(second.all.map(\.record).sorted() == [5, 997, 998])
        #expect(reports.withLock { $0.count == 1 && $0[0].contains("'broken' of 'numbers'") })
        #expect(try memory.read { try $0.encodedRecord(at: "broken", in: "numbers") } == Array("{\"".utf8))
        second.set([7], 7)
        #expect(SurvivingRecords<Int>("numbers", in: store)[[7]] == 7)
        #expect(SurvivingRecords<Int>("others", in: store).all.isEmpty)
    }

    @Test("a record that must be stored first is not kept when the store fails; one that is stored afterwards is")
    func failingStore() throws {
        struct FullStore: ProviderStore {
            func read<Value>(_ body: (any ProviderStoreSnapshot) throws -> Value) throws -> Value {
                try InMemoryProviderStore().read(body)
            }

            func write<Value>(
                _ durability: ProviderStoreDurability, _ body: (any ProviderStoreTransaction) throws -> Value
            ) throws -> Value { throw FileProviderError.posix(.noSpace, "full") }
        }
        let reports = Mutex<[String]>([])
        let store = ReportingStore(FullStore()) { text in reports.withLock { $0.append(text) } }
        let records = SurvivingRecords<Int>("numbers", in: store)
        #expect(throws: FileProviderError.self) { try records.save([1], 1) }
        #expect(records[[1]] == nil && reports.withLock { $0 } == [])
        records.set([2], 2)
        #expect(records[[2]] == 2 && reports.withLock { $0 } == ["full"])
    }

    @Test("PATH-4: what was made here while its directory was listed is not taken for renamed to what looks like it")
    func madeDuringAListing() async throws {
        try await run(.init(hasTagsOfContent: true)) { remote, start async throws in
            let session = start()
            try await session.list()
            remote.change { $0.make(path("alike"), kind: .file, [7]) }
            let made = Mutex<ItemIdentifier?>(nil)
            remote.duringListing.withLock { hook in
                hook = {
                    let stored = try await session.create(ProviderSession.template("made"), content: [7])
                    made.withLock { $0 = stored.item.itemIdentifier }
                }
            }
            let enumerator = try session.provider.enumerator(
                for: .rootContainer, request: FileProviderRequest(reason: .synchronization))
            let items = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10).items
            let alike = try #require(items.first { $0.filename == "alike" })
            #expect(made.withLock { $0 } != nil && alike.itemIdentifier != made.withLock { $0 })
        }
    }

    @Test("PATH-4: what is in another part of a listing is not gone")
    func inAnotherPart() async throws {
        try await run(.init(hasTagsOfContent: true, part: 2)) { remote, start async throws in
            let session = start()
            for name in ["b", "c", "d"] { remote.change { $0.make(path(name), kind: .file, Array(name.utf8)) } }
            let before = try await session.list()
            remote.change { $0.copy(path("d"), to: path("a")) }
            let after = try await session.list()
            #expect(after.map(\.filename).sorted() == ["a", "b", "c", "d"])
            for item in before {
                #expect(after.contains { $0.filename == item.filename && $0.itemIdentifier == item.itemIdentifier })
            }
        }
    }
}
