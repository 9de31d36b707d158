import FileProvider
import Foundation
import GRDB
import ReplicaTestSupport
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// A damaged replica: what the remote does not have is never lost.
@Suite("damage", .serialized) struct DamageTests {
    private static let hasTime = ProcessInfo.processInfo.environment["YONDER_LONG_TESTS"] == "1"
    /// Five rounds always; forty with YONDER_LONG_TESTS=1. YONDER_DAMAGE_SEED repeats one round.
    static let seeds: [UInt64] =
        ProcessInfo.processInfo.environment["YONDER_DAMAGE_SEED"].flatMap { UInt64($0) }.map { [$0] }
        ?? Array(1...(hasTime ? 40 : 5))

    @Test(
        "CHECK-4: random damage to the database and to content files loses nothing that was not sent", arguments: seeds)
    func randomDamageLosesNothingUnsent(seed: UInt64) async throws {
        var numbers = SeededNumbers(seed: seed)
        let replica = try await DamagedReplica(isClosed: Bool.random(using: &numbers))
        defer { replica.remove() }
        var done: [String] = []
        for _ in 0..<Int.random(in: 1...3, using: &numbers) {
            let damage = RandomDamage.allCases.randomElement(using: &numbers) ?? .databaseByte
            done.append(try await damage.inflict(on: replica, with: &numbers))
        }
        let found = try replica.repair()
        let (reachable, remarks) = try replica.reachableTexts()
        let lost = replica.unsent.subtracting(reachable)
        #expect(lost.isEmpty, "seed \(seed): \(done): \(found.map(\.text)): lost \(lost)")
        #expect(remarks.isEmpty, "seed \(seed): \(done): \(found.map(\.text)): left \(remarks)")
    }

    @Test("CHECK-3: a damaged byte of the database's header is restored, and what was pending is pending still")
    func headerIsRestored() async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        let sound = try #require(FileManager.default.contents(atPath: replica.database.string))
        let original = try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
        let pending = try original.unsynced().items
        try original.close()
        try #require(pending > 0)
        // The fields that have one value; what the others mean SQLite finds out by itself.
        for offset in Array(0..<24) + Array(44..<48) + Array(52..<60) + Array(64..<68) {
            var damaged = sound
            damaged[offset] ^= 0x20
            try damaged.write(to: URL(fileURLWithPath: replica.database.string))
            for suffix in ["-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: replica.database.string + suffix)
            }
            #expect(throws: ReplicaDamage.self, "byte \(offset)") {
                try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
            }
            let findings = try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger)
            #expect(findings.allSatisfy { $0.isMended })
            let mended = try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
            let left = try mended.unsynced().items
            #expect(left == pending, "byte \(offset): \(findings.map(\.text))")
            let remarks = try mended.check(open: NothingOpen(), isRepairing: false).findings
            #expect(remarks.isEmpty, "byte \(offset): \(remarks)")
            try mended.close()
        }
    }

    /// Changes a closed database as no program of ours does.
    private func sabotage(_ replica: DamagedReplica, _ sql: String) async throws {
        let script = "import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.executescript(sys.argv[2]); d.commit()"
        let outcome = try await Command.python(script, replica.database.string, "PRAGMA foreign_keys = OFF; " + sql)
        try #require(outcome.status == 0, "\(outcome.errors)")
    }

    /// Damages the definition of a table: the database cannot be written anew with all of its rows.
    private func damageDefinition(_ replica: DamagedReplica, _ sql: String = "") async throws {
        try await sabotage(
            replica,
            """
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = replace(sql, 'kind BETWEEN 1 AND 7', 'kind BETWEEN 1 AND 3') WHERE name = 'inode';
            \(sql)
            """)
    }

    enum LastUse: CaseIterable {
        case duringThisBoot, beforePowerCut, unknown, closedBeforeReboot
    }

    @Test(
        "CHECK-3: after a power cut a rebuilt database does not trust downloads that were not synced",
        arguments: LastUse.allCases)
    func unsyncedDownloads(last: LastUse) async throws {
        let replica = try await DamagedReplica(
            isClosed: last == .closedBeforeReboot, bootIdentifier: last == .duringThisBoot ? nil : "an earlier boot")
        defer { replica.remove() }
        let isUnknown = last == .unknown
        try await damageDefinition(
            replica, isUnknown ? "DELETE FROM domain WHERE key IN ('bootIdentifier', 'wasClosed');" : "")
        _ = try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger)
        let rebuilt = try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
        let isTrusted = last == .duringThisBoot || last == .closedBeforeReboot
        let expected: ContentState = isTrusted ? .materialized : .dataless
        for name in ["file0", "below0"] {
            let number = try #require(try rebuilt.number(name))
            let content = try rebuilt.database.inode(number)?.content
            #expect(content == expected, "\(name)")
        }
        try rebuilt.close()
        let (reachable, _) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
    }

    @Test("CHECK-5: unsent files whose row says that they have no name keep their content and are pending")
    func wrongLinkCountsCostNothing() async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        try await sabotage(replica, "UPDATE inode SET linkCount = 0 WHERE kind = 1")
        let opened = try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
        #expect(opened.findings.contains { $0.contains("count of 0 links") })
        try opened.close()
        let (reachable, remarks) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
        // Until a check has repaired and reported it, it is said.
        #expect(!remarks.isEmpty && remarks.allSatisfy { $0.isMended })
        _ = try replica.repair()
        let left = try replica.reachableTexts().remarks
        #expect(left.isEmpty, "\(left)")
    }

    @Test("CHECK-5: unsent files whose row says that their content is not here keep it", arguments: [0, 1])
    func wrongContentStatesCostNothing(state: Int) async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        try await sabotage(
            replica, "UPDATE inode SET content = \(state), localBytes = 0 WHERE kind = 1 AND hasContentFile")
        let (reachable, _) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
    }

    @Test("CHECK-5: a transaction of opening that fails has removed no content file")
    func failedOpeningRemovesNothing() async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        // A nameless file beside a nameless directory that still has children.
        try await sabotage(
            replica,
            """
            UPDATE inode SET linkCount = 0 WHERE number IN (SELECT inode FROM item WHERE name IN ('d', 'n0', 'file3'));
            DELETE FROM item WHERE name = 'd'
            """)
        _ = try replica.repair()
        let (reachable, remarks) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
        #expect(remarks.isEmpty, "\(remarks)")
    }

    @Test(
        "CHECK-6: where its remote is comes from the database when only domain.json is damaged, else nothing is changed"
    )
    func unknownRemoteChangesNothing() async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        try Data("{".utf8).write(to: URL(fileURLWithPath: replica.directory.appending("domain.json").string))
        let sound = try #require(FileManager.default.contents(atPath: replica.database.string))
        try Data(repeating: 0xA5, count: sound.count).write(to: URL(fileURLWithPath: replica.database.string))
        #expect(throws: ReplicaDamage.self) {
            try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger)
        }
        #expect(FileManager.default.contents(atPath: replica.database.string)?.count == sound.count)
        let recovered = replica.directory.appending("recovered").string
        let names = try FileManager.default.contentsOfDirectory(atPath: recovered)
        #expect(names.isEmpty)
        _ = try ReplicaRebuild.run(in: replica.directory, isForRemoval: true, logger: DamagedReplica.logger)
        let (reachable, _) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
        var headless = sound
        headless[44] ^= 0x20
        try headless.write(to: URL(fileURLWithPath: replica.database.string))
        _ = try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger)
        let record = try DomainRecord(ofReplicaIn: replica.directory)
        #expect(record?.source == "memory:remote")
    }

    @Test("CHECK-3: a damaged letter in the definition of a table is found")
    func damagedDefinitionIsFound() async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        try await damageDefinition(replica)
        #expect(throws: ReplicaDamage.self) { try ReplicaInspection.findings(in: replica.directory) }
        _ = try replica.repair()
        let (reachable, remarks) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
        #expect(remarks.isEmpty, "\(remarks)")
    }

    @Test(
        "CHECK-3: a database that is empty or missing beside its log is damaged, and a rebuild keeps the log",
        arguments: [true, false])
    func lostBesideItsLog(isMissing: Bool) async throws {
        let replica = try await DamagedReplica(isClosed: false)
        defer { replica.remove() }
        let log = replica.database.string + "-wal"
        let before = try #require(FileManager.default.contents(atPath: log))
        try #require(!before.isEmpty)
        if isMissing {
            try FileManager.default.removeItem(atPath: replica.database.string)
        } else {
            try Data().write(to: URL(fileURLWithPath: replica.database.string))
        }
        let directory = replica.directory
        #expect(throws: ReplicaDamage.self) { try DomainRecord(ofReplicaIn: directory) }
        #expect(throws: ReplicaDamage.self) { try DomainRecord.refuseNewerReplica(in: directory) }
        #expect(throws: ReplicaDamage.self) { try ReplicaInspection.findings(in: directory) }
        #expect(throws: ReplicaDamage.self) {
            try Replica(at: directory, readers: 2, logger: DamagedReplica.logger)
        }
        #expect(FileManager.default.contents(atPath: log) == before)
        _ = try ReplicaRebuild.run(in: directory, logger: DamagedReplica.logger)
        let recovered = directory.appending("recovered").string
        let kept = (FileManager.default.enumerator(atPath: recovered)?.compactMap { $0 as? String } ?? [])
            .filter { $0.hasSuffix(ReplicaDatabase.fileName + "-wal") }
            .compactMap { FileManager.default.contents(atPath: "\(recovered)/\($0)") }
        #expect(kept == [before])
        let (reachable, _) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
    }

    private struct CutShort: Error {}

    /// All names with the numbers of their inodes, and how many items are pending.
    private func rows(in directory: FilePath) throws -> (names: Set<String>, pending: Int) {
        // As a mount opens it.
        let replica = try Replica(at: directory, readers: 2, finishesRecovery: false, logger: DamagedReplica.logger)
        defer { try? replica.close() }
        var (names, waiting): (Set<String>, [InodeNumber]) = ([], [.root])
        while let parent = waiting.popLast() {
            for entry in try replica.database.entries(of: parent, after: 0, limit: 10_000) {
                names.insert("\(parent) \(entry.name) \(entry.inode.number)")
                if entry.inode.kind == .directory { waiting.append(entry.inode.number) }
            }
        }
        // No download may be put where something written here lies.
        let contents = try FileManager.default.contentsOfDirectory(atPath: "\(directory)/contents")
        for number in contents.compactMap(Int64.init) {
            #expect(try replica.database.hasContentFile(InodeNumber(rawValue: number)))
        }
        return (names, try replica.unsynced().items)
    }

    @Test("an error of the disk in a database's file is damage, other errors of the disk are not") func diskErrors() {
        #expect(ReplicaDamage(DatabaseError(resultCode: .SQLITE_IOERR_CORRUPTFS)) != nil)
        #expect(ReplicaDamage(DatabaseError(resultCode: .SQLITE_IOERR_READ)) == nil)
        #expect(ReplicaDamage(DatabaseError(resultCode: .SQLITE_FULL)) == nil)
    }

    @Test("CHECK-4: a rebuild for which the disk has no room changes nothing") func fullDisk() async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        try await damageDefinition(replica)
        let damaged = try #require(FileManager.default.contents(atPath: replica.database.string))
        let before = try FileManager.default.subpathsOfDirectory(atPath: replica.directory.string).sorted()
        #expect(throws: Errno.noSpace) {
            try ReplicaRebuild.run(
                in: replica.directory, logger: DamagedReplica.logger, reaching: { _ in },
                reading: { _, _ in throw Errno.noSpace })
        }
        #expect(FileManager.default.contents(atPath: replica.database.string) == damaged)
        #expect(try FileManager.default.subpathsOfDirectory(atPath: replica.directory.string).sorted() == before)
    }

    @Test("CHECK-4: a rebuild does not go on without a log that cannot be read") func unreadableLog() async throws {
        let replica = try await DamagedReplica(isClosed: false)
        defer { replica.remove() }
        let log = FilePath(replica.database.string + "-new")
        let kept = FilePath(log.string + "-kept")
        try log.move(to: kept)
        try log.makeDirectory()
        #expect(throws: FileProviderError.self) {
            _ = try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger)
        }
        try FileManager.default.removeItem(atPath: log.string)
        try kept.move(to: log)
        _ = try replica.repair()
        #expect(try replica.unsent.subtracting(replica.reachableTexts().texts).isEmpty)
    }

    @Test("CHECK-3: a page that the disk cannot read costs no row of other pages") func unreadablePage() async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        let original = try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
        let number = try #require(try original.number("file0"))
        // All of this table is in one page.
        let page = try #require(
            try original.database.read { db in
                try Int64.fetchOne(db, sql: "SELECT rootpage FROM sqlite_master WHERE name = 'finding'")
            })
        try original.close()
        let (database, offset) = (replica.database, (page - 1) * Int64(DatabaseHeader.pageSize))
        let findings = try ReplicaRebuild.run(
            in: replica.directory, logger: DamagedReplica.logger, reaching: { _ in },
            reading: { path, part in
                if path == database, part.contains(offset) { throw Errno.ioError }
            })
        // Not with all rows: the page has not been read.
        #expect(findings.contains { $0.text.contains("of its items are as they were") }, "\(findings)")
        let rebuilt = try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
        #expect(try rebuilt.number("file0") == number)
        #expect(try rebuilt.database.inode(number)?.content == .materialized)
        try rebuilt.close()
        let (reachable, _) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
    }

    @Test(
        "CHECK-4: a rebuild that is cut short loses no row: it begins again, or is finished when the replica is opened",
        arguments: RebuiltDatabase.Step.allCases, [true, false])
    func rebuildIsCutShort(at last: RebuiltDatabase.Step, isWhole: Bool) async throws {
        // Not closed, most rows are in the write-ahead log.
        let replica = try await DamagedReplica(isClosed: !isWhole)
        defer { replica.remove() }
        if isWhole {
            var damaged = try #require(FileManager.default.contents(atPath: replica.database.string))
            try #require(damaged.count > 44)
            damaged[44] ^= 0x20
            try damaged.write(to: URL(fileURLWithPath: replica.database.string))
        } else {
            try await damageDefinition(replica)
        }
        let uninterrupted = replica.directory.removingLastComponent().appending("uninterrupted")
        try DiskImage.copy(replica.directory, to: uninterrupted)
        _ = try ReplicaRebuild.run(in: uninterrupted, logger: DamagedReplica.logger)
        let expected = try rows(in: uninterrupted)
        try #require(expected.names.count > 10)

        let damaged = try #require(FileManager.default.contents(atPath: replica.database.string))
        let logs = ["replica.sqlite-redo", "replica.sqlite-new"].compactMap {
            FileManager.default.contents(atPath: "\(replica.directory)/\($0)")
        }
        let before = try FileManager.default.contentsOfDirectory(atPath: "\(replica.directory)/contents")
        #expect(throws: CutShort.self) {
            try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger) { step in
                if step == last { throw CutShort() }
            }
        }
        if last == .made {
            #expect(FileManager.default.contents(atPath: replica.database.string) == damaged)
            let contents = try FileManager.default.contentsOfDirectory(atPath: "\(replica.directory)/contents")
            #expect(Set(contents) == Set(before))
            // SIGKILL leaves what was made.
            for suffix in ["-anew", "-anew-wal"] {
                try Data("half".utf8).write(to: URL(fileURLWithPath: replica.database.string + suffix))
            }
            _ = try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger)
        }
        let found = try rows(in: replica.directory)
        #expect(found.names == expected.names && found.pending == expected.pending)
        let left = try FileManager.default.contentsOfDirectory(atPath: replica.directory.string)
        #expect(!left.contains { $0.contains("-anew") || $0.contains("-rebuilt") }, "\(left)")
        let (reachable, _) = try replica.reachableTexts()
        #expect(replica.unsent.isSubset(of: reachable))
        if !isWhole {
            let recovered = "\(replica.directory)/recovered"
            let kept = (FileManager.default.enumerator(atPath: recovered)?.compactMap { $0 as? String } ?? [])
                .filter { $0.hasSuffix("-redo") || $0.hasSuffix("-new") }
                .compactMap { FileManager.default.contents(atPath: "\(recovered)/\($0)") }
            #expect(Set(kept) == Set(logs))
        }
    }

    @Test(
        "CHECK-1: a check without --repair leaves a rebuild that was cut short; one with it reports what that found",
        arguments: [RebuiltDatabase.Step.complete, .logsAside, .databaseAside])
    func rebuildWaits(at last: RebuiltDatabase.Step) async throws {
        let replica = try await DamagedReplica(isClosed: true)
        defer { replica.remove() }
        try await damageDefinition(replica)
        let uninterrupted = replica.directory.removingLastComponent().appending("uninterrupted")
        try DiskImage.copy(replica.directory, to: uninterrupted)
        let names = try ReplicaRebuild.run(in: uninterrupted, logger: DamagedReplica.logger).compactMap(\.name)
        try #require(!names.isEmpty)
        #expect(throws: CutShort.self) {
            try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger) { step in
                if step == last { throw CutShort() }
            }
        }
        let left = try FileManager.default.subpathsOfDirectory(atPath: replica.directory.string).sorted()
        #expect(throws: ReplicaDamage.self) { try ReplicaInspection.findings(in: replica.directory) }
        #expect(try FileManager.default.subpathsOfDirectory(atPath: replica.directory.string).sorted() == left)
        let found = try ReplicaRebuild.run(in: replica.directory, logger: DamagedReplica.logger)
        for name in names { #expect(found.contains { $0.text.hasPrefix("'\(name)': ") }, "\(name): \(found)") }
        let opened = try Replica(at: replica.directory, readers: 2, logger: DamagedReplica.logger)
        defer { try? opened.close() }
        #expect(try opened.database.keptFindings() == [])
    }
}
