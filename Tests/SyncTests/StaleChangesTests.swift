import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// News that were asked for before an answer was recorded, and are taken in after it.
    @Suite struct StaleChangesTests {
        /// The remote changes `a` and tells so, together with something that has to be looked up before it can be taken in.
        private func whileChangesAreHeld(
            _ machine: Machine, change: (inout RemoteTree) -> Void, body: () async throws -> Void
        ) async throws {
            _ = try await machine.engine.evict(machine.number("e/f"), isStrict: true)
            machine.provider.change { $0.addDirectory("g", in: "f", identifier: "g") }
            try await machine.ingest()
            // 'f' was not listed since, so 'g' is not known here.
            let gate = machine.provider.faults.hold(.item, of: "g")
            machine.provider.change { tree in
                change(&tree)
                tree.move("b", to: "g")
            }
            let round = Task { try await machine.ingest() }
            #expect(await eventually { gate.waiting == 1 })
            try await body()
            gate.open()
            try await round.value
        }

        @Test("CHANGE-6: what was answered between the asking for news and their taking in is not undone by them")
        func acknowledgementsAreNewerThanEarlierObservations() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                _ = try await machine.names(in: .root)
                let number = try await machine.number("a")
                try await whileChangesAreHeld(machine) { tree in
                    tree.edit("a") { $0.permissions = 0o600 }
                } body: {
                    try await machine.write("ours", to: "a")
                    try await machine.setPermissions(of: "a", to: 0o700)
                    try await machine.send()
                    #expect(machine.provider.tree.entries()["a"]?.content == "ours")
                }
                let inode = try await machine.record("a")
                #expect(inode.number == number)
                #expect(inode.permissions == 0o700)
                #expect(inode.content == .materialized)
                #expect(inode.size == 4)
                #expect(try await machine.read("a") == "ours")
                #expect(machine.provider.log.count(of: .fetch) == 0)
                try await machine.drain()
                #expect(try await machine.record("a").permissions == 0o700)
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("CHANGE-6: what was removed here and there meanwhile does not come back with news that still have it")
        func removalsAreNewer() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                _ = try await machine.names(in: .root)
                try await whileChangesAreHeld(machine) { tree in
                    tree.edit("a") { $0.permissions = 0o600 }
                } body: {
                    try await machine.remove("a")
                    try await machine.send()
                    #expect(machine.provider.tree["a"] == nil)
                }
                #expect(try await machine.names(in: .root).contains("a") == false)
                try await machine.drain()
                #expect(try await machine.complaints() == [])
            }
        }

        @Test("CHANGE-6: what the news were right about, and nothing here was, is taken in when it has been looked up")
        func nothingIsMissed() async throws {
            try await Machine.run(fill: ScriptRun.fill) { machine in
                _ = try await machine.names(in: .root)
                try await whileChangesAreHeld(machine) { tree in
                    tree.rename("a", to: "theirs")
                } body: {
                    try await machine.setPermissions(of: "a", to: 0o700)
                    try await machine.send()
                }
                #expect(try await machine.names(in: .root).contains("theirs"))
                #expect(try await machine.record("theirs").permissions == 0o700)
                try await machine.drain()
                #expect(try await machine.complaints() == [])
            }
        }
    }
}
