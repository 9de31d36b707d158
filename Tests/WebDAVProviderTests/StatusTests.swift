import FileProvider
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

    @Test("A change that is answered with 400 may be refused for its name, and is tried again later")
    func badRequest() throws {
        let url = try #require(HTTPURL("http://server.example/f"))
        let response = HTTPResponse(head: HTTPResponseHead(status: 400, fields: [:], url: url), body: [])
        let writing = WebDAVClient.failure(response, of: "a\\b", isChange: true)
        #expect(writing.message == "server.example answers 400 for 'a\\b': it may not accept the name")
        #expect(writing.code.reaction == .retry)
        #expect(WebDAVClient.failure(response, of: "f").message == "server.example answers 400 for 'f'")
    }

    @Test("DAV-30: a change that is refused inside a multistatus is refused")
    func insideMultistatus() throws {
        let url = try #require(HTTPURL("http://server.example/f"))
        func status(_ method: String, _ inside: Int...) -> Int? {
            let parts = inside.map {
                "<D:response><D:href>/</D:href><D:status>HTTP/1.1 \($0) Words</D:status></D:response>"
            }
            let text = "<D:multistatus xmlns:D=\"DAV:\">\(parts.joined())</D:multistatus>"
            let head = HTTPResponseHead(status: 207, fields: [:], url: url)
            return WebDAVClient.statusInside(HTTPResponse(head: head, body: Array(text.utf8)), to: method)
        }
        for method in ["PUT", "MKCOL", "MOVE", "COPY", "DELETE"] { #expect(status(method, 424, 423) == 423) }
        #expect(status("PUT", 424, 507) == 507)
        #expect(status("PUT", 201) == nil && status("PUT") == nil)
        // What was deleted in part is deleted member by member.
        #expect(status("DELETE", 403) == nil)
        #expect(status("PROPPATCH", 423) == nil)
    }
}
