import FileProvider
import FileProviderPaths
import FileProviderTesting
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("Moves that a proxy does not wait for", .tags(.server))
struct UnansweredMoveTests {
    @Test(
        "DAV-29: a move that is made after its 504 ends the upload, and nothing is sent twice",
        arguments: ["", "pathtags"], [3, 300 << 10])
    func isMadeLater(_ habit: String, _ size: Int) async throws {
        try await PlainServer.run(habit) { server async throws in
            let session = try server.session()
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            let before = try await server.state().counts
            try await server.request(".gateway=1000")
            let content = [UInt8](repeating: 7, count: size)
            let changed = try await session.modify(made, .contents, content: content).item
            #expect(try await session.fetch(changed.itemIdentifier).bytes == content)
            let state = try await server.state()
            #expect(state.paths == ["/", "/file"])
            #expect(state.counts["PUT", default: 0] == before["PUT", default: 0] + 1)
            #expect(state.counts["MOVE", default: 0] == before["MOVE", default: 0] + 1)
            #expect(state.counts["DELETE", default: 0] == before["DELETE", default: 0])
            await session.provider.invalidate()
        }
    }

    @Test("DAV-29: the end of a session takes no source away from a move without an answer, nor does the next start")
    func isKept() async throws {
        try await PlainServer.run { server async throws in
            let session = try server.session()
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let content = try TestContent([2, 3])
            let before = try await server.state().counts
            try await server.request(".gateway=3000")
            let upload = Task {
                try await remote.write(
                    content.source, to: RemotePath(["file"]), attributes: RemoteAttributes(), if: .always)
            }
            #expect(
                await eventually {
                    (try? await server.state().counts["MOVE"]) == before["MOVE", default: 0] + 1
                })
            upload.cancel()
            _ = try? await upload.value
            await session.provider.invalidate()
            let next = try server.session()
            _ = try await next.list()
            #expect(await eventually(within: .seconds(20)) { (try? await server.state().hidden) == [] })
            // The server has replaced the file, and has not lost it.
            let file = try await next.find("file")
            #expect(try await next.fetch(file.itemIdentifier).bytes == [2, 3])
            await next.provider.invalidate()
        }
    }
}
