import FileProvider
import FileProviderTesting
import Replica
import Synchronization
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Operations that are not answered for long, and what changes on the remote meanwhile.
    @Suite struct LongOperationTests {
        @Test(
            "CHANGE-10: what is being sent keeps no other change from being shown, and what changes in it shows after the answer",
            arguments: [false, true])
        func roundsEndMeanwhile(hasChangeFeed: Bool) async throws {
            let options = InMemoryProvider.Options.with(\.changeFeed, hasChangeFeed)
            try await Machine.run(options: options, fill: { ScriptRun.fill(&$0) }) { machine async throws in
                try await machine.write("here", to: "d/x")
                let row = try await machine.item("d/x").id
                let gate = machine.provider.faults.holdAnswer(.modify, of: "x", times: 1)
                let sending = Task { await machine.engine.runAlone(.modification(row: row)) }
                #expect(await eventually { gate.waiting == 1 })
                machine.provider.change { tree in
                    tree.write(RemoteContent("there"), to: "x")
                    tree.addFile("new", in: "d", content: RemoteContent("new"))
                    tree.addFile("other", in: "e", content: RemoteContent("other"))
                }
                let isOver = Mutex(false)
                let ingestion = Task {
                    try await machine.ingest()
                    isOver.withLock { $0 = true }
                }
                #expect(await eventually(within: .seconds(20)) { isOver.withLock { $0 } })
                #expect(gate.waiting == 1)
                #expect(await machine.exists("d/new"))
                #expect(await machine.exists("e/other"))
                #expect(try await machine.read("d/x") == "here")
                gate.open()
                await sending.value
                try await ingestion.value
                try await machine.settle()
                #expect(try await machine.read("d/x") == "there")
            }
        }

        @Test(
            "CHANGE-10: what changes below a directory that is being changed shows after the answer, where versions cover trees"
        )
        func belowADirectoryInFlight() async throws {
            var options = InMemoryProvider.Options()
            (options.changeFeed, options.directoryVersionsCoverTrees) = (false, true)
            try await Machine.run(options: options, fill: { ScriptRun.fill(&$0) }) { machine async throws in
                // What was said of the directories above is a round older than what is below them.
                for _ in 0..<3 { try await machine.ingest() }
                try await machine.setPermissions(of: "d", to: 0o700)
                let row = try await machine.item("d").id
                let gate = machine.provider.faults.hold(.modify, of: "d", times: 1)
                machine.provider.faults.fail(.modify, of: "d", with: FileProviderError(.cannotSynchronize))
                let sending = Task { await machine.engine.runAlone(.modification(row: row)) }
                #expect(await eventually { gate.waiting == 1 })
                machine.provider.change { $0.write(RemoteContent("there"), to: "x") }
                try await machine.ingest()
                gate.open()
                await sending.value
                for _ in 0..<2 { try await machine.ingest() }
                #expect(try await machine.record("d/x").size == 5)
            }
        }

        @Test("CHANGE-10: a directory of which something was left out is compared after the answer, without a round")
        func comparedAfterTheAnswer() async throws {
            try await Machine.run(
                options: .with(\.changeFeed, false), isInteractive: false, fill: { ScriptRun.fill(&$0) }
            ) { machine async throws in
                let number = try await machine.number("d")
                let gate = machine.provider.faults.holdAnswer(.modify, of: "x", times: 1)
                try await machine.write("here", to: "d/x")
                #expect(await eventually(within: .seconds(20)) { gate.waiting == 1 })
                machine.provider.changeSilently { $0.write(RemoteContent("there"), to: "x") }
                try await machine.ingest()
                #expect(try machine.replica.database.isToBeCompared(number))
                gate.open()
                #expect(
                    await eventually(within: .seconds(20)) {
                        (try? machine.replica.database.isToBeCompared(number)) == false
                    })
                #expect(try await machine.read("d/x") == "there")
            }
        }
    }
}
