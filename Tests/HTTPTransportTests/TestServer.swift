import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport

/// A real server for one test (Programs/server.py).
struct TestServer: Sendable {
    let base: HTTPURL
    let scratch: TemporaryDirectory
    private let server: ScriptedServer

    /// - Parameters:
    ///   - isSecure: with a certificate of its own authority: ``certificate``.
    ///   - version: the only version of TLS that it speaks, such as `TLSv1_1`.
    init(isSecure: Bool = false, version: String? = nil) async throws {
        scratch = try TemporaryDirectory()
        var arguments: [String] = []
        if isSecure {
            let made = try await Command.run(
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost", "-keyout", scratch["key"].string, "-out",
                scratch["certificate"].string)
            guard made.status == 0 else { throw TestFailure("openssl: \(made.errors)") }
            arguments = [scratch["certificate"].string, scratch["key"].string] + (version.map { [$0] } ?? [])
        }
        server = try await ScriptedServer(program: "HTTPTransportTests/Programs/server.py", arguments)
        base = HTTPURL(isSecure: isSecure, host: isSecure ? "localhost" : "127.0.0.1", port: server.port)
    }

    var certificate: String { scratch["certificate"].string }

    func stop() {
        server.stop()
        scratch.remove()
    }

    /// An address on it.
    func at(_ target: String) throws -> HTTPURL {
        guard let url = base.resolving(target) else { throw TestFailure("no address: \(target)") }
        return url
    }

    /// What it was asked.
    func log() async throws -> ServerLog {
        let client = makeTransport()
        let answer = try await client.send(HTTPRequest("GET", at("/log")))
        await client.close()
        return try JSONDecoder().decode(ServerLog.self, from: Data(answer.body))
    }
}

struct ServerLog: Decodable {
    struct Entry: Decodable {
        var path: String
        var method: String
        var length: Int
        var whole: Bool
        var fields: [String: String]
    }
    var log: [Entry]
    /// The most connections at once.
    var most: Int

    func entries(below path: String) -> [Entry] { log.filter { $0.path.hasPrefix(path) } }
}

/// What `/echo` answers.
struct Echo: Decodable {
    var method: String
    var path: String
    var fields: [String: String]

    init(_ response: HTTPResponse) throws {
        self = try JSONDecoder().decode(Echo.self, from: Data(response.body))
    }
}

/// One without what the environment says, that waits for nothing long.
func makeTransport(_ change: (inout HTTPTransport.Configuration) -> Void = { _ in }) -> HTTPTransport {
    var configuration = HTTPTransport.Configuration()
    configuration.environment = [:]
    configuration.retries.firstPause = .milliseconds(10)
    configuration.stallTimeout = .seconds(5)
    change(&configuration)
    return HTTPTransport(configuration, logger: Logger(label: "test"))
}

/// Runs a body with a server and a transport to it.
func withServer(
    isSecure: Bool = false, _ change: (TestServer, inout HTTPTransport.Configuration) -> Void = { _, _ in },
    _ body: (TestServer, HTTPTransport) async throws -> Void
) async throws {
    let server = try await TestServer(isSecure: isSecure)
    let transport = makeTransport { change(server, &$0) }
    try await withCleanUp({
        await transport.close()
        server.stop()
    }) {
        try await body(server, transport)
    }
}

/// The content that `/file` has.
let servedContent = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 / 251) }
