import FileProvider
import FileProviderTesting
import Replica
import SystemPackage
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Nothing is repeated without a pause.
    @Suite struct PauseTests {
        @Test("ERROR-6: a deletion whose end cannot be recorded is not repeated at once") func unrecordedDeletion()
            async throws
        {
            try await Machine.run(isInteractive: false, fill: { ScriptRun.fill(&$0) }) { machine async throws in
                let script = """
                    import sqlite3, sys
                    database = sqlite3.connect(sys.argv[1], timeout=20)
                    database.execute("CREATE TRIGGER noDelete BEFORE DELETE ON deletion BEGIN SELECT RAISE(ABORT, 'no'); END")
                    database.execute("CREATE TRIGGER noUpdate BEFORE UPDATE ON deletion BEGIN SELECT RAISE(ABORT, 'no'); END")
                    database.commit()
                    """
                let outcome = try await Command.python(
                    script, machine.replica.directory.appending("replica.sqlite").string)
                try #require(outcome.status == 0, "\(outcome.errors)")
                try await machine.remove("a")
                #expect(await machine.provider.log.waits(.delete, "a"))
                // Without a pause there are dozens in this time.
                try await Task.sleep(for: .seconds(2))
                let count = machine.provider.log.count(of: .delete, "a")
                #expect(count < 6, "\(count)")
                #expect(machine.engine.warnings.texts.contains { $0.contains("cannot be recorded") })
            }
        }

        @Test("ENUM-2: a document whose anchor has always expired is asked about no more often than others")
        func expiredAnchors() async throws {
            try await EngineFixture.run(
                options: .with(\.documentEnumeration, true), fill: EngineFixture.fortyFiles, listing: "/"
            ) { fixture async throws in
                fixture.provider.faults.fail(
                    .anchor, of: "f0", with: FileProviderError(.syncAnchorExpired), times: nil)
                fixture.engine.start()
                let number = try fixture.number("f0")
                fixture.open.insert(number)
                fixture.engine.inodeWasOpened(number)
                #expect(await fixture.provider.log.waits(.anchor, "f0"))
                try await Task.sleep(for: .seconds(1))
                let count = fixture.provider.log.count(of: .anchor, "f0")
                #expect(count <= 2, "\(count)")
            }
        }
    }
}
