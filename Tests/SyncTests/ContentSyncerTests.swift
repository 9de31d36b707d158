import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

/// Downloads reach the disk while the domain is in use.
@Suite struct ContentSyncerTests {
    @Test("WRITE-2: downloaded content is put on the disk after a pause, without another call") func syncs()
        async throws
    {
        try await EngineFixture.run(fill: {
            $0.addFile("f", content: RemoteContent("content"), identifier: "f")
        }) { fixture in
            try await fixture.list()
            fixture.engine.contentSyncer.start(pause: .milliseconds(20))
            #expect(try fixture.replica.database.value(of: .contentsSyncedAt) == nil)
            try await fixture.engine.materialize(try fixture.number("f"), request: fixture.request)
            let isSynced = try await eventually { [replica = fixture.replica] in
                try replica.database.value(of: .contentsSyncedAt) != nil
            }
            #expect(isSynced)
        }
    }
}
