import FileProvider
import Foundation
import GRDB
import ReplicaTestSupport
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// Local changes are answered before their transaction is committed.
@Suite("uncommitted changes") struct UncommittedChangesTests {
    private static let caller = LocalCaller(user: 7, group: 8)
    private let fixture: ReplicaFixture
    /// Its changes are committed only where a test says so.
    let replica: Replica

    init() async throws {
        (fixture, replica) = try ReplicaFixture.opened()
        try await replica.list([.directory("d"), .file("first", size: 10)], open: fixture.open)
        try await replica.list([], in: try #require(try replica.number("d")), open: fixture.open)
        try replica.database.commitAll()
        // The task that adds free pages commits what was changed before, and does nothing where they are there.
        let areThere = try await eventually(within: .seconds(60)) { [replica] in
            replica.database.reserve.addFreePages()
            return try replica.database.query { try Int.fetchOne($0, sql: "PRAGMA freelist_count") } != 0
        }
        #expect(areThere)
        // The task that commits counts as scheduled, so that none is.
        #expect(replica.database.uncommitted.takeSchedule())
    }

    private func rename(_ name: String, to newName: String) throws {
        _ = try replica.change(open: fixture.open) {
            try $0.names.rename(name, in: .root, to: newName, in: .root, .replace)
        }
    }

    /// - Parameter other: another replica; nil for the test's own.
    func make(_ name: String, in other: Replica? = nil) throws {
        _ = try (other ?? replica).change(open: fixture.open) {
            try $0.names.create(
                name, in: .root, NewInode(kind: .directory, permissions: 0o755), caller: Self.caller, usualGroup: 9)
        }
    }

    /// What a crash leaves on the disk now, in a folder of its own.
    func image(of replica: Replica, without suffix: String? = nil) throws -> ReplicaFixture {
        let image = try ReplicaFixture()
        try DiskImage.copy(replica.directory, to: image.directory, without: suffix)
        return image
    }

    @Test("TAKEOVER-1: a change that was answered and not committed survives a crash, by the log") func survives()
        async throws
    {
        try make("new")
        try rename("first", to: "second")
        #expect(replica.database.uncommitted.isOpen)
        let crashed = try image(of: replica).replica()
        #expect(try crashed.names() == ["d", "new", "second"])
        #expect(crashed.findings == [])
        let withoutLog = try image(of: replica, without: "-redo").replica()
        #expect(try withoutLog.names() == ["d", "first"])
    }

    @Test("the log has no statement that has changed nothing") func noEffect() throws {
        let effective = "UPDATE inode SET changedAt = changedAt WHERE number = ?"
        try replica.database.change { db in
            try db.run("UPDATE inode SET size = 1 WHERE number = ?", [Int64(-1)])
            try db.run("DELETE FROM failure WHERE inode = ?", [Int64(-1)])
            try db.run(effective, [InodeNumber.root.rawValue])
        }
        let log = try #require(try RedoLog.read(at: replica.database.redoLog))
        #expect(log.records.last?.statements.map(\.sql) == [effective])
    }

    @Test(
        "TAKEOVER-1: a domain with a log that cannot be read is not opened without it, and loses nothing",
        arguments: ["-redo", "-new"])
    func unreadableLog(suffix: String) async throws {
        try make("new")
        let crashed = try image(of: replica)
        let log = crashed.directory.appending(ReplicaDatabase.fileName + suffix)
        let kept = FilePath(log.string + "-kept")
        try log.move(to: kept)
        try log.makeDirectory()
        #expect(throws: FileProviderError.self) { _ = try crashed.replica() }
        try FileManager.default.removeItem(atPath: log.string)
        try kept.move(to: log)
        let reopened = try crashed.replica()
        #expect(try reopened.names() == ["d", "first", "new"])
        #expect(reopened.findings == [])
    }

    @Test("every reader sees what is not committed") func isSeen() async throws {
        try rename("first", to: "second")
        #expect(try replica.database.item(named: "second", in: .root) != nil)
        #expect(try replica.database.read { db in try db.hasItem(named: "second", in: .root) })
        #expect(replica.database.uncommitted.isOpen)
        #expect(try replica.database.readCommitted { db in try db.hasItem(named: "second", in: .root) })
        #expect(!replica.database.uncommitted.isOpen)
    }

    @Test("a change that fails takes nothing of the others with it, and is not in the log") func failsAlone()
        async throws
    {
        func failToRename() {
            #expect(throws: LocalObstacle.refused(.ioError)) {
                _ = try replica.change(open: fixture.open) { changes in
                    try changes.names.rename("new", in: .root, to: "newer", in: .root, .replace)
                    throw LocalObstacle.refused(.ioError)
                }
            }
        }
        try make("new")
        failToRename()
        #expect(replica.database.uncommitted.isOpen)
        #expect(throws: LocalObstacle.refused(.fileExists)) { try make("new") }
        // The second failure of a transaction is taken back in another way than its first.
        try make("other")
        failToRename()
        try make("third")
        #expect(replica.database.uncommitted.isOpen)
        let names = ["d", "first", "new", "other", "third"]
        #expect(try replica.names() == names)
        #expect(try image(of: replica).replica().names() == names)
        try replica.database.commitAll()
        #expect(try replica.names() == names)
    }

    @Test("CHECK-4: what was written and is in no transaction yet is not lost by a repair") func damaged() async throws
    {
        try DomainSidecar(source: "memory:remote", mountpoint: nil, options: nil).write(in: replica.directory)
        let number = try #require(try replica.number("first"))
        try await replica.fill(number)
        func makeAhead() -> FileDescriptor? {
            replica.createAhead("ahead", in: .root, permissions: 0o644, caller: Self.caller, usualGroup: 9)?.content
        }
        // It only asks for numbers.
        #expect(makeAhead() == nil)
        try replica.database.commitAll()
        try await replica.database.write { db in
            try db.execute(sql: "INSERT INTO extendedAttribute (inode, name, value) VALUES (1, 'a', x'00')")
        }
        let page = try replica.database.readCommitted { db in
            try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'extendedAttribute'")
        }
        try replica.database.checkpoint()
        // The row is not told of the new bytes, which are as many, but by the change.
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(number, truncating: false, caller: Self.caller)
        }
        try OwnedDescriptor(replica.openContentForWriting(of: number)).use {
            try $0.writeAll(Array("rewritten!".utf8).span.bytes, at: 0)
        }
        _ = try replica.change(open: fixture.open) { try $0.contents.endWriting(number) }
        try OwnedDescriptor(try #require(makeAhead())).use {
            try $0.writeAll(Array("made ahead".utf8).span.bytes, at: 0)
        }
        #expect(replica.database.uncommitted.isOpen)
        // All that was committed is in the database.
        let image = try image(of: replica, without: "-wal")
        let database = image.directory.appending(ReplicaDatabase.fileName)
        try OwnedDescriptor(FileDescriptor.open(database, .readWrite)).use {
            let size = DatabaseHeader.pageSize
            try $0.writeAll(
                [UInt8](repeating: 0xFF, count: size).span.bytes, at: Int64((try #require(page) - 1) * size))
        }
        let findings = try ReplicaRebuild.run(in: image.directory, logger: DamagedReplica.logger)
        #expect(findings.contains { $0.text.contains("of its items are as they were") }, "\(findings)")
        let recovered = image.directory.appending("recovered").string
        for text in ["rewritten!", "made ahead"] {
            let found = try await Command.run("grep", "-rl", "--exclude-dir=database-*", text, recovered)
            #expect(found.line.contains(text == "rewritten!" ? "first" : "ahead"), "\(image.recoveredFiles)")
        }
    }

    @Test("WRITE-4: a truncation that fails changes nothing", arguments: [0, 3, 20])
    func failedTruncation(to size: Int64) async throws {
        let number = try #require(try replica.number("first"))
        // With a part of it here, and with all of it.
        for part in [Int64(4), 10] {
            try await replica.fill(number, 0..<part)
            func bytes() throws -> [UInt8] {
                try OwnedDescriptor(replica.openContent(of: number)).use { try $0.readBytes(at: 0, count: 100) }
            }
            let before = try bytes()
            let time = try replica.contentStatus(of: number).modifiedAt
            #expect(throws: LocalObstacle.self) {
                _ = try replica.change(open: fixture.open) { changes in
                    try changes.contents.truncate(number, to: size, caller: Self.caller)
                    throw LocalObstacle.refused(.noSpace)
                }
            }
            #expect(try bytes() == before && before.count == 10)
            #expect(try replica.contentStatus(of: number).modifiedAt == time)
        }
    }

    @Test("what SQLite itself has rolled back is made again") func isMadeAgain() async throws {
        try make("one")
        // As after an error of the disk.
        try replica.database.sabotageTransaction()
        #expect(try replica.names() == ["d", "first", "one"])
        try make("two")
        try replica.database.sabotageTransaction()
        try replica.database.commitAll()
        #expect(!replica.database.uncommitted.isOpen)
        #expect(try replica.names() == ["d", "first", "one", "two"])
    }

    @Test("a transaction of the provider's commits what was changed before it") func othersCommit() async throws {
        try rename("first", to: "second")
        try await replica.recordFailure(FileProviderError(.serverUnreachable), of: .root)
        #expect(!replica.database.uncommitted.isOpen)
        #expect(try image(of: replica, without: "-redo").replica().names() == ["d", "second"])
    }

    @Test("without another change it is committed soon") func isCommittedSoon() async throws {
        let another = try ReplicaFixture()
        let replica = try another.replica()
        try await replica.list([], open: another.open)
        try make("new", in: replica)
        let deadline = ContinuousClock.now + .seconds(20)
        while replica.database.uncommitted.isOpen, .now < deadline { try await Task.sleep(for: .milliseconds(10)) }
        #expect(!replica.database.uncommitted.isOpen)
    }

    @Test("after a power cut a log that is newer than the database is set aside and named") func gapsAreLeftAlone()
        async throws
    {
        try make("new")
        let early = try image(of: replica)
        try replica.database.commitAll()
        try make("newer")
        let log = ReplicaDatabase.fileName + "-redo"
        try FileManager.default.removeItem(atPath: early.directory.appending(log).string)
        try FileManager.default.copyItem(
            atPath: replica.directory.appending(log).string, toPath: early.directory.appending(log).string)
        let recovered = try early.replica()
        #expect(try recovered.names() == ["d", "first"])
        #expect(recovered.findings.contains { $0.contains("could not be made again") })
        try make("other", in: recovered)
        #expect(try image(of: recovered).replica().names() == ["d", "first", "other"])
    }

    @Test("after a power cut that took another transaction, a log of changes that followed it is set aside and named")
    func followedAnother() async throws {
        let number = try #require(try replica.number("first"))
        try await replica.fill(number)
        let early = try image(of: replica)
        try await replica.change([.file("theirs")], open: fixture.open)
        _ = try replica.change(open: fixture.open) { try $0.names.link(number, as: "link", in: .root) }
        try rename("link", to: "renamed")
        let log = ReplicaDatabase.fileName + "-redo"
        try FileManager.default.removeItem(atPath: early.directory.appending(log).string)
        try FileManager.default.copyItem(
            atPath: replica.directory.appending(log).string, toPath: early.directory.appending(log).string)
        let recovered = try early.replica()
        #expect(try recovered.names() == ["d", "first"])
        #expect(recovered.findings.contains { $0.contains("could not be made again") })
        #expect(try image(of: replica).replica().names() == ["d", "first", "renamed", "theirs"])
    }

    @Test("changes that cannot be made again are set aside and named") func rejected() async throws {
        try make("new")
        let crash = try image(of: replica)
        // The name is taken in the database.
        try await crash.sabotage(
            """
            INSERT INTO inode (number, kind, modifiedAt, changedAt, createdAt) VALUES (5000, 1, 0, 0, 0);
            INSERT INTO item (inode, parent, name, capabilities) VALUES (5000, 1, 'new', 63);
            """)
        let recovered = try crash.replica()
        #expect(recovered.findings.contains { $0.contains("could not be made again") })
        // What is changed afterwards survives the next crash.
        #expect(recovered.database.uncommitted.takeSchedule())
        try make("other", in: recovered)
        #expect(try image(of: recovered).replica().names() == ["d", "first", "new", "other"])
        let aside = crash.directory.appending(ReplicaDatabase.fileName + "-redo.rejected").string
        #expect(FileManager.default.fileExists(atPath: aside))
    }

    @Test(
        "the log makes of a database just what the open transaction had made of it",
        arguments: 1...6 as ClosedRange<UInt64>)
    func randomCrashes(seed: UInt64) async throws {
        var numbers = SeededNumbers(seed: seed)
        let names = (0..<12).map { "name \($0)" }
        var directories: [InodeNumber] = [.root, try #require(try replica.number("d"))]
        var crashes = 0
        var successes = 0
        for step in 0..<400 {
            let (name, other) = (names.randomElement(using: &numbers) ?? "", names.randomElement(using: &numbers) ?? "")
            let directory = directories.randomElement(using: &numbers) ?? .root
            let target = directories.randomElement(using: &numbers) ?? .root
            let number = try? replica.database.item(named: name, in: directory)?.inode.number
            let choice = Int.random(in: 0..<12, using: &numbers)
            let bits = UInt16.random(in: 0...0o777, using: &numbers)
            do {
                if choice == 0 {
                    if let made = replica.createAhead(
                        name, in: directory, permissions: bits, caller: Self.caller, usualGroup: 9)
                    {
                        try made.content.close()
                    }
                } else {
                    _ = try replica.change(
                        open: fixture.open, request: RequestNumber(rawValue: UInt64(step + 1) << 1), result: .nothing
                    ) { changes in
                        switch choice {
                        case 1, 2:
                            let made = try changes.names.create(
                                name, in: directory,
                                NewInode(kind: choice == 1 ? .directory : .file, permissions: bits),
                                caller: Self.caller, usualGroup: 9)
                            if choice == 1 { directories.append(made.number) }
                        case 3: try changes.names.unlink(name, in: directory)
                        case 4: try changes.names.removeDirectory(name, in: directory)
                        case 5, 6:
                            try changes.names.rename(name, in: directory, to: other, in: target, .replace)
                        case 7: try changes.names.rename(name, in: directory, to: other, in: target, .exchange)
                        case 8:
                            let attributes = LocalAttributes(permissions: bits)
                            _ = try changes.attributes.setAttributes(
                                of: number ?? .root, to: attributes, caller: LocalCaller(user: 0, group: 0))
                        case 9:
                            try changes.attributes.setExtendedAttribute(
                                "user.key \(bits % 3)", of: number ?? .root, to: Array(repeating: 0, count: Int(bits)),
                                mustBeNew: false, mustExist: false, caller: LocalCaller(user: 0, group: 0))
                        case 10: _ = try changes.names.link(number ?? .root, as: other, in: target)
                        default:
                            try changes.contents.truncate(
                                number ?? .root, to: Int64(bits), caller: LocalCaller(user: 0, group: 0))
                        }
                    }
                }
                successes += 1
            } catch is LocalObstacle {}
            switch Int.random(in: 0..<40, using: &numbers) {
            case 0:
                try replica.database.commitAll()
            case 1:
                crashes += 1
                // New files have their own log, and are in the database after a read.
                _ = try replica.database.read { _ in }
                let crashed = try image(of: replica).opened()
                try replica.database.commitAll()
                let (wanted, found) = (try contents(of: replica.database), try contents(of: crashed))
                try #require(wanted == found, "seed \(seed), step \(step)")
            default: break
            }
        }
        #expect(successes > 60 && crashes > 3)
    }

    /// All rows of all tables but what a crash itself adds.
    private func contents(of database: ReplicaDatabase) throws -> [String: [String]] {
        try database.readCommitted { db in
            var rows: [String: [String]] = [:]
            let tables = try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
            for table in tables where table != "domain" && table != "answered" {
                rows[table] = try Row.fetchAll(db, sql: "SELECT * FROM \(table)").map(\.description).sorted()
            }
            return rows
        }
    }
}

extension ReplicaFixture {
    /// The database as it is after the logs were read, before anything else is recovered.
    fileprivate func opened() throws -> ReplicaDatabase {
        let database = try ReplicaDatabase(at: directory.appending(ReplicaDatabase.fileName), readers: 2)
        try database.recoverNewFiles()
        return database
    }
}

extension ReplicaDatabase {
    /// Rolls the open transaction back, as SQLite does after some errors.
    fileprivate func sabotageTransaction() throws {
        try queryWithoutNewFiles { db in if db.isInsideTransaction { try db.run("ROLLBACK", []) } }
    }
}
