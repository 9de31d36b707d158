import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("WebDAV credentials", .tags(.server), .enabled(if: DAVServer.Kind.apache.program != nil), .serialized)
struct CredentialTests {
    private static let right = WebDAVCredentials(user: "user", password: "secret word")

    @Test("DAV-18: lets itself in as the server wants it", arguments: [DAVServer.Admission.basic, .digest])
    func admission(_ admission: DAVServer.Admission) async throws {
        try await ServedFolder.run(on: .apache, admission, credentials: Self.right) { folder, session async throws in
            try await folder.write([1, 2, 3], to: "file")
            #expect(try await session.fetch(session.find("file").itemIdentifier).bytes == [1, 2, 3])
            let content = [UInt8](repeating: 1, count: 300_000)
            let made = try await session.create(ProviderSession.template("new name?"), content: content)
            #expect(try await session.fetch(made.item.itemIdentifier).bytes == content)
        }
    }

    @Test("DAV-18: says who was not let in, and asks again when the credentials have changed")
    func refusal() async throws {
        for admission in [DAVServer.Admission.basic, .digest] {
            for credentials in [nil, WebDAVCredentials(user: "user", password: "guess")] {
                try await ServedFolder.run(on: .apache, admission, credentials: credentials) {
                    _, session async throws in
                    let error = await #expect(throws: FileProviderError.self) { _ = try await session.list() }
                    #expect(error?.code == .notAuthenticated)
                    #expect(error?.message.contains("guess") == false)
                    #expect(error?.message.contains(credentials == nil ? "~/.netrc" : "user") == true)
                }
            }
        }
    }

    @Test("DAV-18: new credentials are looked up at the next attempt")
    func change() async throws {
        let server = try await DAVServer.start(.apache, .digest)
        try await withCleanUp({ await server.stop() }) {
            let known = Mutex(WebDAVCredentials(user: "user", password: "guess"))
            let folder = try ServedFolder(server)
            let manager = TestManager(domain: folder.domain, stateDirectory: folder.stateDirectory)
            let provider = try WebDAVProvider.make(
                for: manager, credentials: { known.withLock { $0 } }, logger: Logger(label: "test"))
            let session = ProviderSession(provider: provider, manager: manager)
            await #expect(throws: FileProviderError.self) { try await session.list() }
            known.withLock { $0 = Self.right }
            #expect(try await session.list().isEmpty)
            await provider.invalidate()
        }
    }

    @Test("DAV-20: a certificate of an unknown authority is refused; SSL_CERT_FILE names an authority")
    func certificates() async throws {
        try await ServedFolder.run(on: .apache, isSecure: true) { _, session async throws in
            let error = await #expect(throws: FileProviderError.self) { _ = try await session.list() }
            #expect(error?.code == .serverUnreachable)
            #expect(error?.message.contains("SSL_CERT_FILE") == true)
        }
        try await ServedFolder.run(
            on: .apache, .basic, isSecure: true, credentials: Self.right,
            configure: { server in
                var configuration = HTTPTransport.Configuration()
                configuration.environment["SSL_CERT_FILE"] = server.authorityFile.string
                return configuration
            }
        ) { folder, session async throws in
            try await folder.write([1], to: "file")
            #expect(try await session.list().map(\.filename) == ["file"])
        }
    }
}
