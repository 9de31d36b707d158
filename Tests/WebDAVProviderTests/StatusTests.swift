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

    @Test("CMD-8: a server without WebDAV at a path is told from one that cannot be written", arguments: [405, 501])
    func wrongPath(status: Int) throws {
        let url = try #require(HTTPURL("http://server.example/f"))
        let response = HTTPResponse(head: HTTPResponseHead(status: status, fields: [:], url: url), body: [])
        let reading = WebDAVClient.failure(response, of: "/f")
        #expect(reading.code == .malformedResponse && reading.message.contains("does not speak WebDAV at '/f'"))
        let writing = WebDAVClient.failure(response, of: "f", isChange: true)
        #expect(writing.code == .cannotSynchronize && writing.message.contains("cannot be written"))
    }
}
