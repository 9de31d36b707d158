import FileProvider
import Foundation
import HTTPTransport
import SystemPackage
import TestSupport
import Testing

/// A proxy that connects (Programs/proxy.py), and says whom it was asked for.
@Suite(.tags(.server)) struct ProxyTests {
    private func withProxy(_ body: (_ address: String, _ log: () -> String) async throws -> Void) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let log = scratch["log"].string
        let proxy = try await ScriptedServer(program: "HTTPTransportTests/Programs/proxy.py", [log])
        defer { proxy.stop() }
        try await body("127.0.0.1:\(proxy.port)") { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
    }

    @Test func theProxyOfTheEnvironmentIsUsed() async throws {
        try await withProxy { proxy, log in
            try await withServer(
                isSecure: true,
                {
                    $1.environment["SSL_CERT_FILE"] = $0.certificate
                    $1.environment["https_proxy"] = "http://user:word@\(proxy)"
                },
                { server, transport async throws in
                    // Never for this machine itself.
                    #expect(try await transport.send(HTTPRequest("GET", server.at("/echo"))).status == 200)
                    #expect(log().isEmpty)
                    // The proxy takes every name for this machine.
                    let far = HTTPURL(isSecure: true, host: "far.example", port: server.base.port, path: "/echo")
                    let error = await failure { _ = try await transport.send(HTTPRequest("GET", far)) }
                    // The certificate is another's: TLS goes through to the end.
                    #expect(error?.code == .serverUnreachable && error?.message.contains("certificate") == true)
                    #expect(log() == "far.example:\(server.base.port) Basic dXNlcjp3b3Jk\n")
                })
            try await withServer({ $1.environment["http_proxy"] = proxy }) { server, transport async throws in
                let far = HTTPURL(isSecure: false, host: "plain.example", port: server.base.port, path: "/echo")
                #expect(try await transport.send(HTTPRequest("GET", far)).status == 200)
                #expect(log().contains("plain.example:\(server.base.port)"))
            }
        }
    }
}
