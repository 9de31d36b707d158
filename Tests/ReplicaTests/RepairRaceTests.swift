import Dispatch
import FileProvider
import GRDB
import ReplicaTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import Replica

/// A process opens a file, or writes to it, while a check mends it.
@Suite struct RepairRaceTests {
    let fixture: ReplicaFixture
    let replica: Replica

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    /// An inode is open as soon as a transaction asks whether it is.
    private final class OpenedMeanwhile: OpenInodes {
        private let claims = Mutex<[InodeNumber: Int]>([:])
        private let count = Atomic<Int>(0)
        private let recovered = Atomic<Int>(0)
        private let fixture: ReplicaFixture

        init(_ fixture: ReplicaFixture) { self.fixture = fixture }

        /// How many recovered files there were when a transaction asked last.
        var recoveredFiles: Int { recovered.load(ordering: .relaxed) }

        /// How often a transaction has asked.
        var questions: Int { count.load(ordering: .relaxed) }
        var isUnclaimed: Bool { claims.withLock { $0.values.allSatisfy { $0 == 0 } } }

        func isOpen(_ number: InodeNumber) -> Bool { claims.withLock { $0[number, default: 0] > 0 } }

        func claim(_ number: InodeNumber) {
            claims.withLock { $0[number, default: 0] += 1 }
            count.add(1, ordering: .relaxed)
            recovered.store(fixture.recoveredFiles.count, ordering: .relaxed)
        }

        func endClaims(_ numbers: [InodeNumber]) {
            claims.withLock { claims in for number in numbers { claims[number, default: 0] -= 1 } }
        }
    }

    /// A file whose content is here.
    private func filled() async throws -> InodeRecord {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        try await replica.fill(number)
        return try #require(try replica.database.inode(number))
    }

    private func distrust(_ inode: InodeRecord) async throws -> Bool {
        let (number, generation) = (inode.number, inode.contentGeneration)
        return try await replica.ingest(open: fixture.open, changingNames: false) {
            try $0.versions.distrust(number, generation: generation, because: "a test says so")
        }.0
    }

    @Test("CHECK-2: a file of the wrong length that a process opens during the repair keeps its content")
    func opened() async throws {
        let number = try await filled().number
        try replica.contents.setLength(of: number, to: 5)
        let open = OpenedMeanwhile(fixture)
        _ = try replica.check(open: open, isRepairing: true)
        #expect(open.questions > 0)
        #expect(open.isUnclaimed)
        #expect(fixture.contentFiles == [number.description])
        #expect(fixture.recoveredFiles.isEmpty)
        #expect(try replica.database.inode(number)?.content == .materialized)
        let findings = try replica.check(open: fixture.open, isRepairing: true).findings
        #expect(findings.contains { $0.isMended && $0.inode == number }, "\(findings)")
        #expect(fixture.contentFiles.isEmpty)
        #expect(fixture.recoveredFiles.count == 1)
        #expect(try replica.database.inode(number)?.content == .dataless)
    }

    @Test("CHECK-2: what was written here is copied before the transaction; the copy goes when the file was opened")
    func copied() async throws {
        let number = try await filled().number
        let caller = LocalCaller(user: 7, group: 8)
        _ = try replica.change(open: fixture.open) { try $0.contents.truncate(number, to: 50, caller: caller) }
        try replica.contents.setLength(of: number, to: 60)
        let open = OpenedMeanwhile(fixture)
        _ = try replica.check(open: open, isRepairing: true)
        #expect(open.recoveredFiles == 1)
        #expect(fixture.recoveredFiles.isEmpty)
        #expect(try replica.database.inode(number)?.size == 50)
        let findings = try replica.check(open: fixture.open, isRepairing: true).findings
        #expect(findings.contains { $0.isMended && $0.inode == number }, "\(findings)")
        #expect(fixture.contentFiles == [number.description])
        #expect(fixture.recoveredFiles.count == 1)
        #expect(try replica.database.inode(number)?.size == 60)
    }

    @Test(
        "CHECK-2: a file whose row violates a rule keeps its content while a process has it open",
        arguments: [
            "UPDATE inode SET localBytes = 7 WHERE number =", "UPDATE item SET name = '..' WHERE inode =",
        ])
    func violation(damage: String) async throws {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        try await replica.fill(number, 0..<10)
        try await fixture.sabotage("\(damage) \(number)")
        let found = try replica.check(open: OpenedMeanwhile(fixture), isRepairing: true).findings
        #expect(found.count { !$0.isMended && $0.inode == number } == 1, "\(found)")
        #expect(fixture.contentFiles == [number.description])
        #expect(fixture.recoveredFiles.isEmpty)
        let findings = try replica.check(open: fixture.open, isRepairing: true).findings
        #expect(findings.contains { $0.isMended && $0.inode == number }, "\(findings)")
        #expect(fixture.contentFiles.isEmpty)
        #expect(fixture.recoveredFiles.count == 1)
    }

    @Test("CHECK-2: content that differs from the remote's stays where a process has it open, or has written to it")
    func distrusted() async throws {
        let inode = try await filled()
        fixture.open.insert(inode.number)
        #expect(try await !distrust(inode))
        fixture.open.remove(inode.number)
        try await replica.database.write { db in
            try db.setContentStamp(of: inode.number, to: Replica.unknownStamp)
        }
        #expect(try await !distrust(inode))
        try await replica.database.write { db in try db.setContentStamp(of: inode.number, to: nil) }
        #expect(fixture.contentFiles == [inode.number.description])
        #expect(fixture.recoveredFiles.isEmpty)
        #expect(try await distrust(inode))
        #expect(fixture.contentFiles.isEmpty)
        #expect(fixture.recoveredFiles.count == 1)
        #expect(try replica.database.inode(inode.number)?.content == .dataless)
    }

    @Test("CHECK-2: content that was changed here after it was compared with the remote's stays") func written()
        async throws
    {
        let inode = try await filled()
        let caller = LocalCaller(user: 7, group: 8)
        _ = try replica.change(open: fixture.open) {
            try $0.contents.truncate(inode.number, to: 50, caller: caller)
        }
        #expect(try await !distrust(inode))
        #expect(fixture.contentFiles == [inode.number.description])
        #expect(fixture.recoveredFiles.isEmpty)
    }

    @Test("CHECK-2: a file whose row violates a rule, and that is written before it is mended, stays pending")
    func writtenBeforeItIsMended() async throws {
        let files = ["a", "b"]
        try await replica.list(files.map { .file($0) }, open: fixture.open)
        let numbers = try files.compactMap { try replica.number($0) }
        try #require(numbers.count == 2)
        for number in numbers { try replica.contents.create(number, size: 100).close() }
        let list = numbers.map(\.description).joined(separator: ", ")
        try await replica.database.write { db in
            try db.execute(
                sql: """
                    UPDATE item SET changedFields = \(ItemFields.contents.rawValue) WHERE inode IN (\(list));
                    CREATE TEMP TRIGGER writeOther AFTER UPDATE OF changedFields ON item BEGIN
                        UPDATE inode SET content = \(ContentState.materialized.rawValue), hasContentFile = 1, localBytes = size
                        WHERE number IN (\(list)) AND number <> NEW.inode;
                    END;
                    """)
        }
        let findings = try replica.check(open: fixture.open, isRepairing: true).findings
        let pending = try numbers.filter {
            try replica.database.item(ofInode: $0)?.changedFields.contains(.contents) == true
        }
        #expect(pending.count == 1, "\(findings)")
        #expect(findings.allSatisfy { finding in !pending.contains { $0 == finding.inode } }, "\(findings)")
    }

    @Test("CHECK-2: a content file that a transaction makes during the repair stays")
    func madeMeanwhile() async throws {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        let (replica, made, checked) = (replica, DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let making: Void = replica.database.write(async: { db in
            try db.beginContent(of: number)
            try replica.contents.create(number, size: 100).close()
            made.signal()
            // A check that did not wait for the end of the transaction would be done by then.
            _ = checked.wait(timeout: .now() + 1)
        })
        let findings = try await BlockingWork.run {
            made.wait()
            defer { checked.signal() }
            return try replica.check(open: NothingOpen(), isRepairing: true).findings
        }
        try await making
        #expect(findings == [])
        #expect(fixture.contentFiles == [number.description])
        #expect(fixture.recoveredFiles.isEmpty)
    }

    /// Evicts each file that is asked about.
    private struct Evicting: OpenInodes {
        let replica: Replica

        func isOpen(_ number: InodeNumber) -> Bool {
            try? replica.database.write { db in try db.dropContent(of: number) }
            try? replica.contents.remove(number)
            return false
        }
    }

    @Test("CHECK-1: a file that is evicted while a check looks at it does not end the check", arguments: [false, true])
    func evictedMeanwhile(isRepairing: Bool) async throws {
        _ = try await filled()
        #expect(try replica.check(open: Evicting(replica: replica), isRepairing: isRepairing).findings == [])
        #expect(fixture.contentFiles.isEmpty)
    }

    @Test("CHECK-1: a check without a repair makes no transaction for each missing content file")
    func manyMissing() async throws {
        let count = 60
        try await replica.list((0..<count).map { .file("\($0)") }, open: fixture.open)
        for file in 0..<count {
            let number = try #require(try replica.number("\(file)"))
            try await replica.fill(number)
            try replica.contents.remove(number)
        }
        let begun = Mutex(0)
        try await replica.database.write { db in
            db.trace { event in
                if "\(event)".hasPrefix("BEGIN IMMEDIATE") { begun.withLock { $0 += 1 } }
            }
        }
        let findings = try replica.check(open: fixture.open, isRepairing: false).findings
        let transactions = begun.withLock { $0 }
        #expect(findings.count == count && findings.allSatisfy { !$0.isMended })
        #expect(transactions > 0 && transactions < count / 2, "\(transactions)")
        let mended = try replica.check(open: fixture.open, isRepairing: true).findings
        #expect(mended.count == count && mended.allSatisfy(\.isMended))
    }

    @Test("CHECK-2: the empty content file of a file that is about to be made stays") func aboutToBeMade() throws {
        let number = InodeNumber(rawValue: 999)
        try replica.contents.create(number, size: 0, isFirst: true).close()
        #expect(try replica.check(open: fixture.open, isRepairing: true).findings == [])
        #expect(fixture.contentFiles == [number.description])
        #expect(fixture.recoveredFiles.isEmpty)
    }

    @Test(
        "CHECK-2: a content file that a failed transaction withdrew, and has not put back yet, is not lost",
        arguments: [false, true])
    func notPutBackYet(isRepairing: Bool) async throws {
        let inode = try await filled()
        var content = WithdrawnContent(inode.number, generation: inode.contentGeneration, in: replica.contents)
        try content.withdraw()
        #expect(fixture.contentFiles.isEmpty)
        #expect(try replica.check(open: fixture.open, isRepairing: isRepairing).findings == [])
        try content.putBack()
        #expect(try replica.check(open: fixture.open, isRepairing: isRepairing).findings == [])
        #expect(fixture.contentFiles == [inode.number.description])
        #expect(fixture.recoveredFiles.isEmpty)
        #expect(try replica.database.inode(inode.number)?.content == .materialized)
    }
}
