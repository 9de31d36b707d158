import FileProvider
import FileProviderTesting
import Logging
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// A read-only domain changes nothing on the remote, whatever was changed here before.
    @Suite struct ReadOnlyTests {
        private static let writes: [ProviderCallKind] = [.create, .modify, .delete]

        private func writes(_ machine: Machine) -> Int {
            Self.writes.reduce(0) { $0 + machine.provider.log.count(of: $1) }
        }

        /// Runs one engine after the other on one replica and one remote.
        private func run(
            _ provider: InMemoryProvider, in directory: TemporaryDirectory, isReadOnly: Bool,
            _ body: (Machine) async throws -> Void
        ) async throws {
            let machine = try Machine(
                in: directory["replica"], provider: provider, isReadOnly: isReadOnly, isInteractive: false)
            try await withCleanUp({
                await machine.stop()
                try machine.replica.close()
            }) {
                try await body(machine)
            }
        }

        @Test(
            "WRITE-15: changes made before wait while the domain is read-only, and are sent when it is writable again")
        func pendingChangesWait() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = InMemoryProvider()
            provider.change(ScriptRun.fill)
            try await run(provider, in: directory, isReadOnly: false) { machine async throws in
                try await machine.listAll()
                machine.engine.pause(.user)
                try await machine.write("new", to: "n")
                try await machine.write("other", to: "a")
                try await machine.rename("b", to: "d/b")
                try await machine.remove("d/x")
            }
            provider.log.clear()
            let before = provider.tree.entries()
            try await run(provider, in: directory, isReadOnly: true) { machine async throws in
                machine.engine.start()
                #expect(try await !machine.engine.waitUntilSynced(within: .seconds(2)))
                try await machine.engine.retry()
                try await machine.engine.refresh()
                #expect(try await !machine.engine.waitUntilSynced(within: .milliseconds(300)))
                let number = try await machine.number("n")
                await #expect { try await machine.engine.send(number) } throws: {
                    ($0 as? FileProviderError)?.errno == .readOnlyFileSystem
                }
                #expect(writes(machine) == 0)
                #expect(try await machine.read("n") == "new")
            }
            #expect(provider.tree.entries() == before)
            try await run(provider, in: directory, isReadOnly: false) { machine async throws in
                machine.engine.start()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                try await machine.engine.refresh()
                try await machine.expectSettled()
                #expect(machine.provider.tree.entries()["n"]?.content == "new")
                #expect(machine.provider.tree.entries()["d/x"] == nil)
            }
        }

        @Test("WRITE-15: a reimport that is under way recognizes items of a read-only domain and makes none")
        func reimportMakesNothing() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = InMemoryProvider()
            provider.change(ScriptRun.fill)
            try await run(provider, in: directory, isReadOnly: false) { machine async throws in
                try await machine.listAll()
                #expect(try await machine.read("a") == "first a")
                #expect(try await machine.read("b") == "first b")
                machine.engine.pause(.user)
                try await machine.engine.reimport(below: .root)
            }
            provider.change { $0.delete("a") }
            let before = provider.tree.entries()
            try await run(provider, in: directory, isReadOnly: true) { machine async throws in
                machine.engine.start()
                let (lost, kept) = (try await machine.localNumber("a"), try await machine.localNumber("b"))
                #expect(
                    try await eventually(within: .seconds(10)) {
                        try machine.replica.database.item(ofInode: kept)?.identifier == "b"
                            && machine.replica.database.failure(of: lost)?.message
                                == ProviderCalls.readOnlyRefusal.message
                    })
                #expect(try await machine.read(lost) == "first a")
                #expect(machine.provider.tree.applied.isEmpty)
            }
            #expect(provider.tree.entries() == before)
            try await run(provider, in: directory, isReadOnly: false) { machine async throws in
                machine.engine.start()
                #expect(try await machine.engine.waitUntilSynced(within: .seconds(20)))
                #expect(machine.provider.tree.entries()["a"]?.content == "first a")
            }
        }

        @Test("WRITE-15: a reimport of a read-only domain is refused") func aReimportIsRefused() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let provider = InMemoryProvider()
            try await run(provider, in: directory, isReadOnly: true) { machine async throws in
                await #expect { try await machine.engine.reimport(below: .root) } throws: {
                    ($0 as? FileProviderError)?.code == .featureUnsupported
                }
            }
        }

        @Test("WRITE-15: no call that writes is made for a read-only domain, and every call that reads")
        func callsAreRefused() async throws {
            let provider = InMemoryProvider()
            provider.change(ScriptRun.fill)
            let calls = ProviderCalls(
                provider: provider, isReadOnly: true, connection: Connection(logger: Logger(label: "test")),
                patience: .seconds(30), metrics: CallMetrics(domain: "test"), onLatch: {}, onRecovery: {})
            let request = FileProviderRequest(reason: .synchronization)
            let item = try await calls.make(.item, for: request) { try await $0.item(for: "a", request: request) }
            #expect(item.filename == "a")
            for call in [CallName.createItem, .modifyItem, .deleteItem] {
                let refusal = await #expect(throws: FileProviderError.self) {
                    try await calls.make(call, for: request) { _ in Issue.record("\(call) was made") }
                }
                #expect(refusal?.message == ProviderCalls.readOnlyRefusal.message)
            }
            let isMade = try await calls.make(.createItem, for: request, recognizesOnly: true) { _ in true }
            #expect(isMade)
        }
    }
}

extension Machine {
    /// The inode of a name in the root, without asking the remote.
    func localNumber(_ name: String) async throws -> InodeNumber {
        try #require(try replica.database.lookup(name, in: .root).inode).number
    }
}
