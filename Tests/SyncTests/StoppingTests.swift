import Dispatch
import FileProvider
import FileProviderTesting
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Replica
@testable import Sync

extension EngineTests {
    /// The end of an engine.
    @Suite struct StoppingTests {
        @Test("a provider that hangs in its end, and ignores its cancellation, does not hold up the engine's")
        func hangingProvider() async throws {
            let directory = try TemporaryDirectory()
            defer { directory.remove() }
            let gate = Gate(heedsCancellation: false)
            defer { gate.open() }
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let replica = try Replica(at: directory["replica"], readers: 4, logger: logger)
            let engine = SyncEngine(
                provider: HangingProvider(gate: gate), replica: replica, open: OpenSet(), kernel: KernelRecorder(),
                polling: .never, logger: logger)
            let stopping = Task<Void, any Error> { await engine.stop(patience: .milliseconds(50)) }
            let result = await stopping.result(within: .seconds(30))
            #expect(result != nil)
            // The engine may have lost its patience before the call has come so far.
            #expect(await eventually { gate.waiting == 1 })
            // A provider ends its programs on that.
            #expect(await eventually { gate.cancellations == 1 })
            gate.open()
            try await stopping.value
            try replica.close()
        }

        @Test("what was read right before the end is recorded") func readBefore() async throws {
            try await EngineFixture.run(
                fill: { $0.addFile("f", content: RemoteContent("text"), identifier: "f") }, listing: "/"
            ) { fixture async throws in
                let gate = fixture.provider.faults.hold(.fetch)
                let reader = Task { try await fixture.read("f") }
                #expect(await eventually { gate.waiting == 1 })
                // Nothing is recorded before this transaction ends.
                let hasBegun = Mutex(false)
                let release = DispatchSemaphore(value: 0)
                defer { release.signal() }
                let replica = fixture.replica
                let holder = Thread {
                    try? replica.database.write { _ in
                        hasBegun.withLock { $0 = true }
                        release.wait()
                    }
                }
                holder.start()
                #expect(await eventually { hasBegun.withLock { $0 } })
                gate.open()
                #expect(try await reader.value == Array("text".utf8))
                #expect(await eventually { replica.database.group.count == 1 })
                let stopping = Task<Void, any Error> { await fixture.engine.downloads.stopAll() }
                let early = await stopping.result(within: .milliseconds(200))
                #expect(early == nil)
                release.signal()
                try await stopping.value
                #expect(try fixture.inode("f").content == .materialized)
            }
        }
    }
}

/// Ends only when the gate is open.
private final class HangingProvider: FileProviderReplicatedExtension {
    private let remote = InMemoryProvider()
    private let gate: Gate

    init(gate: Gate) {
        self.gate = gate
    }

    var features: ProviderFeatures { remote.features }

    func invalidate() async { try? await gate.pass() }

    func item(for identifier: ItemIdentifier, request: FileProviderRequest) async throws -> FileProviderItem {
        try await remote.item(for: identifier, request: request)
    }

    func enumerator(for container: ItemIdentifier, request: FileProviderRequest) throws -> any FileProviderEnumerator {
        try remote.enumerator(for: container, request: request)
    }

    func fetchContents(
        for identifier: ItemIdentifier, version: [UInt8]?, range: Range<Int64>?, request: FileProviderRequest,
        into sink: any ContentSink
    ) async throws -> FileProviderItem {
        try await remote.fetchContents(for: identifier, version: version, range: range, request: request, into: sink)
    }
}
