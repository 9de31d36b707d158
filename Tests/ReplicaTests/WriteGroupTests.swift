import Dispatch
import FileProvider
import Foundation
import ReplicaTestSupport
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Replica

/// Transactions that wait for each other are committed as one, without any other effect than the time they take.
@Suite struct WriteGroupTests {
    let fixture: ReplicaFixture

    init() throws {
        fixture = try ReplicaFixture()
    }

    private struct Refusal: Error, Hashable {
        var number: Int
    }

    /// Runs `body` while another transaction runs, which ends when so many wait.
    private func whileHeld<Value: Sendable>(
        _ replica: Replica, until count: Int, _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let hasBegun = Mutex(false)
        let gate = DispatchSemaphore(value: 0)
        let holder = Thread {
            try? replica.database.write { _ in
                hasBegun.withLock { $0 = true }
                gate.wait()
            }
        }
        holder.start()
        #expect(await eventually(within: .seconds(30)) { hasBegun.withLock { $0 } })
        let task = Task { try await body() }
        #expect(await eventually(within: .seconds(30)) { replica.database.group.count == count })
        gate.signal()
        return try await task.value
    }

    /// How many transactions the log holds.
    private func commits() throws -> Int {
        let log = fixture.directory.appending(ReplicaDatabase.fileName).string + "-wal"
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: log)))
        let (header, frame) = (32, 24 + 4096)
        // The last frame of a transaction says how long the database is then.
        return stride(from: header, to: bytes.count - frame + 1, by: frame)
            .count { start in bytes[(start + 4)..<(start + 8)].contains { $0 != 0 } }
    }

    @Test("each has its own answer, one that fails takes nothing with it, and they are few transactions")
    func together() async throws {
        let replica = try fixture.replica()
        try await replica.list([], open: fixture.open)
        let open = fixture.open
        let before = try commits()
        let answers = try await whileHeld(replica, until: 100) {
            await withTaskGroup(of: (Int, Result<Int, Refusal>).self) { group in
                for number in 0..<100 {
                    group.addTask {
                        do {
                            let (value, _) = try await replica.ingest(open: open) { ingestion in
                                try ingestion.placement.place(.file("f\(number)"), in: .root)
                                if number % 10 == 7 { throw Refusal(number: number) }
                                return number * 2
                            }
                            return (number, .success(value))
                        } catch {
                            return (number, .failure(error as? Refusal ?? Refusal(number: -1)))
                        }
                    }
                }
                return await group.reduce(into: [Int: Result<Int, Refusal>]()) { $0[$1.0] = $1.1 }
            }
        }
        for number in 0..<100 {
            #expect(answers[number] == (number % 10 == 7 ? .failure(Refusal(number: number)) : .success(number * 2)))
        }
        #expect(try replica.names().count == 90)
        #expect(try !replica.names().contains("f7"))
        #expect(try replica.database.defects() == [])
        let written = try commits() - before
        #expect(written < 60, "\(written)")
        #expect(replica.database.group.count == 0)
    }

    @Test("what changes names and what does not go one after the other, in their order") func inOrder() async throws {
        let replica = try fixture.replica()
        try await replica.list([.file("a")], open: fixture.open)
        let open = fixture.open
        let (number, seen) = (try #require(try replica.number("a")), Seen())
        _ = try await whileHeld(replica, until: 6) {
            await withTaskGroup(of: Void.self) { group in
                for turn in 0..<6 {
                    // Each is in the queue before the next one comes.
                    #expect(await eventually(within: .seconds(30)) { replica.database.group.count == turn })
                    group.addTask {
                        _ = try? await replica.ingest(open: open, changingNames: turn % 2 == 0) { ingestion in
                            seen.note(turn)
                            try ingestion.versions.settle(number)
                        }
                    }
                }
            }
        }
        #expect(seen.turns == [0, 1, 2, 3, 4, 5])
    }

    @Test("what one that fails has done outside the database is taken back before the next one") func undone()
        async throws
    {
        let replica = try fixture.replica()
        let seen = Seen()
        _ = try await whileHeld(replica, until: 2) {
            await withTaskGroup(of: Void.self) { group in
                for turn in 0..<2 {
                    #expect(await eventually(within: .seconds(30)) { replica.database.group.count == turn })
                    group.addTask {
                        try? await replica.database.write(undoing: TransactionUndo { seen.note(turn) }) { _ in
                            if turn == 0 { throw Refusal(number: turn) }
                            seen.note(turn)
                        }
                    }
                }
            }
        }
        #expect(seen.turns.prefix(2) == [0, 1])
    }

    @Test("who was cancelled before does nothing") func cancelled() async throws {
        let replica = try fixture.replica()
        try await replica.list([], open: fixture.open)
        let open = fixture.open
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await replica.ingest(open: open) { try $0.placement.place(.file("f"), in: .root) }.1
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(try replica.names() == [])
    }

    private final class Seen: Sendable {
        private let noted = Mutex<[Int]>([])

        func note(_ turn: Int) { noted.withLock { $0.append(turn) } }

        var turns: [Int] { noted.withLock { $0 } }
    }
}
