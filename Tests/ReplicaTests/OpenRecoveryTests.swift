import FileProvider
import Foundation
import GRDB
import Logging
import ReplicaTestSupport
import Syscalls
import SystemPackage
import Testing

@testable import Replica

/// A replica is opened while processes have files open since before the daemon was killed.
@Suite("recovery under open files") struct OpenRecoveryTests {
    private struct Opened: OpenInodes {
        var reading: Set<InodeNumber> = []
        var writing: Set<InodeNumber> = []
        var known: Set<InodeNumber> = []

        func isOpen(_ number: InodeNumber) -> Bool { reading.contains(number) || writing.contains(number) }
        func isOpenForWriting(_ number: InodeNumber) -> Bool { writing.contains(number) }
        func keepsNameless(_ number: InodeNumber) -> Bool { isOpen(number) || known.contains(number) }
    }

    let fixture: ReplicaFixture
    let caller = LocalCaller(user: 7, group: 8)

    init() throws {
        fixture = try ReplicaFixture()
    }

    private func reopen(_ open: any OpenInodes, finishesRecovery: Bool = true) throws -> Replica {
        try Replica(
            at: fixture.directory, readers: 4, open: open, finishesRecovery: finishesRecovery,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    private func path(of number: InodeNumber) -> FilePath {
        fixture.directory.appending("contents").appending(number.description)
    }

    private func length(of number: InodeNumber) -> Int64? { try? FileStatus(at: path(of: number)).size }

    /// Makes a replica with a file whose content is here, and lets go of it as a crash does.
    private func leave(_ body: (Replica, InodeNumber) async throws -> Void) async throws -> InodeNumber {
        let replica = try fixture.replica()
        let number = try await replica.list(.file("a", size: 100), .directory("d"), open: fixture.open)
        try await replica.fill(number)
        try await body(replica, number)
        return number
    }

    @Test("an unlinked file that is open keeps its content until it is closed")
    func namelessFileStays() async throws {
        let number = try await leave { replica, number in
            let open = Opened(reading: [number])
            _ = try replica.change(open: open) { try $0.names.unlink("a", in: .root) }
        }
        let replica = try reopen(Opened(reading: [number]))
        let inode = try #require(try replica.database.inode(number))
        #expect(inode.linkCount == 0 && inode.content == .materialized)
        #expect(length(of: number) == 100)
        #expect(replica.findings == [])
        // As an ordinary close.
        _ = try await replica.ingest(open: Opened()) { try $0.versions.settle(number) }
        #expect(try replica.database.inode(number) == nil)
        #expect(length(of: number) == nil)
    }

    @Test("a recovery that a crash ends before it removes a content file leaves no file without a row")
    func interruptedRecovery() async throws {
        let number = try await leave { replica, number in
            _ = try replica.change(open: Opened(reading: [number])) { try $0.names.unlink("a", in: .root) }
        }
        // A directory in its place cannot be unlinked, so the recovery ends where the crash would have ended it.
        let content = path(of: number).string
        try FileManager.default.removeItem(atPath: content)
        try FileManager.default.createDirectory(atPath: content, withIntermediateDirectories: false)
        #expect(try reopen(Opened(), finishesRecovery: false).findings.count == 1)
        try FileManager.default.removeItem(atPath: content)
        #expect(FileManager.default.createFile(atPath: content, contents: Data(count: 100)))
        let replica = try reopen(Opened())
        #expect(replica.findings == [])
        #expect(try replica.database.inode(number) == nil)
        #expect(length(of: number) == nil && fixture.recoveredFiles == [])
    }

    @Test("a removed directory that the kernel knows stays") func namelessDirectoryStays() async throws {
        var directory = InodeNumber.root
        _ = try await leave { replica, _ in
            directory = try #require(try replica.number("d"))
            try await replica.list([], in: directory, open: fixture.open)
            _ = try replica.change(open: Opened(known: [directory])) { try $0.names.removeDirectory("d", in: .root) }
        }
        #expect(try reopen(Opened(known: [directory])).database.inode(directory)?.linkCount == 0)
        #expect(try reopen(Opened()).database.inode(directory) == nil)
    }

    @Test(
        "a removal waits for the last close, or ten seconds when only the kernel knows the file",
        arguments: [true, false])
    func removalWaits(isOpen: Bool) async throws {
        let replica = try fixture.replica()
        let number = try await replica.list(.file("a", id: "A", size: 100), open: fixture.open)
        let open = isOpen ? Opened(reading: [number]) : Opened(known: [number])
        _ = try replica.change(open: open) { try $0.names.unlink("a", in: .root) }
        let removed = FileTimestamp.now.seconds
        #expect(try replica.database.isKeptOnRemote("A", at: FileTimestamp(seconds: removed + 8, nanoseconds: 0)))
        let later = FileTimestamp(seconds: removed + 12, nanoseconds: 0)
        #expect(try replica.database.isKeptOnRemote("A", at: later) == isOpen)
    }

    @Test("the version that a process has open stays when the remote has replaced it") func versionsStay() async throws
    {
        let number = try await leave { replica, number in
            fixture.open.insert(number)
            try await replica.change([.file("a", size: 50, version: "2")], open: fixture.open)
            #expect(try replica.number("a") != number)
        }
        let replica = try reopen(fixture.open)
        let inode = try #require(try replica.database.inode(number))
        #expect(inode.linkCount == 0 && inode.contentVersion == Array("1".utf8))
        #expect(length(of: number) == 100)
    }

    @Test("a file that is open for writing stays marked, and is compared at its close") func writtenFileStays()
        async throws
    {
        let number = try await leave { replica, number in
            _ = try replica.change(open: fixture.open) {
                try $0.contents.beginWriting(number, truncating: false, caller: caller)
            }
        }
        // The kernel writes by itself, before, during and after the recovery.
        func append(_ count: Int) throws {
            let file = try FileDescriptor.open(path(of: number), .readWrite)
            defer { try? file.close() }
            try file.setLength(Int64(count))
        }
        try append(150)
        let replica = try reopen(Opened(writing: [number]))
        let marked = try #require(try replica.database.inode(number))
        #expect(marked.contentStamp != nil && marked.size == 100)
        #expect(replica.findings == [])
        try append(200)
        _ = try replica.change(open: Opened()) { try $0.contents.endWriting(number) }
        let closed = try #require(try replica.database.item(ofInode: number))
        #expect(closed.inode.size == 200 && closed.changedFields.contains(.contents))
        #expect(length(of: number) == 200)
    }

    @Test("content of another length than its row stays while a process reads it, and is set aside afterwards")
    func readFileStays() async throws {
        let number = try await leave { _, number in
            let file = try FileDescriptor.open(path(of: number), .readWrite)
            defer { try? file.close() }
            try file.setLength(3)
        }
        #expect(try reopen(Opened(reading: [number])).findings == [])
        #expect(length(of: number) == 3 && fixture.recoveredFiles == [])
        #expect(try reopen(Opened()).findings.count == 1)
        #expect(length(of: number) == nil && fixture.recoveredFiles.count == 1)
    }

    @Test("an empty content file of what the remote has is left of a truncation, and nothing is set aside")
    func interruptedTruncation() async throws {
        let number = try await leave { _, number in
            let file = try FileDescriptor.open(path(of: number), .readWrite)
            defer { try? file.close() }
            try file.setLength(0)
        }
        #expect(try reopen(Opened()).database.inode(number)?.content == .dataless)
        #expect(length(of: number) == nil && fixture.recoveredFiles == [])
    }

    /// A file that the remote knows and that was written here, of which the content file is shorter than its row.
    private func leaveShortened(boot: String? = nil) async throws -> InodeNumber {
        try await leave { replica, number in
            _ = try replica.change(open: Opened()) { try $0.contents.truncate(number, to: 200, caller: caller) }
            let file = try FileDescriptor.open(path(of: number), .readWrite)
            defer { try? file.close() }
            try file.setLength(40)
            if let boot { try replica.database.set(.bootIdentifier, to: boot) }
        }
    }

    @Test("WRITE-1: SIGKILL during a truncation of a file that is not sent yet leaves what was written last")
    func interruptedTruncationOfUnsent() async throws {
        let number = try await leaveShortened()
        let replica = try reopen(Opened())
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.inode.size == 40 && item.changedFields.contains(.contents))
        #expect(length(of: number) == 40 && fixture.recoveredFiles == [])
    }

    @Test("WRITE-1: a check that repairs keeps what a truncation that SIGKILL interrupted has left, and sends it")
    func interruptedTruncationIsRepaired() async throws {
        let number = try await leaveShortened()
        let replica = try reopen(Opened(), finishesRecovery: false)
        let findings = try replica.check(open: Opened(), isRepairing: true).findings
        #expect(findings.contains { $0.inode == number && $0.isMended })
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.inode.size == 40 && item.changedFields.contains(.contents))
        #expect(length(of: number) == 40)
    }

    @Test(
        "WRITE-2: after a power cut a file that misses bytes is set aside, also when the daemon is killed before that")
    func killedAfterPowerCut() async throws {
        let number = try await leaveShortened(boot: "an earlier boot")
        _ = try reopen(Opened(), finishesRecovery: false)
        let replica = try reopen(Opened())
        let item = try #require(try replica.database.item(ofInode: number))
        #expect(item.inode.content == .dataless && !item.changedFields.contains(.contents))
        #expect(length(of: number) == nil && fixture.recoveredFiles.count == 1)
        #expect(try replica.database.value(of: .mayMissBytes) == nil)
    }

    @Test("what a crash leaves of a move to the trash is removed, and what only looks like it is set aside")
    func interruptedTrashing() async throws {
        let information = "[Trash Info]\nPath=a%20name\nDeletionDate=2026-11-25T03:14:58\n"
        let last = try await leave { _, _ in }
        let numbers = (10..<14).map { InodeNumber(rawValue: last.rawValue + $0) }
        for (number, text) in zip(numbers, [information, information + "more\n", "[Trash Info]\n", ""]) {
            #expect(FileManager.default.createFile(atPath: path(of: number).string, contents: Data(text.utf8)))
        }
        _ = try reopen(Opened())
        #expect(numbers.allSatisfy { length(of: $0) == nil })
        #expect(fixture.recoveredFiles.count == 2)
    }

    @Test("begun content of an open file stays; begun content without a file does not") func begunContentStays()
        async throws
    {
        var begun = InodeNumber.root
        _ = try await leave { replica, _ in
            try await replica.list(
                [.file("x", id: "x", in: "d")], in: #require(try replica.number("d")), open: fixture.open)
            begun = try #require(try replica.number("x"))
            try await replica.beginContent(of: begun, version: nil).descriptor.close()
        }
        #expect(try reopen(Opened(reading: [begun])).database.inode(begun)?.content == .partial)
        #expect(length(of: begun) == 100)
        try FileManager.default.removeItem(atPath: path(of: begun).string)
        #expect(try reopen(Opened(reading: [begun])).database.inode(begun)?.content == .dataless)
    }

    // MARK: - After the first answer

    @Test("content files are compared after the first answer, with the same findings") func laterFindings() async throws
    {
        let number = try await leave { _, number in
            try FileManager.default.removeItem(atPath: path(of: number).string)
            let stray = path(of: InodeNumber(rawValue: 0)).string
            #expect(FileManager.default.createFile(atPath: stray, contents: Data([1])))
        }
        let replica = try reopen(Opened(), finishesRecovery: false)
        #expect(replica.findings == [])
        #expect(try replica.database.inode(number)?.content == .materialized)
        let found = try await replica.finishRecovery()
        #expect(found.count == 2 && found == replica.findings)
        #expect(try replica.database.keptFindings() == found)
        #expect(try replica.database.inode(number)?.content == .dataless)
        #expect(try await replica.finishRecovery() == [])
    }

    @Test("WRITE-2: a comparison that has failed goes on with what is not compared", arguments: [true, false])
    func comparisonAfterFailure(hasRow: Bool) async throws {
        _ = try await leave { _, number in
            let differing = hasRow ? number : InodeNumber(rawValue: 0)
            try Data([1]).write(to: URL(fileURLWithPath: path(of: differing).string))
        }
        let replica = try reopen(Opened(), finishesRecovery: false)
        // Nothing can be moved into a file.
        let recovered = fixture.directory.appending("recovered").string
        try FileManager.default.removeItem(atPath: recovered)
        #expect(FileManager.default.createFile(atPath: recovered, contents: nil))
        await #expect(throws: (any Error).self) { try await replica.finishRecovery() }
        try FileManager.default.removeItem(atPath: recovered)
        try FileManager.default.createDirectory(atPath: recovered, withIntermediateDirectories: false)
        #expect(try await replica.finishRecovery().count == 1)
        #expect(fixture.recoveredFiles.count == 1)
    }

    @Test("a file without a row under the number of a new inode is set aside, before the comparison has seen it")
    func strayUnderNewNumber() async throws {
        let last = try await leave { _, _ in }
        let stray = InodeNumber(rawValue: last.rawValue + 2)
        #expect(FileManager.default.createFile(atPath: path(of: stray).string, contents: Data(count: 5)))
        let replica = try reopen(Opened(), finishesRecovery: false)
        let (made, _) = try replica.change(open: Opened()) {
            try $0.names.createFile("new", in: .root, permissions: 0o644, caller: caller, usualGroup: 8)
        }
        try made.content.close()
        #expect(made.inode.number == stray && length(of: stray) == 0)
        #expect(fixture.recoveredFiles.count == 1)
        try await replica.finishRecovery()
        #expect(length(of: stray) == 0)
    }

    @Test(
        "CRASH-2: a file without a row under the number of an item of the remote's is set aside when that is read or truncated",
        arguments: [true, false])
    func strayUnderRemoteNumber(isRead: Bool) async throws {
        let last = try await leave { _, _ in }
        let stray = InodeNumber(rawValue: last.rawValue + 3)
        #expect(FileManager.default.createFile(atPath: path(of: stray).string, contents: Data([1, 2, 3])))
        let replica = try reopen(Opened(), finishesRecovery: false)
        let directory = try #require(try replica.number("d"))
        try await replica.list(
            (0..<5).map { .file("f\($0)", in: "d", size: 100) }, in: directory, open: Opened())
        #expect(try replica.database.inode(stray)?.kind == .file)
        if isRead {
            try await replica.fill(stray)
        } else {
            _ = try replica.change(open: Opened()) { try $0.contents.truncate(stray, to: 0, caller: caller) }
        }
        #expect(fixture.recoveredFiles.count == 1)
        try await replica.finishRecovery()
        #expect(length(of: stray) == (isRead ? 100 : 0) && fixture.recoveredFiles.count == 1)
    }

    @Test("changes during the comparison are not taken for defects") func comparisonBesideChanges() async throws {
        let count = 40
        do {
            let replica = try fixture.replica()
            try await replica.list((0..<count).map { .file("f\($0)", size: 100) }, open: fixture.open)
            for index in 0..<count where index % 2 == 0 {
                try await replica.fill(#require(try replica.number("f\(index)")))
            }
        }
        for round in 0..<5 {
            let replica = try reopen(Opened(), finishesRecovery: false)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let found = try await replica.finishRecovery()
                    #expect(found == [])
                }
                group.addTask {
                    for index in 0..<count {
                        let number = try #require(try replica.number("f\(index)"))
                        if try replica.database.inode(number)?.content == .materialized {
                            if index % 3 == 0 {
                                _ = try replica.change(open: Opened()) {
                                    try $0.contents.truncate(number, to: Int64(round * 7 + 1), caller: caller)
                                }
                            } else {
                                _ = try? await replica.evictFile(number, open: Opened())
                            }
                        } else {
                            try await replica.fill(number)
                        }
                    }
                }
                group.addTask {
                    for index in 0..<count {
                        let name = "new \(round) \(index)"
                        let made =
                            try replica.createAhead(name, in: .root, permissions: 0o644, caller: caller, usualGroup: 8)
                            ?? replica.change(open: Opened()) {
                                try $0.names.createFile(
                                    name, in: .root, permissions: 0o644, caller: caller, usualGroup: 8)
                            }.0
                        try made.1.close()
                    }
                }
                try await group.waitForAll()
            }
            #expect(replica.findings == [])
            #expect(try replica.database.defects() == [])
        }
        #expect(fixture.recoveredFiles == [])
    }

    // MARK: - Plans

    @Test("the queries before the first answer read indexes of few rows") func queriesScanNoTable() throws {
        let replica = try fixture.replica()
        let queries: [(String, [(any DatabaseValueConvertible)?], String)] = [
            (Recovery.namedWithoutLinks, [], "inodeWithoutName"),
            (Recovery.nameless, [], "inodeWithoutName"),
            (Recovery.unsentIncomplete, [], "inodeWithIncompleteContent"),
            (Recovery.empty, [], "inodeWithIncompleteContent"),
            (Database.abandonment, [], "directoryBeingListed"),
            ("SELECT number FROM inode WHERE contentStamp IS NOT NULL", [], "inodeOpenForWriting"),
            (ContentComparison.rows, [1, 2, 3], "inodeWithContentFile"),
        ]
        for (query, arguments, index) in queries {
            let plan = try replica.database.read { db in
                try db.all("EXPLAIN QUERY PLAN " + query, arguments, { $0[3] as String })
            }
            #expect(plan.first?.contains("INDEX \(index)") == true, "\(plan)")
            #expect(plan.dropFirst().allSatisfy { !$0.hasPrefix("SCAN") }, "\(plan)")
        }
    }
}
