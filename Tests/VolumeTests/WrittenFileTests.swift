import FileProvider
import InMemoryLogging
import Logging
import ReplicaTestSupport
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica
@testable import Volume

/// What is written to files while other processes, the daemon itself or the remote change them.
@Suite("written files") struct WrittenFileTests: VolumeSuite {
    let own: VolumeFixture
    private let writing = OpenIntent(isWriting: true, isTruncating: false)

    init() throws { own = try VolumeFixture() }

    private func node(_ number: InodeNumber) -> UInt64 { UInt64(bitPattern: number.rawValue) }

    private func open(_ number: InodeNumber, for intent: OpenIntent) throws(VolumeError) {
        _ = try volume.open(node(number), for: intent, caller: caller, registry: nil)
    }

    private func close(_ number: InodeNumber, wasWriting: Bool = true) {
        volume.close(node(number), wasWriting: wasWriting, registry: nil)
    }

    /// Writes into a content file as the kernel does.
    private func write(_ count: Int, to number: InodeNumber, at offset: Int64 = 0) throws {
        let file = try replica.openContentForWriting(of: number)
        defer { try? file.close() }
        try file.writeAll([UInt8](repeating: 1, count: count).span.bytes, at: offset)
    }

    private func item(_ number: InodeNumber) throws -> ItemRecord {
        try #require(try replica.database.item(ofInode: number))
    }

    @Test("a write by an ordinary user takes the set-ID bits, also of a file that is not in the database yet")
    func setIDBits() async throws {
        var changes = LocalAttributes()
        changes.permissions = 0o6755
        let a = try await replica.list(.file("a"), open: fixture.open)
        try await replica.fill(a)
        try open(a, for: writing)
        // The first one is made in a transaction, which reserves numbers for others.
        var files = [node(a)]
        for name in ["first", "second"] {
            let made = try volume.create(
                name, in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil)
            files.append(made.attributes.node)
        }
        let root = Requester(processIdentifier: 1, userIdentifier: 0, groupIdentifier: 0)
        for file in files {
            _ = try volume.setAttributes(of: file, to: changes, caller: root)
            _ = try volume.writing(file, caller: root)
            _ = try volume.writing(file, caller: nil)
            #expect(try volume.attributes(of: file).permissions == 0o6755)
            _ = try volume.writing(file, caller: caller)
            #expect(try volume.attributes(of: file).permissions == 0o755)
            volume.close(file, wasWriting: true, registry: nil)
        }
    }

    // MARK: - Times

    @Test("what is written right after a time was set is modified later, though content files have a slow clock")
    func writtenInTheSameTick() async throws {
        let a = try await replica.list(.file("a"), open: fixture.open)
        try await replica.fill(a)
        try open(a, for: writing)
        let set = FileTimestamp.now.advanced(by: .milliseconds(5))
        _ = try volume.setAttributes(of: node(a), to: LocalAttributes(modifiedAt: .at(set)), caller: caller)
        try write(3, to: a)
        let shown = try volume.attributes(of: node(a)).modifiedAt
        #expect(shown > set)
        let future = FileTimestamp.now.advanced(by: .seconds(60))
        _ = try volume.setAttributes(of: node(a), to: LocalAttributes(modifiedAt: .at(future)), caller: caller)
        try write(4, to: a)
        let present = try volume.attributes(of: node(a)).modifiedAt
        #expect(present < future)
        close(a)
        #expect(try item(a).inode.modifiedAt == present)
    }

    // MARK: - On the disk

    @Test("WRITE-2: what the kernel itself writes with O_SYNC has its name and its mark on the disk")
    func synchronousWrites() async throws {
        let a = try await replica.list(.file("a"), open: fixture.open)
        try await replica.fill(a)
        let registry = VolumeTests.Registry()
        let synchronous = OpenIntent(isWriting: true, isTruncating: false, isReading: false, isSynchronous: true)
        let grant = try volume.open(node(a), for: synchronous, caller: caller, registry: registry)
        let isMarkCommitted = !replica.database.uncommitted.isOpen
        #expect(grant == .passthrough(backing: 1))
        #expect(isMarkCommitted)
        volume.close(node(a), wasWriting: true, registry: registry)

        let made = try volume.create(
            "new", in: 1, permissions: 0o644, isWriting: true, isSynchronous: true, caller: caller, registry: registry)
        let isNameCommitted = replica.database.newFiles.isEmpty && !replica.database.uncommitted.isOpen
        #expect(made.grant == .passthrough(backing: 2))
        #expect(isNameCommitted)
        volume.close(made.attributes.node, wasWriting: true, registry: registry)
    }

    // MARK: - Imports

    /// Makes a file that the daemon writes.
    private func beginImport() async throws -> InodeNumber {
        try await replica.list([], open: volume.openInodes)
        return try replica.change(open: volume.openInodes) {
            try $0.items.createFile(
                named: "big", in: .rootContainer, caller: LocalCaller(user: 7, group: 8), usualGroup: 8)
        }.0
    }

    private func finishImport(of number: InodeNumber) throws {
        _ = try replica.change(open: volume.openInodes) { changes in
            volume.endImport(of: number)
            _ = try changes.items.finishFile(number)
        }
    }

    @Test("WRITE-1: what a process writes to a file that was being imported when it opened it is recorded")
    func writtenAfterImport() async throws {
        let number = try await beginImport()
        try open(number, for: writing)
        try finishImport(of: number)
        // The remote has it by now.
        try await replica.database.write { db in
            try db.run("UPDATE item SET changedFields = 0 WHERE inode = \(number.rawValue)", [])
        }
        try write(3, to: number)
        close(number)
        let written = try item(number)
        #expect(written.inode.size == 3 && written.inode.contentStamp == nil)
        #expect(written.changedFields.contains(.contents))
    }

    @Test(
        "a file that a process opens for writing while it is imported is recorded as a whole", arguments: [true, false])
    func touchedDuringImport(isCounted: Bool) async throws {
        let number = try await beginImport()
        if isCounted { volume.beginImport(of: number) }
        try write(10, to: number)
        try open(number, for: writing)
        close(number)
        #expect(try (item(number).inode.contentStamp != nil) == isCounted)
        #expect(volume.openInodes.isOpenForWriting(number) == isCounted)
        try write(10, to: number, at: 10)
        try finishImport(of: number)
        let written = try item(number)
        #expect(written.inode.size == 20 && written.inode.contentStamp == nil)
        #expect(written.changedFields.contains(.contents))
        #expect(!volume.openInodes.isOpen(number))
    }

    // MARK: - Truncation without writing

    private let truncating = OpenIntent(isWriting: false, isTruncating: true)

    /// A file of the remote's that was opened with `O_RDONLY | O_TRUNC` and closed, and was sent.
    private func truncatedFile() async throws -> InodeNumber {
        let number = try await replica.list(.file("a", size: 100), open: volume.openInodes)
        try await replica.fill(number)
        try open(number, for: truncating)
        close(number, wasWriting: false)
        let truncated = try item(number)
        #expect(truncated.inode.size == 0 && truncated.inode.contentStamp == nil)
        #expect(truncated.changedFields.contains(.contents))
        // Until change times can tell writing from what was before.
        #expect(try await eventually { try replica.contentStatus(of: number).stamp != Replica.unknownStamp })
        var sent = try #require(
            try replica.prepare(truncated.id, fields: [.contents, .contentModificationDate]))
        sent.contentStamp = try replica.contentStatus(of: number).stamp
        var answer = FileProviderItem.file("a", size: 0, version: "2")
        answer.contentModificationDate = sent.item.contentModificationDate
        _ = try await replica.ingest(open: volume.openInodes) { [sent, answer] in
            try $0.answers.acknowledge(sent, as: answer, stillPending: [], shouldFetchContent: false)
        }
        #expect(try !item(number).changedFields.contains(.contents))
        return number
    }

    @Test("OPEN-3: a file that was truncated by an open for reading shows the next version of the remote")
    func changedAfterTruncation() async throws {
        let number = try await truncatedFile()
        try await replica.change([.file("a", size: 7, version: "3")], open: volume.openInodes)
        #expect(try volume.lookup("a", in: 1).node == node(number))
        #expect(try volume.attributes(of: node(number)).size == 7)
    }

    @Test("a file that was truncated by an open for reading goes when the remote has deleted it")
    func deletedAfterTruncation() async throws {
        _ = try await truncatedFile()
        try await replica.change(deleted: ["a"], open: volume.openInodes)
        #expect(try replica.names().isEmpty)
    }

    @Test("an open for reading that truncates leaves the mark of a process that writes")
    func truncatedWhileWritten() async throws {
        let number = try await replica.list(.file("a", size: 100), open: volume.openInodes)
        try await replica.fill(number)
        try open(number, for: writing)
        try open(number, for: truncating)
        close(number, wasWriting: false)
        #expect(try item(number).inode.contentStamp != nil)
        try write(5, to: number)
        close(number)
        #expect(try item(number).inode.size == 5)
        #expect(try item(number).inode.contentStamp == nil)
    }

    // MARK: - Closed files

    /// Two files that are open for writing, and written.
    private func writtenFiles() async throws -> (InodeNumber, InodeNumber) {
        try await replica.list([], open: volume.openInodes)
        func make(_ name: String) throws -> InodeNumber {
            let made = try volume.create(
                name, in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil)
            return InodeNumber(made.attributes.node)
        }
        let (one, other) = (try make("one"), try make("other"))
        for number in [one, other] { try write(3, to: number) }
        return (one, other)
    }

    @Test("FOLDER-17: the close of the last writer is told of while a process reads the file") func lastWriter()
        async throws
    {
        let a = try await replica.list(.file("a"), open: fixture.open)
        try await replica.fill(a)
        try open(a, for: .reading)
        for _ in 0..<2 { try open(a, for: writing) }
        #expect(volume.noteClosing(node(a)))
        #expect(volume.closeWritten([node(a)], registry: nil) == [])
        #expect(closed.leftToReaders.isEmpty)
        close(a)
        #expect(closed.leftToReaders == [a])
        #expect(try item(a).inode.contentStamp == nil)
        close(a, wasWriting: false)
        #expect(closed.leftToReaders == [a] && closed.numbers == [a])
    }

    @Test("a closed file whose content file is missing does not hold up the recording of others")
    func closedWithoutContent() async throws {
        let (broken, whole) = try await writtenFiles()
        try replica.contents.remove(broken)
        #expect(volume.closeWritten([node(broken), node(whole)], registry: nil) == [])
        let written = try item(whole)
        #expect(written.inode.size == 3 && written.inode.contentStamp == nil)
        #expect(try item(broken).inode.contentStamp == nil)
        #expect(!volume.openInodes.isOpen(broken) && !volume.openInodes.isOpen(whole))
        // Its row says that it is empty.
        #expect(prerequisite { try open(broken, for: writing) } == .whole(of: broken))
        #expect(try item(broken).inode.content == .dataless)
    }

    @Test("an open for writing that is undone while another writer's close waits leaves no mark")
    func undoneBeforeAClose() async throws {
        let (number, _) = try await writtenFiles()
        #expect(volume.noteClosing(node(number)))
        try open(number, for: writing)
        volume.undoOpen(node(number), wasWriting: true, registry: nil, request: nil)
        let written = try item(number)
        #expect(written.inode.size == 3 && written.inode.contentStamp == nil)
        #expect(volume.openInodes.isOpen(number))
        #expect(volume.closeWritten([node(number)], registry: nil) == [])
        #expect(!volume.openInodes.isOpen(number))
    }

    @Test("a closed file that cannot be recorded waits, and the others are recorded")
    func closedAndRefused() async throws {
        let (broken, whole) = try await writtenFiles()
        try replica.database.commitAll()
        try await fixture.sabotage(
            """
            CREATE TRIGGER refusal BEFORE UPDATE ON inode WHEN old.number = \(broken)
            BEGIN SELECT RAISE(ABORT, 'refused'); END;
            """)
        #expect(volume.closeWritten([node(broken), node(whole)], registry: nil) == [node(broken)])
        #expect(try item(whole).inode.size == 3)
        #expect(volume.openInodes.isOpen(broken) && !volume.openInodes.isOpen(whole))
        try await fixture.sabotage("DROP TRIGGER refusal;")
        #expect(volume.closeWritten([node(broken)], registry: nil) == [])
        #expect(try item(broken).inode.size == 3)
        #expect(!volume.openInodes.isOpen(broken))
    }

    @Test("many closed files that cannot be recorded are few lines of the log, and all are recorded afterwards")
    func manyRefused() async throws {
        try await replica.list([], open: volume.openInodes)
        let log = InMemoryLogHandler()
        let volume = Volume(
            replica: replica, files: try OpenFiles(), ownership: Ownership(user: 7, group: 8),
            logger: Logger(label: "test") { _ in log }, observer: ClosedInodes())
        let nodes = try (0..<50).map { index in
            try volume.create(
                "f\(index)", in: 1, permissions: 0o644, isWriting: true, caller: caller, registry: nil
            ).attributes.node
        }
        for node in nodes { try write(3, to: InodeNumber(node)) }
        try replica.database.commitAll()
        try await fixture.sabotage(
            "CREATE TRIGGER refusal BEFORE UPDATE ON inode BEGIN SELECT RAISE(ABORT, 'refused'); END;")
        #expect(volume.closeWritten(nodes, registry: nil) == nodes)
        let errors = log.entries.filter { $0.level >= .error }
        #expect(!errors.isEmpty && errors.count <= 3, "\(errors.map(\.message))")
        try await fixture.sabotage("DROP TRIGGER refusal;")
        #expect(volume.closeWritten(nodes, registry: nil) == [])
        #expect(try nodes.allSatisfy { try item(InodeNumber($0)).inode.size == 3 })
    }

    @Test("WRITE-15: on a mount that became read-only, handles for writing are closed") func closedReadOnly()
        async throws
    {
        let files = try OpenFiles()
        let number = try await replica.list(.file("a", size: 0), open: files)
        let before = try Volume.make(replica, observer: ClosedInodes(), files: files)
        _ = try before.open(node(number), for: writing, caller: caller, registry: nil)
        let volume = Volume(
            replica: replica, files: files, ownership: Ownership(user: 7, group: 8), isReadOnly: true,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, observer: ClosedInodes())
        #expect(volume.closeWritten([node(number)], registry: nil) == [])
        #expect(!files.isOpen(number))
    }
}
