import FileProvider
import Foundation
import GRDB
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// What every ``ProviderStore`` promises, checked for the one of a domain and for the one in memory.
@Suite struct ProviderStoreTests {
    enum Kind: CaseIterable { case database, memory }
    struct Failure: Error {}
    struct Move: Codable, Hashable {
        var from: String
        var to: [UInt8]
    }

    static let numbers = ProviderStoreNamespace<Int>("numbers")
    static let moves = ProviderStoreNamespace<Move>("moves")

    private func run(_ kind: Kind, _ body: (any ProviderStore) throws -> Void) throws {
        if kind == .memory { return try body(InMemoryProviderStore()) }
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let store = try ProviderDatabase(at: scratch["store"], reserve: MetadataReserve(in: scratch.path))
        defer { try? store.close() }
        try body(store)
    }

    @Test(
        "records are read as they were put, replaced and removed, in namespaces of their own", arguments: Kind.allCases)
    func records(kind: Kind) throws {
        try run(kind) { store in
            let move = Move(from: "a\u{0}/\u{1F600}", to: [0, 0xFF])
            try store.put(move, at: "one", in: Self.moves, durability: .synced)
            try store.put(1, at: "one", in: Self.numbers)
            #expect(try store.get("one", in: Self.moves) == move)
            #expect(try store.get("one", in: Self.numbers) == 1)
            #expect(try store.get("two", in: Self.numbers) == nil)
            try store.put(2, at: "one", in: Self.numbers)
            #expect(try store.list(in: Self.numbers).map(\.record) == [2])
            try store.remove("one", in: Self.numbers)
            try store.remove("never", in: Self.numbers)
            #expect(try store.list(in: Self.numbers).isEmpty)
            #expect(try store.list(in: Self.moves).map(\.key) == ["one"])
        }
    }

    static let hostile: [[UInt8]] = [
        [], [0], [0, 0], [0xFF], [0xFF, 0], [0xFF, 0xFF], [0xFF, 0xFF, 1], Array("a".utf8), Array("a%".utf8),
        Array("a_".utf8),
        Array("a\u{0}b".utf8), Array("'; DROP TABLE record; --".utf8), Array("\u{e9}".utf8), Array("e\u{301}".utf8),
        [0xC3],
        [UInt8](repeating: 0x61, count: 100_000),
    ]

    @Test("keys may be any bytes, and are told apart and ordered byte by byte", arguments: Kind.allCases)
    func hostileKeys(kind: Kind) throws {
        try run(kind) { store in
            for (number, key) in Self.hostile.enumerated() {
                try store.put(number, at: ProviderStoreKey(key), in: Self.numbers)
            }
            try store.put(0, at: "x", in: ProviderStoreNamespace<Int>("num\u{0}bers"))
            for (number, key) in Self.hostile.enumerated() {
                #expect(try store.get(ProviderStoreKey(key), in: Self.numbers) == number)
            }
            let sorted = Self.hostile.sorted { $0.lexicographicallyPrecedes($1) }
            #expect(try store.list(in: Self.numbers).map(\.key.bytes) == sorted)
            for prefix in Self.hostile {
                let found = try store.list(in: Self.numbers, prefix: ProviderStoreKey(prefix)).map(\.key.bytes)
                #expect(found == sorted.filter { $0.starts(with: prefix) }, "\(prefix.prefix(10))")
            }
        }
    }

    @Test(
        "a transaction whose body throws changes nothing; within it its own changes are seen", arguments: Kind.allCases)
    func rollBack(kind: Kind) throws {
        try run(kind) { store in
            try store.put(1, at: "kept", in: Self.numbers)
            #expect(throws: Failure.self) {
                try store.write(.synced) { transaction in
                    try transaction.put(2, at: "kept", in: Self.numbers)
                    try transaction.put(3, at: "kept", in: Self.numbers)
                    try transaction.put(4, at: "new", in: Self.numbers)
                    try transaction.put(Move(from: "", to: []), at: "new", in: Self.moves)
                    try transaction.remove("kept", in: Self.numbers)
                    #expect(try transaction.get("kept", in: Self.numbers) == nil)
                    #expect(try transaction.list(in: Self.numbers).map(\.record) == [4])
                    throw Failure()
                }
            }
            #expect(try store.list(in: Self.numbers).map(\.record) == [1])
            #expect(try store.list(in: Self.moves).isEmpty)
            let value = try store.write(.committed) { transaction in
                try transaction.put(5, at: "new", in: Self.numbers)
                return try transaction.get("kept", in: Self.numbers)
            }
            #expect(value == 1)
            #expect(try store.list(in: Self.numbers).map(\.record) == [1, 5])
        }
    }

    @Test("a record of another type is an error that names it, or is left out and stays", arguments: Kind.allCases)
    func unreadable(kind: Kind) throws {
        try run(kind) { store in
            try store.put(1, at: "a", in: Self.numbers)
            try store.put("text", at: "b", in: ProviderStoreNamespace<String>("numbers"))
            let error = #expect(throws: FileProviderError.self) { try store.get("b", in: Self.numbers) }
            #expect(error?.errno == .ioError && error?.message.contains("'b' of 'numbers'") == true)
            #expect(throws: FileProviderError.self) { try store.list(in: Self.numbers) }
            var errors = 0
            #expect(try store.list(in: Self.numbers, onUnreadable: { _ in errors += 1 }).map(\.record) == [1])
            #expect(errors == 1)
            #expect(try store.get("b", in: ProviderStoreNamespace<String>("numbers")) == "text")
        }
    }

    @Test("transactions of many threads take turns, and readers see whole ones", arguments: Kind.allCases)
    func concurrency(kind: Kind) throws {
        try run(kind) { store in
            try store.write(.committed) { transaction in
                for key in ["a", "b"] { try transaction.put(0, at: ProviderStoreKey(key), in: Self.numbers) }
            }
            DispatchQueue.concurrentPerform(iterations: 8) { thread in
                for round in 0..<50 {
                    do {
                        if thread % 2 == 0 {
                            try store.write(round % 10 == 0 ? .synced : .committed) { transaction in
                                for key: ProviderStoreKey in ["a", "b"] {
                                    let number = try transaction.get(key, in: Self.numbers) ?? 0
                                    try transaction.put(number + 1, at: key, in: Self.numbers)
                                }
                            }
                        } else {
                            let seen = try store.list(in: Self.numbers).map(\.record)
                            #expect(seen.count == 2 && seen[0] == seen[1])
                        }
                    } catch {
                        Issue.record(error)
                    }
                }
            }
            #expect(try store.list(in: Self.numbers).map(\.record) == [200, 200])
        }
    }
}

/// The provider's store of a domain on the disk.
@Suite struct ProviderDatabaseTests {
    private static let numbers = ProviderStoreNamespace<Int>("numbers")
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func withReplica(_ body: (FilePath, () throws -> Replica) throws -> Void) throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let directory = scratch["domain"]
        try body(directory) { try Replica(at: directory, readers: 2, logger: Self.logger) }
    }

    /// A replica that was closed, with many records in its provider's store.
    private func makeRecords(_ count: Int, _ open: () throws -> Replica) throws {
        let replica = try open()
        try replica.providerStore.write(.committed) { transaction in
            for number in 0..<count { try transaction.put(number, at: ProviderStoreKey("\(number)"), in: Self.numbers) }
        }
        try replica.close()
    }

    private func recovered(_ directory: FilePath) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory.appending("recovered").string)
            .filter { $0.hasPrefix("provider-") }
    }

    @Test("what was committed is there after the domain was closed, and after a SIGKILL") func survival() throws {
        try withReplica { directory, open in
            let replica = try open()
            try replica.providerStore.put(1, at: "committed", in: Self.numbers)
            try replica.providerStore.put(2, at: "synced", in: Self.numbers, durability: .synced)
            // The files of a process that dies now.
            let copy = FilePath(directory.string + "-killed")
            try DiskImage.copy(directory, to: copy)
            try replica.close()
            #expect(throws: FileProviderError.self) { try replica.providerStore.get("synced", in: Self.numbers) }
            for directory in [directory, copy] {
                let again = try Replica(at: directory, readers: 2, logger: Self.logger)
                #expect(try again.providerStore.list(in: Self.numbers).map(\.record) == [1, 2])
                #expect(again.findings == [])
                try again.close()
            }
        }
    }

    @Test("only a synced transaction has SQLite sync its log") func durability() throws {
        try withReplica { _, open in
            let replica = try open()
            defer { try? replica.close() }
            let synchronous = "PRAGMA synchronous"
            for (durability, expected) in [(ProviderStoreDurability.committed, 1), (.synced, 2), (.committed, 1)] {
                let found = try replica.providerStore.transaction(durability) { try Int.fetchOne($0, sql: synchronous) }
                #expect(found == expected)
            }
        }
    }

    @Test("a full disk is ENOSPC that names the store, and what was there stays") func fullDisk() throws {
        try withReplica { _, open in
            let replica = try open()
            defer { try? replica.close() }
            let store = replica.providerStore
            try store.put(1, at: "kept", in: Self.numbers)
            try store.transaction(.committed) { db in
                let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
                try db.execute(sql: "PRAGMA max_page_count = \(pages + 2)")
            }
            let error = #expect(throws: FileProviderError.self) {
                try store.put(
                    String(repeating: "x", count: 100_000), at: "large", in: ProviderStoreNamespace<String>("texts"))
            }
            #expect(error?.errno == .noSpace && error?.message.contains("store") == true)
            #expect(try store.get("kept", in: Self.numbers) == 1)
            try store.put(2, at: "kept", in: Self.numbers)
        }
    }

    enum Damage: CaseIterable { case header, noDatabase, truncated, page, empty, missing }

    @Test(
        "a damaged store is moved to recovered/ and reported, with the records that can be read kept",
        arguments: Damage.allCases)
    func damage(_ damage: Damage) throws {
        try withReplica { directory, open in
            try makeRecords(5000, open)
            let path = directory.appending(ProviderDatabase.fileName).string
            // Without free pages, so that a page that is damaged or missing has records.
            let file = try DatabaseQueue(path: path)
            try file.vacuum()
            try file.close()
            var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
            switch damage {
            case .header: bytes[3] ^= 0x20
            case .noDatabase: bytes = Data(repeating: 0x41, count: bytes.count)
            case .truncated: bytes = bytes.prefix(bytes.count / 2 / 4096 * 4096)
            case .page:
                for page in 10..<12 {
                    bytes.replaceSubrange(page * 4096..<page * 4096 + 4096, with: Data(repeating: 0xA5, count: 4096))
                }
            case .empty: bytes = Data()
            case .missing: break
            }
            // A log that is left behind goes with the file.
            let isLost = damage == .empty || damage == .missing
            try Data(repeating: 1, count: isLost ? 8192 : 0).write(to: URL(fileURLWithPath: path + "-wal"))
            if damage == .missing {
                try FileManager.default.removeItem(atPath: path)
            } else {
                try bytes.write(to: URL(fileURLWithPath: path))
            }
            let found = try ReplicaInspection.findings(in: directory)
            #expect(
                found.contains { $0.kind == .database && !$0.isMended && $0.text.contains("provider's store") },
                "\(found)")
            #expect(try recovered(directory) == [])

            let replica = try open()
            #expect(
                replica.findings.count == 1 && replica.findings[0].contains("provider's store"), "\(replica.findings)")
            #expect(try recovered(directory).count == 1)
            let kept = try replica.providerStore.list(in: Self.numbers)
            #expect(kept.allSatisfy { $0.key == ProviderStoreKey("\($0.record)") })
            switch damage {
            case .header: #expect(kept.count == 5000)
            case .truncated, .page: #expect((1..<5000).contains(kept.count), "\(kept.count)")
            case .noDatabase, .empty, .missing: #expect(kept.isEmpty)
            }
            // `yonder check` tells of it once more, and the new store is sound.
            let checked = try replica.check(open: NothingOpen(), isRepairing: true).findings
            #expect(checked.map(\.isMended) == [true], "\(checked)")
            #expect(checked.allSatisfy { $0.text.contains("provider's store") })
            try replica.providerStore.put(7, at: "new", in: Self.numbers)
            try replica.close()
            let again = try open()
            #expect(again.findings == [])
            #expect(try again.providerStore.get("new", in: Self.numbers) == 7)
            try again.close()
        }
    }

    @Test("a rebuild of a damaged store that is cut short loses no record", arguments: RebuiltDatabase.Step.allCases)
    func rebuildIsCutShort(at last: RebuiltDatabase.Step) throws {
        try withReplica { directory, open in
            try makeRecords(50, open)
            let path = directory.appending(ProviderDatabase.fileName).string
            var damaged = try Data(contentsOf: URL(fileURLWithPath: path))
            damaged[3] ^= 0x20
            try damaged.write(to: URL(fileURLWithPath: path))
            #expect(throws: CutShort.self) {
                _ = try ProviderDatabase.open(
                    in: directory, wasMade: true, reserve: MetadataReserve(in: directory)
                ) { step in
                    if step == last { throw CutShort() }
                }
            }
            let replica = try open()
            defer { try? replica.close() }
            #expect(
                replica.findings.count == 1 && replica.findings[0].contains("provider's store"), "\(replica.findings)")
            #expect(try replica.providerStore.list(in: Self.numbers).map(\.record).sorted() == Array(0..<50))
            let kept = try recovered(directory).contains { folder in
                FileManager.default.fileExists(
                    atPath: directory.appending("recovered/\(folder)/\(ProviderDatabase.fileName)").string)
            }
            #expect(kept)
        }
    }

    private struct CutShort: Error {}

    @Test("a record whose text is damaged is found by a check, and set aside by one that repairs") func damagedRecord()
        throws
    {
        try withReplica { directory, open in
            try makeRecords(3, open)
            let replica = try open()
            defer { try? replica.close() }
            let store = replica.providerStore
            try store.transaction(.committed) {
                try $0.execute(sql: "UPDATE record SET value = '{\"' WHERE key = x'31'")
            }
            let found = try replica.check(open: NothingOpen(), isRepairing: false).findings
            #expect(found.map(\.isMended) == [false] && found[0].text.contains("'1' of 'numbers'"), "\(found)")
            let repaired = try replica.check(open: NothingOpen(), isRepairing: true).findings
            #expect(repaired.map(\.isMended) == [true])
            #expect(try store.list(in: Self.numbers).map(\.record) == [0, 2])
            let aside = try store.query { try String.fetchAll($0, sql: "SELECT value FROM unreadable") }
            #expect(aside == ["{\""])
            #expect(try replica.check(open: NothingOpen(), isRepairing: false).findings.isEmpty)
        }
    }

    @Test("a store that a newer version wrote is refused") func newerStore() throws {
        try withReplica { directory, open in
            try makeRecords(1, open)
            let queue = try DatabaseQueue(path: directory.appending(ProviderDatabase.fileName).string)
            try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('0099 of a newer one')") }
            try queue.close()
            let error = #expect(throws: FileProviderError.self) { try open() }
            #expect(error?.code == .newerExtensionVersionFound)
        }
    }

    @Test("the records survive a metadata database that is made anew") func rebuiltReplica() throws {
        try withReplica { directory, open in
            let replica = try open()
            try replica.database.set(.source, to: "memory:")
            try replica.providerStore.put(1, at: "a", in: Self.numbers)
            try replica.close()
            try Data(
                "no database, certainly none, but longer than a header is, which has one hundred bytes in all of its fields"
                    .utf8
            )
            .write(to: URL(fileURLWithPath: directory.appending(ReplicaDatabase.fileName).string))
            try DomainSidecar(source: "memory:", mountpoint: nil, options: nil).write(in: directory)
            _ = try ReplicaRebuild.run(in: directory, logger: Self.logger)
            let again = try open()
            #expect(try again.providerStore.get("a", in: Self.numbers) == 1)
            try again.close()
        }
    }
}
