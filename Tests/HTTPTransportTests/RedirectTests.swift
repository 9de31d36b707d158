import FileProvider
import HTTPTransport
import TestSupport
import Testing

@Suite(.tags(.server)) struct RedirectTests {
    /// Proves that it was asked for its word.
    struct Secret: RequestAuthorizer {
        func authorize(_ request: inout HTTPRequest) async throws { request.fields["Authorization"] = "secret" }
    }

    private func request(_ method: String, _ url: HTTPURL) -> HTTPRequest {
        var request = HTTPRequest(method, url, fields: ["X-Own": "mine", "Range": "bytes=0-9"])
        request.authorizer = Secret()
        return request
    }

    @Test func followsOnOneServerWithMethodAndFields() async throws {
        try await withServer { server, transport in
            for status in [301, 302, 307, 308] {
                var moved = request("PROPFIND", try server.at("/redirect?status=\(status)&to=/echo/there"))
                moved.body = .bytes(Array("body".utf8))
                let answer = try await transport.send(moved)
                let echo = try Echo(answer)
                #expect(echo.method == "PROPFIND" && echo.path == "/echo/there")
                #expect(echo.fields["x-own"] == "mine" && echo.fields["authorization"] == "secret")
                #expect(echo.fields["content-length"] == "4")
                #expect(answer.head.url.path == "/echo/there")
            }
        }
    }

    @Test func anotherServerGetsNothingButTheRange() async throws {
        try await withServer { server, transport in
            try await withServer { other, _ in
                let url = try server.at("/redirect?to=\(other.base)echo")
                let echo = try Echo(await transport.send(request("GET", url)))
                #expect(echo.fields["range"] == "bytes=0-9")
                #expect(echo.fields["x-own"] == nil && echo.fields["authorization"] == nil)
                let put = await failure { _ = try await transport.send(request("PUT", url)) }
                #expect(put?.code == .malformedResponse)
                let words = "to another server (http://\(other.base.authority)), which is not followed: name that one"
                #expect(put?.message.contains(words) == true, "\(put?.message ?? "")")
                #expect(try await other.log().entries(below: "/echo").count == 1)
            }
        }
    }

    @Test func changesStayInTheirPlace() async throws {
        try await withServer { server, transport in
            for method in ["DELETE", "PUT", "MOVE", "POST"] {
                let url = try server.at("/redirect/file?to=/echo/")
                let error = await failure { _ = try await transport.send(request(method, url)) }
                #expect(error?.code == .malformedResponse)
                let words = "redirects \(method) to another place ('/echo/'), which is not followed"
                #expect(error?.message.contains(words) == true, "\(error?.message ?? "")")
                // As lighttpd does for a directory without its slash.
                let slash = "/redirect/\(method)/%3Fstatus=200%26to=/"
                let answer = try await transport.send(
                    request(method, try server.at("/redirect/\(method)?status=308&to=\(slash)")))
                #expect(answer.status == 200 && answer.head.url.path == "/redirect/\(method)/")
            }
            #expect(try await server.log().entries(below: "/echo").isEmpty)
        }
    }

    @Test func neverLeavesASafeConnection() async throws {
        try await withServer { other, _ in
            try await withServer(isSecure: true, { $1.environment["SSL_CERT_FILE"] = $0.certificate }) {
                server, transport in
                let url = try server.at("/redirect?to=\(other.base)echo")
                let error = await failure { _ = try await transport.send(request("GET", url)) }
                #expect(error?.code == .malformedResponse)
                #expect(error?.message.contains("unsafe") == true)
            }
            #expect(try await other.log().entries(below: "/echo").isEmpty)
        }
    }

    @Test func circlesEnd() async throws {
        try await withServer { server, transport in
            let url = try server.at("/redirect?to=/redirect?to=/redirect")
            let error = await failure { _ = try await transport.send(HTTPRequest("GET", url)) }
            // Round and round: the last has no `to`, and the page then breaks the connection.
            #expect(error != nil)
            let loop = try server.at("/redirect/loop?to=?to=?to=")
            let circling = await failure { _ = try await transport.send(HTTPRequest("GET", loop)) }
            #expect(circling != nil)
            var unfollowed = HTTPRequest("GET", try server.at("/redirect?to=/echo"))
            unfollowed.followsRedirects = false
            #expect(try await transport.send(unfollowed).status == 302)
        }
    }
}
