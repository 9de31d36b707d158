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

        @Test("CMD-1: permissions that were changed here are sent before a directory is listed that the remote denies")
        func permissionsAreSentFirst() async throws {
            try await Machine.run(fill: { _ in }) { machine async throws in
                machine.provider.change { tree in
                    tree.addDirectory("top", identifier: "top")
                    tree.addFile("inside", in: "top", content: RemoteContent("text"), identifier: "inside")
                }
                try await machine.ingest()
                try await machine.setPermissions(of: "top", to: 0o700)
                let number = try await machine.number("top")
                machine.provider.log.clear()
                machine.provider.faults.fail(.enumerate, of: "top", with: FileProviderError(.fileReadNoPermission))
                let listing = Task { try await machine.engine.listAll(below: number, request: machine.request) }
                #expect(await eventually { machine.provider.log.count(of: .enumerate, "top") == 1 })
                try await machine.send()
                try await listing.value
                #expect(machine.provider.log.count(of: .modify, "top") == 1)
                #expect(try machine.replica.database.inode(number)?.content == .materialized)
            }
        }
    }
}
