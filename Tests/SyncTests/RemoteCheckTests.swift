import FileProvider
import FileProviderTesting
import Testing

@testable import Replica
@testable import Sync

extension EngineTests {
    /// A check's comparison with the remote.
    @Suite struct RemoteCheckTests {
        private static func fill(_ tree: inout RemoteTree) {
            tree.addDirectory("d", identifier: "d")
            tree.addFile("x", in: "d", content: RemoteContent("first"), identifier: "x")
        }

        private func check(_ machine: Machine, isRepairing: Bool = false) async throws -> [CheckFinding] {
            try await machine.engine.compareWithRemote(comparesBytes: false, isRepairing: isRepairing).findings
        }

        @Test("CHECK-1: an item of the remote's that stays without a name is found, and shown after a repair")
        func isNotShown() async throws {
            try await Machine.run(fill: Self.fill) { machine in
                let row = try await machine.item("d/x").id
                try await machine.replica.database.write { db in try db.displace(row) }
                let found = try await check(machine)
                #expect(found.map(\.text) == ["it is not shown here"])
                #expect(found.map(\.name) == ["x"])
                let mended = try await check(machine, isRepairing: true)
                #expect(!mended.isEmpty && mended.allSatisfy(\.isMended), "\(mended)")
                #expect(try await machine.item("d/x").id == row)
                #expect(try await check(machine) == [])
            }
        }
    }
}
