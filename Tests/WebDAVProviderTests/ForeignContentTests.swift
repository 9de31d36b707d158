import FileProvider
import FileProviderTesting
import TestSupport
import Testing

@Suite("Files that another client writes just after an upload", .tags(.server))
struct ForeignContentTests {
    @Test(
        "DAV-9: what another client has written since is not taken for the upload, also if it is as long",
        arguments: ["", "puttags", "pathtags", "sizetags"])
    func asLong(_ habit: String) async throws {
        try await PlainServer.withSession(habit) { server, session async throws in
            _ = try await session.create(ProviderSession.template("other"), content: [1])
            try await server.request(".foreign=their")
            let created = await failureCode {
                _ = try await session.create(ProviderSession.template("file"), content: Array("yours".utf8))
            }
            #expect(created == .filenameCollision)
            let file = try await session.find("file")
            #expect(try await session.fetch(file.itemIdentifier).bytes == Array("their".utf8))
            // Where a move keeps the tag, the upload has one that is known before the move.
            guard habit == "pathtags" else { return }
            try await server.request(".foreign=other")
            let modified = await failureCode {
                _ = try await session.modify(file, .contents, content: Array("again".utf8))
            }
            #expect(modified == .localVersionConflictingWithServer)
            #expect(try await session.fetch(file.itemIdentifier).bytes == Array("other".utf8))
        }
    }

    @Test("DAV-9: large content of another client is told from the upload by its date and its bytes")
    func large() async throws {
        try await PlainServer.withSession("pathtags") { server, session async throws in
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            let content = [UInt8](repeating: 7, count: 300 << 10)
            try await server.request(".foreign=x")
            let modified = await failureCode { _ = try await session.modify(made, .contents, content: content) }
            #expect(modified == .localVersionConflictingWithServer)
            let theirs = try await session.find("file")
            #expect(try await session.fetch(theirs.itemIdentifier).bytes.first == UInt8(ascii: "x"))
            let changed = try await session.modify(theirs, .contents, content: content)
            #expect(try await session.fetch(changed.item.itemIdentifier).bytes == content)
        }
    }

    @Test("DAV-9: a server with identifiers is asked for the ETag that it has answered")
    func identified() async throws {
        try await IdentifyingRemote.run { port, directory in
            let remote = try await IdentifyingRemote(port: port, in: directory)
            let session = try await remote.session()
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            try await remote.request("-X", "POST", "-d", "", "http://127.0.0.1:\(port)/faults/foreign/their")
            let modified = await failureCode {
                _ = try await session.modify(made, .contents, content: Array("yours".utf8))
            }
            #expect(modified == .localVersionConflictingWithServer)
            #expect(try await remote.content(of: "file").elementsEqual(Array("their".utf8)))
            await session.provider.invalidate()
        }
    }
}
