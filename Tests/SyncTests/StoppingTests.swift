import FileProvider
import FileProviderTesting
import Logging
import Replica
import TestSupport
import Testing

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
