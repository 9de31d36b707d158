import FileProvider
import FileProviderTesting
import SystemPackage
import Testing

@Suite struct InMemoryProviderTests {
    private struct Odd: Error {}

    private static let variants: [InMemoryProvider.Options] = {
        var paged = InMemoryProvider.Options()
        paged.documentEnumeration = true
        paged.pageSize = 3
        paged.chunkSize = 100_000
        var plain = InMemoryProvider.Options()
        plain.partialContentFetching = false
        plain.changeFeed = false
        var trashing = InMemoryProvider.Options()
        trashing.trash = true
        return [InMemoryProvider.Options(), paged, plain, trashing]
    }()

    @Test(arguments: variants, ProviderConformance.Check.allCases)
    func conforms(options: InMemoryProvider.Options, check: ProviderConformance.Check) async throws {
        try await ProviderConformance { InMemoryRemote(options: options) }.run(check)
    }

    private func session(_ provider: InMemoryProvider) -> ProviderSession {
        let domain = FileProviderDomain(identifier: "test", source: "memory")
        let manager = TestManager(domain: domain, stateDirectory: "/nonexistent")
        provider.attach(manager)
        return ProviderSession(provider: provider, manager: manager)
    }

    @Test func rulesApplyOnlyToMatchingCalls() async throws {
        let provider = InMemoryProvider()
        let session = session(provider)
        provider.change {
            $0.addFile("a", content: RemoteContent("a"), identifier: "a")
            $0.addFile("b", content: RemoteContent("b"), identifier: "b")
        }
        provider.faults.fail(.fetch, of: "a", with: Odd(), skipping: 1, times: 2)
        var outcomes: [Bool] = []
        for _ in 0..<5 { outcomes.append((try? await session.fetch("a")) != nil) }
        #expect(outcomes == [true, false, false, true, true])
        #expect(try await session.fetch("b").bytes == Array("b".utf8))
        #expect(provider.log.count(of: .fetch, "a") == 5)
        #expect(provider.log.count(of: .fetch) == 6)
    }

    @Test func heldCallsContinueWhenTheGateOpens() async throws {
        let provider = InMemoryProvider()
        let session = session(provider)
        let gate = provider.faults.hold(.item)
        let call = Task { try await session.item(.rootContainer) }
        #expect(await provider.log.waits(.item))
        #expect(provider.log.calls(of: .item).map(\.isRunning) == [true])
        gate.open()
        #expect(try await call.value.itemIdentifier == .rootContainer)
        #expect(provider.log.calls(of: .item).map(\.isRunning) == [false])
    }

    @Test func aHeldCallCanBeCancelled() async throws {
        let provider = InMemoryProvider()
        let session = session(provider)
        _ = provider.faults.hold(.item)
        let call = Task { try await session.item(.rootContainer) }
        #expect(await provider.log.waits(.item))
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        #expect(provider.log.calls(of: .item).map(\.wasCancelled) == [true])
    }

    @Test func theManagerIsSignalledOnceForAChange() {
        let provider = InMemoryProvider()
        let session = session(provider)
        provider.change {
            $0.addFile("a", content: RemoteContent("a"))
            $0.addFile("b", content: RemoteContent("b"))
        }
        #expect(session.manager.signals == 1)
    }

    @Test func expiredAnchorsAreRefused() async throws {
        let provider = InMemoryProvider()
        let session = session(provider)
        let anchor = try await session.anchor()
        provider.change { $0.expireAnchors() }
        await #expect(throws: FileProviderError.self) { try await session.changes(from: anchor) }
    }

    @Test func cutAndSurplusFetchesDeliverScriptedBytes() async throws {
        let provider = InMemoryProvider()
        let session = session(provider)
        provider.change { $0.addFile("a", content: RemoteContent("0123456789"), identifier: "a") }
        for (effect, count) in [(FaultScript.Effect.cutFetch(4), 4), (.surplus(3), 13)] {
            provider.faults.add(effect, to: .fetch, times: 1)
            let sink = CollectingSink()
            _ = try await provider.fetchContents(
                for: "a", version: nil, range: nil, request: session.request, into: sink)
            #expect(sink.count == count)
        }
    }
}
