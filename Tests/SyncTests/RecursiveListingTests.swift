import FileProvider
import FileProviderTesting
import Replica
import TestSupport
import Testing

@testable import Sync

extension EngineTests {
    @Suite struct RecursiveListingTests {
        @Test("CMD-1: a tree is listed once, several directories at once") func tree() async throws {
            try await EngineFixture.run(
                fill: { tree in
                    tree.addDirectory("top", identifier: "top")
                    for outer in 0..<4 {
                        let directory = tree.addDirectory(
                            "d\(outer)", in: "top", identifier: ItemIdentifier("d\(outer)"))
                        for inner in 0..<9 { tree.addDirectory("e\(inner)", in: directory) }
                    }
                }, listing: "/"
            ) { fixture async throws in
                let gate = fixture.provider.faults.hold(.enumerate, of: "d0")
                let others = fixture.provider.faults.hold(.enumerate, of: "d1")
                let number = try fixture.number("top")
                let listing = Task {
                    try await fixture.engine.listAll(
                        below: number, request: FileProviderRequest(reason: .synchronization))
                }
                #expect(await eventually { gate.waiting == 1 && others.waiting == 1 })
                gate.open()
                others.open()
                try await listing.value
                #expect(try fixture.replica.database.counts().knownItems == 41)
                for call in fixture.provider.log.calls(of: .enumerate) {
                    #expect(fixture.provider.log.count(of: .enumerate, call.identifier) == 1)
                }
                #expect(fixture.provider.log.count(of: .enumerate) == 42)
            }
        }
    }
}
