import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Reimports among random changes, and killed at any moment.
    @Suite struct ReimportCrashTests {
        /// What is done here at random, before a reimport and during it, with crashes: all of it arrives, nothing twice.
        @Test(arguments: 0..<30) func anythingMayHappenMeanwhile(seed: UInt64) async throws {
            var random = SeededNumbers(seed: seed)
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                for path in ["a", "d/x", "e/f/deep"] where Bool.random(using: &random) {
                    try await machine.materialize(path)
                }
                var texts: Set<String> = []
                var current = machine
                var others: [Machine] = []
                func change(_ number: Int) async throws {
                    let paths = ["a", "b", "d/x", "d/y", "e/f/deep", "new", "d/new", "e/new", "e/f/z"]
                    let (path, other) = (
                        paths.randomElement(using: &random) ?? "a", paths.randomElement(using: &random) ?? "b"
                    )
                    do {
                        switch Int.random(in: 0..<7, using: &random) {
                        case 0, 1:
                            try await current.write("text \(seed) \(number)", to: path)
                            texts.insert("text \(seed) \(number)")
                        case 2, 3: try await current.rename(path, to: other)
                        case 4: try await current.remove(path)
                        case 5: try await current.makeDirectory("made \(number)")
                        default:
                            let directories = ["d", "e", "e/f"]
                            try await current.rename(directories.randomElement(using: &random) ?? "d", to: "m\(number)")
                        }
                    } catch is LocalObstacle {}
                }
                for number in 0..<6 { try await change(number) }
                try await machine.loseIdentifiers()
                for number in 6..<18 {
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0, 1:
                        if let next = try await current.operations().randomElement(using: &random) {
                            await current.engine.runAlone(next)
                        }
                    case 2: try await change(number)
                    default:
                        guard others.count < 2 else { continue }
                        current = try current.crash()
                        others.append(current)
                    }
                }
                try await withCleanUp({ for other in others { await other.stop() } }) {
                    try await current.expectReimported()
                    // What was written and is shown here is there, and the other way round; nothing else is asked.
                    let here = Set(try await current.entries().values.compactMap(\.content)).intersection(texts)
                    let there = Set(current.provider.tree.entries().values.compactMap(\.content)).intersection(texts)
                    #expect(here == there)
                }
            }
        }

        @Test("REIMPORT-1: killed at any moment, it goes on where it was and makes nothing twice", arguments: 0..<24)
        func crashes(at step: Int) async throws {
            try await Machine.run(fill: Machine.fillForReimport) { machine in
                try await machine.materialize("a")
                try await machine.materialize("d/x")
                try await machine.write("here", to: "b")
                try await machine.write("new", to: "e/new")
                try await machine.rename("d/y", to: "z")
                machine.provider.change { $0.delete("x") }
                let inode = try await machine.number("d/x")
                try await machine.loseIdentifiers()
                // Every second time the call had arrived when the daemon died.
                for _ in 0..<step / 2 {
                    guard let next = try await machine.operations().first else { break }
                    await machine.engine.runAlone(next)
                }
                if step % 2 == 1, let next = try await machine.operations().first {
                    for kind in [ProviderCallKind.create, .modify, .delete] {
                        machine.provider.faults.add(
                            .applyThenFail(FileProviderError(.userCancelled)), to: kind, times: 1)
                    }
                    await machine.engine.runAlone(next)
                    machine.provider.faults.clear()
                }
                let other = try machine.crash()
                try await withCleanUp({ await other.stop() }) {
                    try await other.expectReimported()
                    let remote = other.provider.tree.entries()
                    #expect(remote["b"]?.content == "here")
                    #expect(remote["e/new"]?.content == "new")
                    #expect(remote["z"]?.content == "first y")
                    #expect(remote["d/x"]?.content == "first x")
                    #expect(try await other.number("d/x") == inode)
                    #expect(remote.count == 9)
                }
            }
        }
    }
}
