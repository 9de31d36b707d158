import FileProvider
import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("Changes that a WebDAV server wants to get again later", .tags(.server))
struct RepetitionTests {
    private static let file = RemotePath(["file"])

    /// Writes a file, and runs a body for which the next request of a method is refused, while another client is faster.
    private func withForeignWrite(
        before method: String, _ status: Int,
        _ body: (WebDAVRemote, ProviderSession, _ arm: () async throws -> Void) async throws -> Void
    ) async throws {
        try await PlainServer.withSession { server, session async throws in
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            try await body(remote, session) { try await server.request(".overtake=\(method),\(status)") }
        }
    }

    @Test("DAV-9: what came between two attempts of a write is not replaced", arguments: [503, 423])
    func write(status: Int) async throws {
        try await withForeignWrite(before: "MOVE", status) { remote, session, arm in
            let tag = try await remote.entry(at: Self.file).tag
            try await arm()
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.write([2, 3], to: Self.file, if: .unchanged(tag: tag))
            }
            #expect(failure?.present?.size == 6)
            #expect(try await session.fetch(session.find("file").itemIdentifier).bytes == Array("theirs".utf8))
        }
    }

    @Test("DAV-9: what came between two attempts of a deletion is not deleted", arguments: [503, 423])
    func deletion(status: Int) async throws {
        try await withForeignWrite(before: "DELETE", status) { remote, _, arm in
            let tag = try await remote.entry(at: Self.file).tag
            let folder = RemotePath(["folder"])
            _ = try await remote.makeDirectory(at: folder, attributes: RemoteAttributes())
            try await arm()
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(Self.file, kind: .file, if: .unchanged(tag: tag))
            }
            #expect(failure?.present?.size == 6)
            try await arm()
            let inside = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(folder, kind: .directory, if: .empty)
            }
            #expect(inside?.present?.kind == .directory)
            #expect(try await remote.entry(at: RemotePath(["folder", "theirs"])).size == 6)
        }
    }

    @Test("DAV-9: a directory is not moved to a name that was taken between two attempts", arguments: [503, 423])
    func move(status: Int) async throws {
        try await withForeignWrite(before: "MOVE", status) { remote, _, arm in
            let folder = RemotePath(["folder"])
            _ = try await remote.makeDirectory(at: folder, attributes: RemoteAttributes())
            try await arm()
            let failure = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.move(folder, to: RemotePath(["moved"]), kind: .directory)
            }
            #expect(failure?.present?.size == 6)
            #expect(try await remote.entry(at: folder).kind == .directory)
        }
    }

    @Test("DAV-9: content whose answer was lost is not another client's", arguments: [true, false])
    func lostAnswer(isInMemory: Bool) async throws {
        try await PlainServer.withSession { server, session async throws in
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let tag = try await remote.entry(at: Self.file).tag
            let changes = remote.prober.changes
            for condition in [RemoteCondition.absent, .unchanged(tag: tag)] {
                // What was sent arrives, and the server does not answer: then the look is called.
                let bytes: [UInt8] = [2, 3]
                let content = try TestContent(bytes)
                let recheck = try #require(
                    changes.recheck(condition, at: Self.file, toSend: content.source, isInMemory ? bytes : nil))
                try await changes.put(.bytes(bytes), at: Self.file)
                try await recheck()
                // Another client's has the same length.
                try await changes.put(.bytes([4, 5]), at: Self.file)
                let failure = await #expect(throws: RemoteConditionFailure.self) { try await recheck() }
                #expect(failure?.present?.size == 2)
            }
        }
    }

    @Test("DAV-9: a change that a server wants credentials for was not made, and is not looked at again")
    func credentials() async throws {
        let credentials = WebDAVCredentials(user: "user", password: "word")
        try await PlainServer.withSession("auth=basic", credentials: credentials) { _, session async throws in
            let client = try #require(session.webDAV).server.client
            let looks = Atomic<Int>(0)
            let response = try await client.send(
                "PUT", client.root.url(of: Self.file), body: .bytes([1]),
                recheck: { looks.add(1, ordering: .relaxed) })
            #expect(response.status == 201)
            #expect(looks.load(ordering: .relaxed) == 0)
        }
    }
}
