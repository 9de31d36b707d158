import FileProvider
import FileProviderPaths
import FileProviderTesting
import TestSupport
import Testing

@testable import HTTPTransport
@testable import WebDAVProvider

@Suite("Capability probes that a failed move ends", .tags(.server))
struct FailedProbeTests {
    @Test(
        "DAV-32: a proxy's passing error is tried again, not at once, and leaves no capability behind",
        arguments: [502, 504])
    func passing(_ status: Int) async throws {
        try await PlainServer.withSession { server, session async throws in
            try await server.request(".moves=\(status)")
            try await expectFailure(.providerDomainTemporarilyUnavailable, "(\(status))", of: session)
            let sent = try await server.state().counts["PUT"]
            for _ in 0..<3 {
                try await expectFailure(.providerDomainTemporarilyUnavailable, "(\(status))", of: session)
            }
            #expect(try await server.state().counts["PUT"] == sent)
            let remote = try #require(session.webDAV)
            #expect(remote.server.capabilityStore.capabilities == nil)
            // Nothing was sent for a rename: it is not one that may have been made.
            do {
                _ = try await remote.move(RemotePath(["old"]), to: RemotePath(["new"]), kind: .file)
                Issue.record("it was moved")
            } catch {
                #expect(!OperationLedger.isOutcomeUnknown(after: error), "\(error)")
            }

            try await server.request(".moves=0")
            let isMade = await eventually(within: .seconds(30)) {
                (try? await session.create(ProviderSession.template("file"), content: [1])) != nil
            }
            #expect(isMade)
            let capabilities = try #require(session.webDAV?.server.capabilityStore.capabilities)
            #expect(capabilities.refusesOverwriting && capabilities.oddNames[.hash] == .kept)
        }
    }

    @Test("DAV-32: a server that refuses all moves is named with the status, and with what a proxy must do")
    func refused() async throws {
        try await PlainServer.withSession { server, session async throws in
            try await server.request(".moves=400")
            try await expectFailure(
                .cannotSynchronize,
                "127.0.0.1 refuses to move files (400): if a proxy is in front of it, that one must rewrite the Destination",
                of: session)
        }
    }

    @Test("DAV-32: after `yonder retry` the next probe does not wait") func retried() async throws {
        try await PlainServer.withSession { server, session async throws in
            try await server.request(".moves=400")
            try await expectFailure(.cannotSynchronize, "(400)", of: session)
            try await server.request(".moves=0")
            try await #require(session.provider as? any RetryingProvider).retryNow()
            _ = try await session.create(ProviderSession.template("file"), content: [1])
        }
    }

    @Test("DAV-32: a 502 of Apache about the Destination is a refusal, another one and a lock are not")
    func kinds() throws {
        func error(_ status: Int, _ text: String = "") throws -> FileProviderError {
            let url = try #require(HTTPURL("http://server.example/f"))
            let head = HTTPResponseHead(status: status, fields: [:], url: url)
            return ProbeMoveFailure(HTTPResponse(head: head, body: Array(text.utf8)), in: "d").error
        }
        let apache = try error(502, "<p>Destination URI refers to different scheme or port")
        #expect(apache.code == .cannotSynchronize && apache.message.contains("rewrite the Destination header"))
        let other = try error(502, "Bad Gateway")
        #expect(other.code.reaction == .retry && other.message.contains("rewrite the Destination header"))
        #expect(try error(423).message == "'d' is locked on server.example")
        for status in [429, 500, 503, 504] { #expect(try error(status).code.reaction == .retry) }
        #expect(try error(405).message == "server.example refuses to move files (405)")
    }

    /// Creates a file, which fails.
    private func expectFailure(
        _ code: FileProviderError.Code, _ words: String, of session: ProviderSession
    ) async throws {
        let error = await #expect(throws: FileProviderError.self) {
            _ = try await session.create(ProviderSession.template("file"), content: [1])
        }
        #expect(error?.code == code && error?.message.contains(words) == true)
    }
}
