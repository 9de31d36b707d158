import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import WebDAVProvider

/// A plain server of the tests' own (Programs/plain_server.py), with habits of servers of other makes.
struct PlainServer: Sendable {
    let server: ScriptedServer
    let directory: TemporaryDirectory

    /// What the server says of itself.
    struct State: Decodable {
        struct Connections: Decodable {
            var open: Int
            var busy: Int
            var most: Int
            var all: Int
        }

        var paths: [String]
        var connections: Connections
        var refused: [String]
        /// Whether the response to the next MOVE will be lost.
        var isLosing: Bool
        /// The requests of each method.
        var counts: [String: Int]

        /// The last names of what has a hidden name.
        var hidden: [String] {
            paths.map { String($0.split(separator: "/").last ?? "") }.filter { HiddenName.isOne($0) }
        }
    }

    /// Runs a test on a server of its own, and ends it whatever the test does.
    static func run(_ habits: String..., test: (PlainServer) async throws -> Void) async throws {
        try await run(habits, test: test)
    }

    private static func run(_ habits: [String], test: (PlainServer) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let server = try await ScriptedServer("plain_server.py", arguments: habits)
        defer { server.stop() }
        try await test(PlainServer(server: server, directory: directory))
    }

    /// Runs a test on a server of its own with a session, which ends after it.
    static func withSession(
        _ habits: String..., attempts: Int? = nil, credentials: WebDAVCredentials? = nil,
        test: (PlainServer, ProviderSession) async throws -> Void
    ) async throws {
        try await run(habits) { server async throws in
            let session = try server.session(credentials) { if let attempts { $0.retries.attempts = attempts } }
            try await test(server, session)
            await session.provider.invalidate()
        }
    }

    func state() async throws -> State {
        let outcome = try await Command.run("curl", "-sS", "--fail", "http://127.0.0.1:\(server.port)/.state")
        return try JSONDecoder().decode(State.self, from: Data(outcome.outputBytes))
    }

    /// Requests a path that the server gives a meaning of its own.
    func request(_ path: String) async throws {
        try await Command.run("curl", "-sS", "--fail", "http://127.0.0.1:\(server.port)/\(path)").expectSuccess()
    }

    /// A session with a provider that keeps what it has to remember in the test's own folder.
    func session(
        _ credentials: WebDAVCredentials? = nil, isReadOnly: Bool = false,
        _ configure: (inout HTTPTransport.Configuration) -> Void = { _ in }
    ) throws -> ProviderSession {
        let manager = TestManager(
            domain: FileProviderDomain(
                identifier: "test", source: "webdav://127.0.0.1:\(server.port)/", isReadOnly: isReadOnly),
            stateDirectory: directory.path)
        var configuration = HTTPTransport.Configuration()
        configure(&configuration)
        let provider = try WebDAVProvider.make(
            for: manager, configuration: configuration, credentials: { credentials }, logger: Logger(label: "test"))
        return ProviderSession(provider: provider, manager: manager)
    }
}

extension ProviderSession {
    /// The remote behind a WebDAV provider.
    var webDAV: WebDAVRemote? { (provider as? PathAddressedProvider)?.remote as? WebDAVRemote }
}

extension RemoteUnderTest {
    /// A session with a new provider.
    ///
    /// - Parameter manager: that of an earlier session, which goes on.
    func session(_ manager: TestManager? = nil) async throws -> ProviderSession {
        let manager = manager ?? TestManager(domain: domain, stateDirectory: stateDirectory)
        return ProviderSession(provider: try await makeProvider(for: manager), manager: manager)
    }
}

extension PathRemote {
    /// Writes a file that gets no attributes.
    @discardableResult
    func write(
        _ content: ContentSource, to path: RemotePath, if condition: RemoteCondition
    ) async throws -> RemoteEntry {
        try await write(content, to: path, attributes: RemoteAttributes(), if: condition)
    }

    /// Writes bytes to a file that gets no attributes.
    @discardableResult
    func write(
        _ bytes: [UInt8], to path: RemotePath, if condition: RemoteCondition = .always,
        confirm: @escaping @Sendable () throws -> Void = {}
    ) async throws -> RemoteEntry {
        try await write(TestContent(bytes, confirm: confirm).source, to: path, if: condition)
    }
}
