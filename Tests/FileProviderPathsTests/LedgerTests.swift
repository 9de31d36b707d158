import FileProviderPaths
import Synchronization
import TestSupport
import Testing

/// The rules of the operation ledger.
@Suite(.timeLimit(.minutes(2))) struct LedgerTests {
    @Test("The ledger keeps its rules in any order of operations, lost responses, late arrivals and restarts")
    func model() {
        let names = [
            "acknowledged", "lost response", "lost request", "retry", "late arrival", "fresh", "stale", "in flight",
            "operation in doubt", "observation in doubt", "killed", "closed", "started", "moved", "move refused",
            "response to move lost", "move lost", "late move", "item heard", "found in its old place",
            "found in its new place", "settled",
            "change restored",
        ]
        for seed in UInt64(1)...10 {
            var model = LedgerModel(seed: seed)
            model.run(steps: 15_000)
            #expect(model.violation == nil, "seed \(seed)")
            // A run in which nothing of this happens proves nothing.
            for name in names { #expect(model.counts[name, default: 0] >= 5, "seed \(seed): \(name)") }
        }
    }

    private static let settings = LedgerState.Settings(grace: .seconds(2)...(.seconds(30)))

    @Test("S3-10: what was acknowledged, or had no response, is known to the listings after an orderly end")
    func recentChanges() {
        let store = ReportingStore.temporary
        func start() -> OperationLedger { OperationLedger(Self.settings, in: store) }
        func change(_ ledger: OperationLedger, _ path: String, _ outcome: LedgerState.Outcome) {
            ledger.end(ledger.send([path]), outcome)
        }
        let first = start()
        change(first, "d/deleted", .acknowledged(.deleted))
        change(first, "d/doubtful", .unknown(.deleted))
        change(first, "d/refused", .refused)
        change(first, "d/written", .acknowledged(.written(tag: "1")))
        change(first, "e/moved", .acknowledged(.changed))
        first.close()
        let second = start()
        let found = second.recentChanges(below: "d/")
        #expect(found.map { String(decoding: $0.path, as: UTF8.self) } == ["d/deleted", "d/doubtful", "d/written"])
        #expect(found.map(\.effect) == [.deleted, nil, .written(tag: "1")])
        #expect(found.map(\.isUncertain) == [false, true, false])
        #expect(second.recentChanges(below: "e/").isEmpty)
        // What a look has decided, and what others have changed since, is so after the next restart, too.
        second.settle(found[1], as: .written(tag: "2"))
        second.forget(found[2])
        second.close()
        let third = start().recentChanges(below: "d/")
        #expect(third.map(\.effect) == [.deleted, .written(tag: "2")])
    }

    @Test("S3-10: what was acknowledged a moment before a SIGKILL is known, and what was changed since is uncertain")
    func recentChangesBeforeAKill() async {
        let store = ReportingStore.temporary
        func start() -> OperationLedger { OperationLedger(Self.settings, in: store) }
        let first = start()
        for path in ["kept", "sent again"] { first.end(first.send([path]), .acknowledged(.written(tag: "1"))) }
        #expect(await eventually { start().recentChanges(below: "").count == 2 })
        _ = first.send(["sent again"])
        let found = start().recentChanges(below: "")
        #expect(found.map(\.isUncertain) == [false, true])
        #expect(found.allSatisfy { $0.effect == .written(tag: "1") })
    }

    @Test("S3-10: what is kept for listings after a restart is bounded in number and time")
    func boundsOfRecentChanges() {
        var now = LedgerState.Moment(instant: .now, date: 1_700_000_000)
        var disk: [[UInt8]: LedgerState.Record] = [:]
        func save(_ changes: [LedgerState.DurableChange]) {
            for (name, record) in changes { disk[name] = record }
        }
        func start() -> LedgerState { LedgerState(Self.settings, restoring: Array(disk.values), at: now) }
        var first = start()
        for number in 0..<3000 {
            first.acknowledge("key \(number)", .deleted, at: now)
            now.instant += .milliseconds(1)
            if number % 100 == 0 { save(first.takeRecentChanges(at: now)) }
        }
        save(first.takeDurableChanges() + first.takeRecentChanges(at: now))
        var kept = start().recentChanges(below: "", at: now)
        #expect(kept.count >= 1500 && kept.count <= 2000)
        #expect(kept.contains { $0.path == Array("key 2999".utf8) })
        now.instant += .seconds(601)
        now.date += 601
        var second = start()
        kept = second.recentChanges(below: "", at: now)
        #expect(kept.isEmpty)
        save(second.takeDurableChanges() + second.takeRecentChanges(at: now))
        #expect(disk.isEmpty)
    }

    /// How many operations are at a path at the same time.
    private final class Occupancy: Sendable {
        private let state = Mutex<(inside: [String: Int], most: Int, ended: Int)>(([:], 0, 0))

        var most: Int { state.withLock { $0.most } }
        var ended: Int { state.withLock { $0.ended } }

        func enter(_ paths: [String]) {
            state.withLock { state in
                for path in paths {
                    state.inside[path, default: 0] += 1
                    state.most = max(state.most, state.inside[path] ?? 0)
                }
            }
        }

        func leave(_ paths: [String]) {
            state.withLock { state in for path in paths { state.inside[path, default: 0] -= 1 } }
        }

        func end() { state.withLock { $0.ended += 1 } }
    }

    @Test("Every waiter is resumed, whichever operations end, give up or are cancelled")
    func waiters() async throws {
        let ledger = OperationLedger(patience: .milliseconds(200))
        let occupancy = Occupancy()
        var random = LedgerModel.Generator(state: 7)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<400 {
                let isTree = Int.random(in: 0..<6, using: &random) == 0
                let paths = isTree ? ["a/x", "a/y"] : [["a/x", "a/y", "b"].randomElement(using: &random) ?? "b"]
                let extents: [PathExtent] = isTree ? [.below("a/")] : paths.map { .exactly($0) }
                let pause = Int.random(in: 0..<4, using: &random)
                let isCancelled = Int.random(in: 0..<5, using: &random) == 0
                group.addTask {
                    let operation = Task {
                        try await ledger.perform(claiming: extents) { _ in
                            occupancy.enter(paths)
                            let number = ledger.send(paths)
                            try? await Task.sleep(for: .milliseconds(pause))
                            ledger.end(number, .acknowledged(.changed))
                            occupancy.leave(paths)
                        }
                    }
                    let observation = Task {
                        _ = try await ledger.staleness(of: .below("a/"), requestedAt: ledger.now, atMost: .seconds(60))
                    }
                    if isCancelled {
                        operation.cancel()
                        observation.cancel()
                    }
                    _ = await (operation.result, observation.result)
                    occupancy.end()
                }
            }
        }
        #expect(occupancy.ended == 400 && ledger.claimCount == 0)
        #expect(occupancy.most == 1)
    }
}
