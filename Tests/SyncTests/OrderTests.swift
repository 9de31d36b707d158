import Foundation
import TestSupport
import Testing

extension EngineTests {
    /// Both sides change the same things in every order, and in the end they are the same and nothing is lost.
    @Suite(.tags(.long)) struct OrderTests {
        /// What either side may do to the tree that every script begins with.
        private static let changes: [Script.Change] = [
            .create("n"), .makeDirectory("n"), .create("d/n"), .edit("a"), .edit("d/x"), .move("a", to: "n"),
            .move("a", to: "e/a"), .move("a", to: "b"), .move("d", to: "n"), .move("d", to: "e/d"),
            .move("e", to: "d/e"), .move("d/x", to: "x"), .delete("a"), .delete("d"), .delete("d/x"), .changeType("a"),
            .changeType("d"),
        ]

        @Test("CONFLICT-7: every pair of changes in every order") func everyPairOfChangesInEveryOrder() async throws {
            var scripts: [Script] = []
            var pair = 0
            for local in Self.changes {
                for remote in Self.changes {
                    let (here, there) = (Script.Step.change(.local, local), Script.Step.change(.remote, remote))
                    scripts.append(Script([here, there]))
                    scripts.append(Script([there, here]))
                    // What is known and what is sent in between: one of each in turn, over all pairs.
                    let between: [[Script.Step]] = [
                        [here, there, .ingest], [there, .ingest, here],
                        [here, .operation(0), there, .operation(0), .ingest], [there, here, .operation(0), .ingest],
                    ]
                    scripts.append(Script(between[pair % 4]))
                    scripts.append(Script(between[(pair + 1) % 4]))
                    pair += 1
                }
            }
            try await check(scripts, "every pair")
        }

        @Test("CONFLICT-7: three changes on each side in many orders") func threeChangesOnEachSideInManyOrders()
            async throws
        {
            let seed = environment("YONDER_SEED") ?? 20_260_131
            var numbers = SeededNumbers(seed: UInt64(seed))
            let scripts = (0..<(environment("YONDER_ORDERS") ?? 300)).map { _ in Self.script(&numbers) }
            try await check(scripts, "seed \(seed)")
        }

        @Test func lostAnswersAndCrashesInManyOrders() async throws {
            let seed = environment("YONDER_SEED") ?? 20_260_131
            var numbers = SeededNumbers(seed: UInt64(seed) &+ 1)
            let scripts = (0..<(environment("YONDER_ORDERS") ?? 200)).map { _ in
                Script(
                    Self.script(&numbers).steps.map { step in
                        guard case .operation(let number) = step else { return step }
                        switch Int.random(in: 0..<4, using: &numbers) {
                        case 0: return .lostOperation(number)
                        case 1: return .fatalOperation(number, isApplied: Bool.random(using: &numbers))
                        default: return step
                        }
                    })
            }
            try await check(scripts, "with faults, seed \(seed)")
        }

        /// What failed once.
        @Test(arguments: [
            "L edit d/x; R type d; ingest",
            "L move e d/e; R delete d",
            "L move d e/d; R move e d/e",
            "R move a e/a; ingest; L move e/a d/x; R type d/x; ingest; L move d/x e/d",
            "R create e/d; ingest; L move e/d e/f/n; R delete e/f; ingest",
            "R delete e; L move d/x e/d",
            "R type d; L type e; ingest; L move e d; R edit d",
            "L mkdir n; lost 2; L move a b; R move a n/n; ingest",
            "L move e d/n; lost 4; L delete d/n",
            "R mkdir e/f/n; ingest; L delete e/f/n; op 1; lost 4; L delete e/f",
            "L mkdir e/a; R move d e/a; fatal 5 unheard",
            "L type b; op 0; fatal 3 applied; R move b e/n; L type b; lost 2; R edit b",
            "L mkdir n; L move e/f n/f; L move e n/f/e; L move n e",
            """
            R mkdir d0; R mkdir d0/d1; R mkdir d2; R mkdir d2/d3; R mkdir d4; R mkdir d4/d5; ingest; \
            L mkdir X; L move d4/d5 X/d5; L move d2 X/d5/d3; L move d4 X/d5/d3/d0; L move d0 X/d5/d3/d0/d0; \
            L move X/d5/d3/d3 X/d5/d3/d1; L move X/d5/d3/d0/d0/d1 X/d5/d3/d1/d2; L move X d4; \
            R mkdir N; R move d0 N/d5; R move d2/d3 N/d5/d2; R move d2 d4/d0; R move d4/d5 N/d5/d1/d5; R move N d2
            """,
            """
            R mkdir d0; R mkdir d0/d1; R mkdir d2; R mkdir d2/d3; R mkdir d4; R mkdir d4/d5; ingest; L move d2 d4/d5/d2; \
            L move d4 d0/d5; L move d0/d5/d5/d2/d3 d0/d1/d3; R move d4/d5 d2/d3/d5; R move d0 d2/d0; \
            R move d2/d0 d2/d3/d5/d1
            """,
        ])
        func scriptsThatFailedOnce(text: String) async throws {
            #expect(try await ScriptRun.complaints(of: Script(text), in: StartingPoint()) == [])
        }

        private func environment(_ name: String) -> Int? {
            ProcessInfo.processInfo.environment[name].flatMap(Int.init)
        }

        // MARK: - Making scripts

        private static let items = ["a", "b", "d", "d/x", "e", "e/f"]
        private static let places = ["n", "d/n", "e/n", "e/f/n", "a", "b", "d", "x", "e/a", "e/d", "d/e", "d/x", "n/n"]

        /// Three changes on each side of one or two items, mixed, with some of what is possible after each.
        private static func script(_ numbers: inout SeededNumbers) -> Script {
            let focus = [items.randomElement(using: &numbers) ?? "a", items.randomElement(using: &numbers) ?? "b"]
            var sides: [Script.Side] = [.local, .local, .local, .remote, .remote, .remote]
            sides.shuffle(using: &numbers)
            var steps: [Script.Step] = []
            var names = focus
            for side in sides {
                steps.append(.change(side, change(of: &names, &numbers)))
                for _ in 0..<Int.random(in: 0...3, using: &numbers) {
                    steps.append(
                        Int.random(in: 0..<3, using: &numbers) == 0
                            ? .ingest : .operation(Int.random(in: 0..<6, using: &numbers)))
                }
            }
            return Script(steps)
        }

        private static func change(of names: inout [String], _ numbers: inout SeededNumbers) -> Script.Change {
            let path = names.randomElement(using: &numbers) ?? "a"
            let place = places.randomElement(using: &numbers) ?? "n"
            switch Int.random(in: 0..<9, using: &numbers) {
            case 0:
                names.append(place)
                return .create(place)
            case 1:
                names.append(place)
                return .makeDirectory(place)
            case 2, 3: return .edit(path)
            case 4, 5, 6:
                names.append(place)
                return .move(path, to: place)
            case 7: return .delete(path)
            default: return .changeType(path)
            }
        }

        // MARK: - Running them

        private func check(_ scripts: [Script], _ what: String) async throws {
            let start = ContinuousClock.now
            let starting = try await StartingPoint()
            var failed: [(Script, [String])] = []
            try await withThrowingTaskGroup(of: (Script, [String]).self) { group in
                var remaining = scripts.makeIterator()
                func addNext() {
                    guard let script = remaining.next() else { return }
                    group.addTask { (script, try await ScriptRun.complaints(of: script, in: starting)) }
                }
                for _ in 0..<3 { addNext() }
                while let (script, complaints) = try await group.next() {
                    if !complaints.isEmpty { failed.append((script, complaints)) }
                    addNext()
                }
            }
            print("\(scripts.count) orders tried (\(what)) in \(ContinuousClock.now - start), \(failed.count) failed")
            for (script, _) in failed.prefix(environment("YONDER_FAILURES") ?? 5) {
                let (least, complaints) = try await Self.least(script, in: starting)
                Issue.record("\(least)\n  \(complaints.joined(separator: "\n  "))")
            }
            #expect(failed.isEmpty)
        }

        /// Leaves out whatever a script fails without.
        private static func least(
            _ script: Script, in starting: StartingPoint
        ) async throws -> (Script, [String]) {
            var least = script
            var complaints = try await ScriptRun.complaints(of: script, in: starting)
            var index = 0
            while index < least.steps.count {
                var shorter = least
                shorter.steps.remove(at: index)
                let found = try await ScriptRun.complaints(of: shorter, in: starting)
                if found.isEmpty {
                    index += 1
                } else {
                    (least, complaints) = (shorter, found)
                }
            }
            return (least, complaints)
        }
    }
}
