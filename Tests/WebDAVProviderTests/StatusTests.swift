import FileProvider
import TestSupport
import Testing

@testable import HTTPTransport
@testable import WebDAVProvider

@Suite struct StatusTests {
    @Test("ERROR-6: a server that fails for one request is asked again", arguments: [408, 425, 429, 500, 505, 599])
    func temporaryFailures(status: Int) throws {
        let url = try #require(HTTPURL("http://server.example/f"))
        let response = HTTPResponse(head: HTTPResponseHead(status: status, fields: [:], url: url), body: [])
        for isChange in [false, true] {
            let failure = WebDAVClient.failure(response, of: "f", isChange: isChange)
            #expect(failure.code == .providerDomainTemporarilyUnavailable)
            #expect(failure.code.reaction == .retry)
        }
    }
}
