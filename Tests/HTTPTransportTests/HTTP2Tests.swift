import FileProvider
import FileProviderTesting
import Foundation
import HTTPTransport
import SystemPackage
import TestSupport
import Testing

/// A server that offers HTTP/2: nginx, where it is installed.
@Suite(.tags(.server)) struct HTTP2Tests {
    private static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].first {
        FileManager.default.fileExists(atPath: $0)
    }

    @Test(.enabled(if: nginx != nil, "nginx is not installed")) func speaksHTTP2WhereItIsOffered() async throws {
        let nginx = try #require(Self.nginx)
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let folder = scratch.path.string
        let made = try await Command.run(
            "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
            "-addext", "subjectAltName=DNS:localhost", "-keyout", "\(folder)/key", "-out", "\(folder)/certificate")
        #expect(made.status == 0, "\(made.errors)")
        _ = try scratch.makeFile("file", servedContent)
        let port = try await freePort()
        let configuration = """
            daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/errors;
            events {}
            http {
              access_log off; client_body_temp_path \(folder)/body; proxy_temp_path \(folder)/proxy;
              fastcgi_temp_path \(folder)/fastcgi; uwsgi_temp_path \(folder)/uwsgi; scgi_temp_path \(folder)/scgi;
              server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate \(folder)/certificate; ssl_certificate_key \(folder)/key;
                root \(folder); add_header X-Protocol $server_protocol always;
              }
            }
            """
        _ = try scratch.makeFile("nginx.conf", Array(configuration.utf8))
        let program = try await BackgroundProgram(nginx, "-e", "\(folder)/errors", "-c", "\(folder)/nginx.conf")
        defer { program.kill() }
        let transport = makeTransport { $0.environment["SSL_CERT_FILE"] = "\(folder)/certificate" }
        let url = HTTPURL(isSecure: true, host: "localhost", port: port, path: "/file")
        let isUp = await eventually(within: .seconds(20)) {
            (try? await transport.send(HTTPRequest("HEAD", url)).status) == 200
        }
        #expect(isUp)
        let head = try await transport.send(HTTPRequest("HEAD", url)).head
        #expect(head.fields["X-Protocol"] == "HTTP/2.0")
        let sink = CollectingSink()
        let download = HTTPDownload(HTTPRequest("GET", url), range: 1000..<900_000) {
            FileProviderError(.malformedResponse, "\($0.status)")
        }
        // Many at once, over one connection.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = try await transport.download(download, into: CollectingSink()) } }
            try await group.waitForAll()
        }
        _ = try await transport.download(download, into: sink)
        #expect(try sink.bytes(in: 1000..<900_000) == Array(servedContent[1000..<900_000]))
        await transport.close()
    }
}
