import FileProvider
import Foundation
import HTTPTransport
import TestSupport
import Testing

@Suite(.tags(.server)) struct TLSVersionTests {
    /// Makes a request of a server that speaks one version of TLS, after OpenSSL has proved that it does.
    private func error(from version: String, flag: String) async throws -> String? {
        let server = try await TestServer(isSecure: true, version: version)
        defer { server.stop() }
        let proof = try await Command.shell(
            "openssl s_client -connect localhost:\(server.base.port) -\(flag) -cipher 'ALL:@SECLEVEL=0' </dev/null", "")
        try #require(
            proof.output.contains("Cipher is") && !proof.output.contains("Cipher is (NONE)"), "\(proof.errors)")
        let transport = makeTransport { $0.environment["SSL_CERT_FILE"] = server.certificate }
        let failed = await failure { _ = try await transport.send(HTTPRequest("GET", server.at("/echo"))) }
        await transport.close()
        #expect(failed == nil || failed?.code == .serverUnreachable)
        return failed?.message
    }

    @Test(
        "HTTP-5: a server that speaks nothing newer than TLS 1.1 is refused",
        arguments: [("TLSv1", "tls1"), ("TLSv1_1", "tls1_1")])
    func refusesOldVersions(version: String, flag: String) async throws {
        let message = try await error(from: version, flag: flag)
        #expect(message?.contains("TLS 1.2") == true, "\(message ?? "it was answered")")
    }

    @Test(arguments: [("TLSv1_2", "tls1_2"), ("TLSv1_3", "tls1_3")])
    func speaksNewVersions(version: String, flag: String) async throws {
        #expect(try await error(from: version, flag: flag) == nil)
    }
}
