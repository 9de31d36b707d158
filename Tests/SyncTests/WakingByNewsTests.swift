import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Changes that have failed and wait, and can be sent earlier because of what the remote reports.
    @Suite struct WakingByNewsTests {
        /// The first pause after a failure that does not pass by itself is half a minute.
        private let soon = Duration.seconds(10)

        private func expectFailed(_ path: String, _ machine: Machine) async throws {
            let number = try await machine.number(path)
            #expect(try await eventually { try machine.replica.database.failure(of: number) != nil })
            // What else was changed with it is sent by then, and wakes the uploads no more.
            try await machine.sendOthers("b")
            #expect(await eventually { machine.engine.changesUnderWay.isEmpty })
        }

        @Test("ERROR-6: what was made in a directory that the remote removes is sent at once with the directory")
        func newFileInARemovedDirectory() async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError(.insufficientQuota))
                try await machine.write("new", to: "d/n")
                try await expectFailed("d/n", machine)
                machine.provider.change { $0.delete("d") }
                machine.engine.signal()
                #expect(await eventually(within: soon) { machine.provider.tree.entries()["d/n"]?.content == "new" })
            }
        }

        @Test(
            "ERROR-6: what was refused in a directory is sent at once when the directory's mode has changed on the remote",
            arguments: [false, true])
        func deniedByADirectory(isChangedHere: Bool) async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine in
                machine.provider.faults.fail(.create, with: FileProviderError(.fileReadNoPermission))
                machine.provider.faults.fail(.modify, of: "y", with: FileProviderError(.fileReadNoPermission))
                machine.provider.faults.fail(.delete, of: "x", with: FileProviderError(.fileReadNoPermission))
                try await machine.write("new", to: "d/n")
                try await machine.rename("d/y", to: "e/y")
                try await machine.remove("d/x")
                for path in ["d/n", "e/y"] { try await expectFailed(path, machine) }
                #expect(machine.provider.log.count(of: .delete) == 1)
                if isChangedHere {
                    try await machine.setPermissions(of: "d", to: 0o711)
                } else {
                    machine.provider.change { $0.edit("d") { $0.permissions = 0o711 } }
                    machine.engine.signal()
                }
                #expect(
                    await eventually(within: soon) {
                        let entries = machine.provider.tree.entries()
                        return entries["d/n"]?.content == "new" && entries["d/x"] == nil && entries["e/y"] != nil
                    })
            }
        }

        @Test("ERROR-6: a name that could not be sent is sent at once after the remote has moved the item")
        func renamedHereAndMovedThere() async throws {
            try await Machine.run(isInteractive: false, fill: ScriptRun.fill) { machine in
                machine.provider.faults.fail(.modify, of: "a", with: FileProviderError(.insufficientQuota))
                try await machine.rename("a", to: "z")
                try await expectFailed("z", machine)
                machine.provider.change { $0.move("a", to: "e") }
                machine.engine.signal()
                #expect(await eventually(within: soon) { machine.provider.tree.identifier(at: "e/z") == "a" })
            }
        }
    }
}
