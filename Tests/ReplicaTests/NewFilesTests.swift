import FileProvider
import Foundation
import ReplicaTestSupport
import Syscalls
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// Files that were created and are not in the database yet: they are visible, and a crash does not lose them.
@Suite struct NewFilesTests {
    let fixture: ReplicaFixture
    let caller = LocalCaller(user: 7, group: 8)

    init() throws {
        fixture = try ReplicaFixture()
    }

    /// A replica whose root is listed, with a directory `d`, and that has numbers in reserve.
    func prepared() async throws -> Replica {
        let replica = try fixture.replica()
        try await replica.list([.directory("d")], open: fixture.open)
        #expect(try make("first", in: replica) == nil)
        try inTransaction("first", in: replica)
        return replica
    }

    /// - Returns: nil when it was not made ahead of the database.
    func make(
        _ name: String, in replica: Replica, directory: InodeNumber = .root, content: String = ""
    ) throws -> InodeRecord? {
        guard
            let made = replica.createAhead(name, in: directory, permissions: 0o640, caller: caller, usualGroup: 9)
        else { return nil }
        defer { try? made.content.close() }
        try made.content.writeAll(Array(content.utf8).span.bytes, at: 0)
        return made.inode
    }

    @discardableResult
    private func inTransaction(_ name: String, in replica: Replica) throws -> InodeRecord {
        let (made, _) = try replica.change(open: fixture.open) {
            try $0.names.createFile(name, in: .root, permissions: 0o640, caller: caller, usualGroup: 9)
        }
        try made.content.close()
        return made.inode
    }

    /// What the database itself holds, without those that wait.
    func isWritten(_ name: String, in replica: Replica) throws -> Bool {
        try replica.database.queryWithoutNewFiles { try $0.hasItem(named: name, in: .root) }
    }

    /// Runs a body while a transaction runs that changes no names.
    func whileAnotherWrites<Value: Sendable>(
        to replica: Replica, _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        let value = Mutex<Value?>(nil)
        _ = try await replica.ingest(open: fixture.open, changingNames: false) { _ in
            let new = try body()
            value.withLock { $0 = new }
        }
        return try #require(value.withLock { $0 })
    }

    /// What a crash leaves on the disk while no transaction has written the new files, in a folder of its own.
    func crash(
        _ replica: Replica, afterMaking make: @escaping @Sendable () throws -> Void
    ) async throws -> ReplicaFixture {
        let image = try ReplicaFixture()
        try await whileAnotherWrites(to: replica) {
            try make()
            try DiskImage.copy(replica.directory, to: image.directory)
        }
        return image
    }

    private static func log(in directory: FilePath) -> String {
        directory.appending(ReplicaDatabase.fileName).string + "-new"
    }

    @Test("WRITE-8: a file is created before the database has it, and is visible everywhere")
    func creationIsVisibleBeforeItIsWritten() async throws {
        let replica = try await prepared()
        let before = try #require(try replica.database.inode(.root))
        // While another transaction runs, none writes it.
        let made = try await whileAnotherWrites(to: replica) {
            let made = try #require(try make("a", in: replica))
            #expect(try !isWritten("a", in: replica))
            // Of the directory the new time is shown without writing anything.
            #expect(try #require(try replica.database.inode(.root)).modifiedAt > before.modifiedAt)
            #expect(try !isWritten("a", in: replica))
            return made
        }
        #expect(made.number.rawValue > 1)
        let found = try #require(try replica.database.lookup("a", in: .root).inode)
        #expect(found == made)
        #expect(try isWritten("a", in: replica))
        #expect(found.permissions == 0o640 && found.owner == 7 && found.group == 8)
        let item = try #require(try replica.database.item(ofInode: made.number))
        #expect(item.changedFields == .ofNewItem(.file))
        #expect(try replica.names() == ["a", "d", "first"])
    }

    @Test("WRITE-8: a read has them written first: a listing, a read by number, the pending items", arguments: 0..<3)
    func readersSeeThem(way: Int) async throws {
        let replica = try await prepared()
        let made = try #require(try make("a", in: replica))
        switch way {
        case 0: #expect(try replica.names().contains("a"))
        case 1: #expect(try replica.database.inode(made.number) == made)
        default: #expect(try replica.database.item(named: "a", in: .root)?.inode == made)
        }
    }

    @Test("WRITE-8: a crash before they are written loses none, and their bytes are there") func survivesACrash()
        async throws
    {
        let running = try await prepared()
        let image = try await crash(running) {
            for number in 0..<50 { _ = try #require(try make("f\(number)", in: running, content: "bytes \(number)")) }
            #expect(try !isWritten("f0", in: running))
        }
        let replica = try image.replica()
        for number in 0..<50 {
            let inode = try #require(try replica.database.lookup("f\(number)", in: .root).inode)
            #expect(inode.size == Int64("bytes \(number)".utf8.count))
        }
        #expect(image.recoveredFiles.isEmpty)
        #expect(replica.findings.isEmpty)
    }

    @Test("WRITE-8: what was written and removed since does not come back after a crash") func isNotMadeTwice()
        async throws
    {
        do {
            let replica = try await prepared()
            _ = try #require(try make("a", in: replica))
            _ = try #require(try make("b", in: replica))
            _ = try replica.change(open: fixture.open) { try $0.names.unlink("a", in: .root) }
            _ = try #require(try make("c", in: replica))
        }
        let replica = try fixture.replica()
        #expect(try replica.names() == ["b", "c", "d", "first"])
    }

    @Test("WRITE-8: a record that was cut off is as if it had not been begun") func tornRecords() async throws {
        let first = try await prepared()
        let torn = try await crash(first) {
            _ = try #require(try make("a", in: first))
            _ = try #require(try make("b", in: first))
        }
        let file = try FileDescriptor.open(FilePath(Self.log(in: torn.directory)), .readWrite)
        try file.setLength(FileStatus(of: file).size - 1)
        try file.close()
        let second = try torn.replica()
        #expect(try second.names() == ["a", "d", "first"])
        // What is left of it does not hide what is made since.
        #expect(try make("w", in: second) == nil)
        try inTransaction("w", in: second)
        let image = try await crash(second) { _ = try #require(try make("e", in: second)) }
        let replica = try image.replica()
        #expect(try replica.names() == ["a", "d", "e", "first", "w"])
        // The file that has no row is empty, and removed.
        #expect(image.recoveredFiles.isEmpty)
        // And it goes on behind.
        _ = try make("x", in: replica)
        try inTransaction("y", in: replica)
        _ = try #require(try make("z", in: replica))
        #expect(try replica.names().contains("z"))
    }

    @Test("WRITE-8: the log of another database is not read") func anotherDatabasesLog() async throws {
        let running = try await prepared()
        let image = try await crash(running) { _ = try #require(try make("a", in: running)) }
        let log = Self.log(in: image.directory)
        var bytes = try Data(contentsOf: URL(fileURLWithPath: log))
        bytes[25] ^= 1
        try bytes.write(to: URL(fileURLWithPath: log))
        let replica = try image.replica()
        #expect(try replica.names() == ["d", "first"])
        #expect(image.recoveredFiles.isEmpty)
    }

    @Test("reserved numbers are given to no other inode") func numbersAreUnique() async throws {
        let replica = try await prepared()
        var numbers: Set<InodeNumber> = []
        for number in 0..<3000 {
            let name = "f\(number)"
            let inode = try make(name, in: replica)
            let made = try inode ?? inTransaction(name, in: replica)
            #expect(numbers.insert(made.number).inserted)
            if number % 5 == 0 { #expect(numbers.insert(try inTransaction("t\(number)", in: replica).number).inserted) }
        }
        #expect(try replica.database.items(in: .root).count == 3000 + 600 + 2)
    }

    @Test("a name that is taken, or in a directory that is not listed or gone, is left to the transaction")
    func specialCreationsRunInATransaction() async throws {
        let replica = try await prepared()
        let directory = try #require(try replica.number("d"))
        #expect(try make("first", in: replica) == nil)
        #expect(try make("x", in: replica, directory: directory) == nil)
        #expect(try make(String(repeating: "n", count: 256), in: replica) == nil)
        #expect(try make("x", in: replica, directory: InodeNumber(rawValue: 999)) == nil)
        _ = try #require(try make("a", in: replica))
        #expect(try make("a", in: replica) == nil)
        #expect(fixture.contentFiles.count == 2)
    }

    @Test("the remote removes the directory in which files were just made: none is lost")
    func theDirectoryGoes() async throws {
        let replica = try await prepared()
        let directory = try #require(try replica.number("d"))
        try await replica.list([], in: directory, open: fixture.open)
        _ = try #require(try make("x", in: replica, directory: directory, content: "mine"))
        try await replica.change(deleted: [ItemIdentifier("d")], open: fixture.open)
        // It stays, because there is work in it that only this machine has.
        #expect(try replica.names().contains("d"))
        #expect(try replica.names(in: directory) == ["x"])
    }

    @Test("while a transaction may change names nothing is made ahead of it") func transactionsComeInBetween()
        async throws
    {
        let replica = try await prepared()
        _ = try await replica.ingest(open: fixture.open) { _ in
            let made = replica.createAhead(
                "x", in: .root, permissions: 0o600, caller: LocalCaller(user: 7, group: 8), usualGroup: 9)
            #expect(made == nil)
        }
        // One that changes no names does not stand in the way.
        _ = try await replica.ingest(open: fixture.open, changingNames: false) { _ in
            let made = replica.createAhead(
                "x", in: .root, permissions: 0o600, caller: LocalCaller(user: 7, group: 8), usualGroup: 9)
            #expect(made != nil)
            try made?.content.close()
        }
        #expect(try replica.names().contains("x"))
    }

    @Test("a transaction that turns out to change names has them written within, and fails without losing them")
    func claimingWithin() async throws {
        struct Failure: Error {}
        let replica = try await prepared()
        let fixture = fixture
        await #expect(throws: Failure.self) {
            _ = try await replica.ingest(open: fixture.open, changingNames: false) { ingestion in
                let made = replica.createAhead(
                    "x", in: .root, permissions: 0o600, caller: LocalCaller(user: 7, group: 8), usualGroup: 9)
                try made?.content.close()
                try ingestion.placement.willChangeNames()
                #expect(try ingestion.placement.db.hasItem(named: "x", in: .root))
                throw Failure()
            }
        }
        #expect(try replica.names().contains("x"))
    }

    @Test("a transaction that fails takes nothing of theirs with it") func failingTransactions() async throws {
        struct Failure: Error {}
        let replica = try await prepared()
        _ = try #require(try make("a", in: replica))
        #expect(throws: Failure.self) {
            _ = try replica.change(open: fixture.open) { changes in
                try changes.names.unlink("first", in: .root)
                throw Failure()
            }
        }
        #expect(try isWritten("a", in: replica))
        #expect(try isWritten("first", in: replica))
    }

    @Test("an orderly end leaves nothing to be written") func closing() async throws {
        do {
            let replica = try await prepared()
            _ = try #require(try make("a", in: replica))
            try replica.close()
        }
        let replica = try fixture.replica()
        #expect(try isWritten("a", in: replica))
    }

    @Test("WRITE-8: directories that get files by turns have their times, and show them") func byTurns() async throws {
        let replica = try await prepared()
        let directory = try #require(try replica.number("d"))
        try await replica.list([], in: directory, open: fixture.open)
        for number in 0..<20 {
            let parent = number % 2 == 0 ? directory : InodeNumber.root
            let made = try #require(try make("f\(number)", in: replica, directory: parent))
            #expect(try replica.database.inode(parent)?.modifiedAt == made.modifiedAt)
            guard parent == directory else { continue }
            #expect(try replica.database.lookup("d", in: .root).inode?.modifiedAt == made.modifiedAt)
        }
        try replica.database.commitAll()
        let (root, inner) = try (replica.database.inode(.root), replica.database.inode(directory))
        #expect(try #require(root).modifiedAt > #require(inner).modifiedAt)
        #expect(try replica.names(in: directory).count == 10)
        #expect(try replica.names().count == 12)
    }

    @Test("WRITE-8: a directory that gets a file while the answer about its date is recorded keeps the later one")
    func laterThanAnAnswer() async throws {
        let replica = try await prepared()
        let directory = try #require(try replica.number("d"))
        try await replica.list([], in: directory, open: fixture.open)
        #expect(try make("before", in: replica, directory: directory) != nil)
        let row = try #require(try replica.database.item(ofInode: directory)).id
        let sent = try #require(try replica.prepare(row, fields: .contentModificationDate))
        let (made, _) = try await replica.ingest(open: fixture.open, changingNames: false) { ingestion in
            let made = try make("after", in: replica, directory: directory)
            try ingestion.answers.acknowledge(
                sent, as: sent.item, stillPending: [], shouldFetchContent: false)
            return made
        }
        let item = try #require(try replica.database.item(ofInode: directory))
        #expect(item.inode.modifiedAt == made?.modifiedAt)
        #expect(item.changedFields.contains(.contentModificationDate))
    }

    @Test(
        "WRITE-8: a name that is not there is not looked for again and again, whatever is made and removed in between")
    func namesAreKnown() async throws {
        let replica = try await prepared()
        let newFiles = replica.database.newFiles
        // Names are kept only if no new files are written while they are read.
        try await whileAnotherWrites(to: replica) {
            _ = try #require(try make("a", in: replica))
            // The first that is missed has the others read.
            #expect(try replica.database.lookup("b", in: .root).inode == nil)
        }
        #expect(newFiles.lacks("b", in: .root) && newFiles.lacks("c", in: .root))
        #expect(
            !newFiles.lacks("a", in: .root) && !newFiles.lacks("first", in: .root) && !newFiles.lacks("d", in: .root))
        _ = try #require(try make("b", in: replica))
        #expect(!newFiles.lacks("b", in: .root))
        try replica.database.commitAll()
        #expect(!newFiles.lacks("a", in: .root) && !newFiles.lacks("b", in: .root) && newFiles.lacks("c", in: .root))
        #expect(try make("b", in: replica) == nil)
        // A transaction makes one: nothing is known any more.
        try inTransaction("c", in: replica)
        #expect(!newFiles.lacks("c", in: .root) && !newFiles.lacks("e", in: .root))
        #expect(try replica.database.lookup("c", in: .root).inode != nil)
        _ = try replica.change(open: fixture.open) { try $0.names.unlink("a", in: .root) }
        #expect(try replica.database.lookup("a", in: .root).inode == nil)
        _ = try #require(try make("a", in: replica))
        #expect(try replica.names() == ["a", "b", "c", "d", "first"])
    }

    @Test("WRITE-8: what is read while others are being written is not taken for all") func namesReadInBetween()
        async throws
    {
        let replica = try await prepared()
        let newFiles = replica.database.newFiles
        try await whileAnotherWrites(to: replica) {
            _ = try #require(try make("a", in: replica))
        }
        let early = try #require(newFiles.beginQuery(at: .root))
        _ = try make("b", in: replica)
        try replica.database.commitAll()
        newFiles.endQuery(early, at: .root, names: [Array("first".utf8), Array("d".utf8)])
        #expect(!newFiles.lacks("a", in: .root) && !newFiles.lacks("b", in: .root) && !newFiles.lacks("x", in: .root))
    }

    @Test("WRITE-8: of a directory with very many names they are not kept") func manyNames() {
        var names = KnownNames()
        let era = NameEra()
        let directory = InodeNumber.root
        names.keep((0...KnownNames.most).map { Array("f\($0)".utf8) }, of: directory, era)
        #expect(names.hasLooked(at: directory, in: era))
        #expect(!names.lacks(Array("x".utf8), in: directory, era))
        names.keep([Array("a".utf8)], of: directory, era)
        #expect(names.lacks(Array("x".utf8), in: directory, era))
        for number in 0..<(1 << 15) { names.insert(Array("f\(number)".utf8), in: directory) }
        #expect(!names.lacks(Array("x".utf8), in: directory, era))
    }

    @Test("what group and mode a directory gives on is kept") func setGroup() async throws {
        let replica = try await prepared()
        _ = try replica.change(open: fixture.open) { changes in
            let wish = LocalAttributes(permissions: 0o2775, group: 55)
            _ = try changes.attributes.setAttributes(of: .root, to: wish, caller: LocalCaller(user: 0, group: 0))
        }
        let made = try #require(try make("a", in: replica))
        #expect(made.group == 55)
        #expect(try replica.database.lookup("a", in: .root).inode?.group == 55)
    }
}
