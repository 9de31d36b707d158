import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Reimports that the provider has asked for before the domain was mounted.
    @Suite struct AskedReimportTests {
        @Test(
            "REIMPORT-5: one is begun at the start, and refused where nothing can be written", arguments: [false, true])
        func atTheStart(isReadOnly: Bool) async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = InMemoryProvider()
            provider.change { ScriptRun.fill(&$0) }
            let machine = try Machine(
                in: directory["replica"], provider: provider, isReadOnly: isReadOnly, isInteractive: false)
            try await withCleanUp({ await machine.stop() }) {
                try await machine.listAll()
                for _ in 0..<2 { try await machine.replica.askForReimport(below: .root) }
                #expect(try machine.replica.database.reimports.asked() == [.root])
                #expect(try machine.replica.database.reimports.requests().isEmpty)
                machine.engine.start()
                #expect(await eventually { (try? machine.replica.database.reimports.asked().isEmpty) == true })
                if isReadOnly {
                    #expect(machine.engine.warnings.texts.contains { $0.contains("asked for a reimport") })
                    #expect(try await machine.item("a").identifier == "a")
                    #expect(try machine.replica.database.reimports.requests().isEmpty)
                } else {
                    #expect(await machine.provider.log.waits(.importDidFinish))
                }
            }
        }

        @Test("REIMPORT-5: one begins once, also where it is begun twice at once") func once() async throws {
            try await Machine.run(fill: { ScriptRun.fill(&$0) }) { machine async throws in
                try await machine.replica.askForReimport(below: .root)
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<2 { group.addTask { await machine.engine.beginAskedReimports() } }
                }
                let database = machine.replica.database
                #expect(try database.reimports.requests().map(\.top) == [.root])
                #expect(try database.reimports.asked().isEmpty)
                // A command may ask for it again.
                try await machine.engine.reimport(below: .root)
                #expect(try database.reimports.requests().count == 2)
            }
        }
    }
}
