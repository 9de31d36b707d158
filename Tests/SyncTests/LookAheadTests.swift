import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    /// Listing ahead of a process that walks a tree.
    @Suite struct LookAheadTests {
        private func tree(_ tree: inout RemoteTree) {
            for number in 0..<10 {
                let directory = tree.addDirectory("d\(number)", identifier: ItemIdentifier("d\(number)"))
                tree.addDirectory("below", in: directory, identifier: ItemIdentifier("below\(number)"))
            }
        }

        private func ahead(_ fixture: EngineFixture) -> Int {
            fixture.provider.log.calls(of: .enumerate).filter { $0.request?.reason == .lookAhead }.count
        }

        @Test func aWalkIsListedAhead() async throws {
            try await EngineFixture.run(fill: tree) { fixture in
                try await fixture.list("d0")
                #expect(ahead(fixture) == 0)
                try await fixture.engine.list(fixture.number("below0"), request: fixture.request)
                #expect(try await eventually { try fixture.inode("d9").content == .materialized })
                #expect(await eventually { ahead(fixture) == WalkPredictor.smallestWindow })
                // The walker comes to what was listed ahead and is not kept waiting; more is listed then.
                let calls = fixture.provider.log.count(of: .enumerate)
                try await fixture.engine.list(fixture.number("d1"), request: fixture.request)
                try await fixture.engine.list(fixture.number("d2"), request: fixture.request)
                #expect(await eventually { ahead(fixture) == WalkPredictor.smallestWindow + 2 })
                #expect(fixture.provider.log.count(of: .enumerate) == calls + 2)
            }
        }

        @Test func aLookHereAndThereIsNoWalk() async throws {
            try await EngineFixture.run(fill: tree) { fixture in
                try await fixture.list()
                try await fixture.list("d3")
                #expect(ahead(fixture) == 0)
                #expect(fixture.provider.log.count(of: .enumerate) == 2)
            }
        }

        @Test func aForegroundListingNeverWaitsForThoseAhead() async throws {
            var options = InMemoryProvider.Options()
            options.concurrentCalls = 4
            try await EngineFixture.run(options: options, fill: tree) { fixture in
                try await fixture.list("d0")
                let gates = (1..<9).map { fixture.provider.faults.hold(.enumerate, of: ItemIdentifier("d\($0)")) }
                try await fixture.engine.list(fixture.number("below0"), request: fixture.request)
                #expect(await eventually { gates.reduce(0) { $0 + $1.waiting } >= 3 })
                try await fixture.engine.list(fixture.number("d9"), request: fixture.request)
                #expect(try fixture.inode("d9").content == .materialized)
                for gate in gates { gate.open() }
            }
        }
    }
}
