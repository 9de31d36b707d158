import FileProvider
import FileProviderTesting
import Replica
import Synchronization
import TestSupport
import Testing

@testable import Sync

/// What was downloaded or sent reaches the disk while the domain is in use.
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

    @Test("WRITE-2: content that was written here is put on the disk after it was sent") func syncsWhatWasSent()
        async throws
    {
        try await Machine.run { machine in
            machine.engine.contentSyncer.start(pause: .milliseconds(20))
            try await machine.write("content", to: "f")
            #expect(try machine.replica.database.value(of: .contentsSyncedAt) == nil)
            try await machine.drain()
            let isSynced = try await eventually { [replica = machine.replica] in
                try replica.database.value(of: .contentsSyncedAt) != nil
            }
            #expect(isSynced)
        }
    }

    private final class Counter: Sendable {
        private let number = Atomic(0)
        var value: Int { number.load(ordering: .relaxed) }

        func increase() { number.add(1, ordering: .relaxed) }
    }

    @Test("WRITE-2: content is not synced before the comparison after a power cut has ended, nor tried again and again")
    func waitsForComparison() async throws {
        try await EngineFixture.run(fill: {
            $0.addFile("f", content: RemoteContent("content"), identifier: "f")
        }) { fixture in
            let replica = fixture.replica
            try await fixture.list()
            try replica.database.set(.mayMissBytes, to: "1")
            try await fixture.engine.materialize(try fixture.number("f"), request: fixture.request)
            let calls = Counter()
            let syncer = ContentSyncer {
                calls.increase()
                return try replica.syncContents()
            }
            syncer.start(pause: .milliseconds(20))
            syncer.wake()
            #expect(await eventually { calls.value == 1 })
            // Time for another call.
            try await Task.sleep(for: .milliseconds(200))
            #expect(calls.value == 1)
            #expect(try replica.database.value(of: .contentsSyncedAt) == nil)
            try replica.database.set(.mayMissBytes, to: nil as String?)
            syncer.wake()
            let isSynced = try await eventually { try replica.database.value(of: .contentsSyncedAt) != nil }
            #expect(isSynced)
            await syncer.stop()
        }
    }
}
