import FileProvider
import FileProviderTesting
import Logging
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// When much may be removed at once.
    @Suite struct DeletionGuardTests {
        private func make() -> (DeletionGuard, Warnings) {
            let warnings = Warnings(logger: .init(label: "test"))
            return (DeletionGuard(domainName: "NAME", warnings: warnings), warnings)
        }

        @Test("CHANGE-4: leave that is given while a round runs holds for what that round finds")
        func leaveDuringARound() {
            let (guardian, warnings) = make()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
            guardian.endRound()
            guardian.beginRound()
            guardian.release()
            #expect(guardian.admits(gone: 200, of: 300))
            guardian.endRound()
            #expect(warnings.texts.isEmpty)
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
        }

        @Test("CHANGE-4: leave that is given after a round has held something holds for the next round")
        func leaveAfterItWasHeld() {
            let (guardian, _) = make()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
            guardian.release()
            guardian.endRound()
            guardian.beginRound()
            #expect(guardian.admits(gone: 200, of: 300))
            guardian.endRound()
            guardian.beginRound()
            #expect(!guardian.admits(gone: 200, of: 300))
        }

        @Test("CHANGE-4: leave without anything held is none") func noLeaveAhead() {
            let (guardian, _) = make()
            guardian.release()
            guardian.beginRound()
            guardian.release()
            #expect(!guardian.admits(gone: 200, of: 300))
            guardian.endRound()
        }

        @Test("CHANGE-4: a retry while a round runs removes what was held") func retryDuringARound() async throws {
            func many(_ tree: inout RemoteTree) {
                tree.addDirectory("big", identifier: "big")
                for number in 0..<150 { tree.addFile("f\(number)", in: "big", content: RemoteContent("\(number)")) }
                for number in 0..<200 { tree.addFile("r\(number)", content: RemoteContent("r\(number)")) }
            }
            try await Machine.run(fill: many) { machine async throws in
                machine.provider.change { $0.delete("big") }
                try await machine.ingest()
                #expect(await machine.exists("big/f7"))
                let gate = machine.provider.faults.hold(.changes)
                let round = Task { try await machine.ingest() }
                #expect(await eventually { gate.waiting == 1 })
                try await machine.engine.retry()
                gate.open()
                try await round.value
                #expect(await !machine.exists("big"))
                #expect(machine.engine.warnings.texts == [])
            }
        }
    }
}
