import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import Logging
import TestSupport
import Testing
@testable import HTTPTransport

@testable import WebDAVProvider

/// What servers of other makes do, as it was seen on them.
@Suite("WebDAV servers of other makes", .tags(.server), .serialized)
struct OtherMakeTests {
    /// Creates, changes, renames, reads and deletes some files and folders.
    private func work(_ session: ProviderSession) async throws {
        let folder = try await session.create(ProviderSession.template("folder", kind: .directory)).item
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    _ = try await session.create(
                        ProviderSession.template("file \(number)", in: folder.itemIdentifier),
                        content: [UInt8(number)])
                }
            }
            try await group.waitForAll()
        }
        let items = try await session.list(folder.itemIdentifier)
        #expect(items.count == 40)
        for item in items.prefix(10) {
            let changed = try await session.modify(item, .contents, content: [1, 2, 3, 4]).item
            #expect(try await session.fetch(changed.itemIdentifier).bytes == [1, 2, 3, 4])
            try await session.delete(changed)
        }
        #expect(try await session.list(folder.itemIdentifier).count == 30)
    }

    @Test("DAV-16: a mode waits for room on the server, and for another probe", arguments: ["PUT", "PROPPATCH"])
    func noRoomForModes(_ method: String) async throws {
        try await PlainServer.run("full=\(method)") { server async throws in
            let session = try server.session()
            let remote = try #require(session.webDAV)
            let path = RemotePath(["directory"])
            _ = try await remote.makeDirectory(at: path, attributes: RemoteAttributes())
            let mode = RemoteAttributes(permissions: 0o750)
            let error = await failure { _ = try await remote.set(mode, of: path, kind: .directory) }
            #expect(error?.code == .insufficientQuota)
            #expect(remote.traits.storesModificationDates)
            let found = remote.server.capabilityStore.capabilities
            let lacksRoom: Bool? = method == "PUT" ? nil : true
            #expect(found?.lacksRoom == lacksRoom)
            await session.provider.invalidate()
            let next = try server.session()
            _ = try await next.list()
            let later = try #require(next.webDAV)
            #expect(later.server.capabilityStore.capabilities?.lacksRoom == lacksRoom)
            let count = try await server.state().counts["PUT"] ?? 0
            _ = await failure { _ = try await later.set(mode, of: path, kind: .directory) }
            #expect(try await server.state().counts["PUT"] ?? 0 > count)
            await next.provider.invalidate()
        }
    }

    @Test("DAV-16: a file is deleted where the server has no room for a probe") func deletesWithoutRoom() async throws {
        try await PlainServer.run("full=PUT") { server async throws in
            try await Command.run(
                "curl", "-sS", "--fail", "-H", "X-Room: 1", "-X", "PUT", "-d", "text",
                "http://127.0.0.1:\(server.server.port)/file"
            ).expectSuccess()
            let session = try server.session()
            let item = try #require(try await session.list().first)
            try await session.delete(item)
            #expect(try await session.list().isEmpty)
            await session.provider.invalidate()
        }
    }

    @Test(
        "DAV-3: a server that closes the connection after each answer serves all requests",
        arguments: ["close", "http10"])
    func closesAfterEachAnswer(_ habit: String) async throws {
        try await PlainServer.run(habit) { server async throws in
            let session = try server.session()
            try await work(session)
            await session.provider.invalidate()
            let connections = try await server.state().connections
            // Each request had one of its own, the one for the state too.
            #expect(connections.all > 200 && connections.open == 1)
        }
    }

    @Test("DAV-4: a server whose answer to one probe is no HTTP is written to, and names of that kind are not moved")
    func oneProbeIsAnsweredWithNonsense() async throws {
        try await PlainServer.run("location") { server async throws in
            let session = try server.session()
            try await work(session)
            let capabilities = try #require(session.webDAV?.server.capabilityStore.capabilities)
            #expect(capabilities.oddNames[.controlCharacters] != .kept)
            #expect(
                capabilities.oddNames[.hash] == .kept && capabilities.refusesOverwriting && capabilities.showsOnlyWhole)
            await session.provider.invalidate()
            #expect(try await server.state().hidden == [])
        }
    }

    @Test("DAV-4: a server that fails to list its probes for a moment is written to")
    func listsLater() async throws {
        try await PlainServer.withSession("unlisted=2") { _, session async throws in
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            #expect(session.webDAV?.server.capabilityStore.capabilities?.refusesOverwriting == true)
        }
    }

    @Test("DAV-4: a server that breaks the connection of one probe each time is written to")
    func oneProbeBreaksTheConnection() async throws {
        try await PlainServer.withSession("breaks", attempts: 2) { _, session async throws in
            try await work(session)
            let capabilities = try #require(session.webDAV?.server.capabilityStore.capabilities)
            #expect(capabilities.oddNames[.percent] == .lost)
            #expect(capabilities.oddNames[.hash] == .kept && capabilities.refusesOverwriting)
        }
    }

    @Test("DAV-30: what another client has locked is said to be locked, where the server says so inside a multistatus")
    func lockedByAnother() async throws {
        try await PlainServer.withSession { server, session async throws in
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            try await server.request(".lock")
            async let written = message {
                _ = try await session.create(ProviderSession.template("other"), content: [1])
            }
            async let made = message {
                _ = try await remote.makeDirectory(at: RemotePath(["folder"]), attributes: RemoteAttributes())
            }
            let messages = await [written, made]
            #expect(messages == ["'other' is locked on 127.0.0.1", "'folder' is locked on 127.0.0.1"])
        }
    }

    @Test("DAV-31: a server that permits no changes permits none in the directory, and no hidden name is said")
    func readOnly() async throws {
        try await PlainServer.withSession("readonly", "many=0") { _, session async throws in
            let remote = try #require(session.webDAV)
            let inRoot = await message {
                _ = try await session.create(ProviderSession.template("file"), content: [1])
            }
            #expect(inRoot == "127.0.0.1 does not permit changing '/'")
            let below = await message {
                try await remote.write([1], to: RemotePath(["many", "file"]), if: .absent)
            }
            #expect(below == "127.0.0.1 does not permit changing 'many'")
        }
    }

    @Test("DAV-6: a server that answers for another address is not mounted, and both addresses are said")
    func answersForAnotherAddress() async throws {
        try await PlainServer.run("inner=/inner") { server async throws in
            let base = "http://127.0.0.1:\(server.server.port)"
            let error = await #expect(throws: FileProviderError.self) {
                try await WebDAVProvider.tryOut(
                    "webdav://127.0.0.1:\(server.server.port)/", credentials: { nil }, logger: Logger(label: "test"))
            }
            #expect(error?.code == .serverUnreachable)
            #expect(error?.message.contains("answers for '\(base)/inner/', not for '\(base)/'") == true)
        }
    }

    /// The message of the `cannotSynchronize` that something throws.
    private func message(_ body: @Sendable () async throws -> Void) async -> String? {
        let error = await failure(of: body)
        #expect(error?.code == .cannotSynchronize, "\(String(describing: error))")
        return error?.message
    }

    @Test(
        "DAV-5: no connection is kept busy by a probe that was broken off", arguments: ["location", "breaks", "late"])
    func brokenProbesHoldNoConnections(_ habit: String) async throws {
        try await PlainServer.run(habit) { server async throws in
            let session = try server.session { $0.retries.attempts = 2 }
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            // The one that asks is busy itself.
            #expect(await eventually { (try? await server.state().connections.busy) == 1 })
            await session.provider.invalidate()
            #expect(await eventually { (try? await server.state().connections.open) == 1 })
        }
    }

    @Test("DAV-35: content of another size than was looked up is of another version, and not the server's mistake")
    func replacedMeanwhile() async throws {
        try await PlainServer.withSession("oldget") { server, session async throws in
            for content in ["the old content", "new"] {
                try await Command.run(
                    "curl", "-sS", "--fail", "-X", "PUT", "--data-binary", content,
                    "http://127.0.0.1:\(server.server.port)/file"
                ).expectSuccess()
            }
            let file = try await session.find("file").itemIdentifier
            #expect(await failureCode { _ = try await session.fetch(file) } == .versionNoLongerAvailable)
            #expect(try await session.fetch(file).bytes == Array("new".utf8))
        }
    }

    // MARK: - Who asks

    private static let credentials = WebDAVCredentials(user: "user", password: "word")

    @Test(
        "DAV-19: where a server offers several ways to be let in, the next is taken when one is refused",
        arguments: ["basic", "session", "stale"])
    func fallsBack(_ kind: String) async throws {
        try await PlainServer.run("auth=\(kind)") { server async throws in
            let session = try server.session(Self.credentials)
            try await work(session)
            await session.provider.invalidate()
            // It is found out once, and not for each request.
            let refused = try await server.state().refused
            #expect(refused.filter { $0 == "Digest" }.count <= (kind == "stale" ? 6 : 1), "\(refused)")
            #expect(!refused.contains("Basic"))
        }
    }

    @Test("DAV-19: when all ways are refused the request fails, and each way was tried once") func refusesAll()
        async throws
    {
        try await PlainServer.withSession("auth=none", credentials: Self.credentials) { server, session async throws in
            for attempt in 1...2 {
                #expect(await failureCode { try await session.list() } == .notAuthenticated)
                let refused = try await server.state().refused.filter { !$0.isEmpty }
                #expect(refused.count == 2 * attempt && refused.contains("Basic"), "\(refused)")
            }
        }
    }

    @Test("DAV-18: a login name that is refused may be one that the user has not entered", arguments: ["user", nil])
    func assumedUsers(_ user: String?) {
        let authorization = Authorization { WebDAVCredentials(user: user ?? NSUserName(), password: "word") }
        let message = authorization.refusal(by: "host").message
        #expect(message.contains("'USER:PASSWORD'") == (user == nil || user == NSUserName()), "\(message)")
    }

    @Test("DAV-19: a refused digest is not followed by the password where others can read it")
    func neverInTheClear() async throws {
        let fields: HTTPFields = [
            "WWW-Authenticate": "Digest realm=\"r\", nonce=\"n\", algorithm=MD5-sess, qop=auth, Basic realm=\"r\""
        ]
        func scheme(_ url: String) async throws -> String? {
            let url = try #require(HTTPURL(url))
            let authorization = Authorization { Self.credentials }
            let head = HTTPResponseHead(status: 401, fields: fields, url: url)
            try authorization.learn(head, refused: authorization.pass())
            do {
                try authorization.learn(head, refused: authorization.pass())
            } catch let error as FileProviderError where error.code == .notAuthenticated {
                return nil
            }
            var request = HTTPRequest("GET", url)
            try await authorization.pass().authorize(&request)
            return request.fields["Authorization"]?.split(separator: " ").first.map(String.init)
        }
        #expect(try await scheme("http://example.org/") == nil)
        #expect(try await scheme("http://127.0.0.1.example.org/") == nil)
        for url in ["https://example.org/", "http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/"] {
            #expect(try await scheme(url) == "Basic", "\(url)")
        }
    }
}
