import FileProviderPaths
import FileProviderTesting
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
        ]
        for seed in UInt64(1)...10 {
            var model = LedgerModel(seed: seed)
            model.run(steps: 15_000)
            #expect(model.violation == nil, "seed \(seed)")
            // A run in which nothing of this happens proves nothing.
            for name in names { #expect(model.counts[name, default: 0] >= 5, "seed \(seed): \(name)") }
        }
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
