import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport

@testable import WebDAVProvider

/// A collection of a server's, changed behind the provider's back by requests of others: for servers that keep files
/// otherwise than in a folder.
final class RequestedFolder: RequestedRemote {
    let name = UUID().uuidString
    let domain: FileProviderDomain
    let stateDirectory: FilePath
    let base: String
    /// Holds what a provider has found out about the server: once is enough for all its collections.
    private let server: DAVServer

    /// - Parameter base: where on the server its collections are; ends in a slash.
    init(_ server: DAVServer, below base: String = "") async throws {
        self.base = "http://\(server.authority)/\(base)"
        domain = FileProviderDomain(identifier: "test", source: server.source + base + name)
        stateDirectory = try server.directory.makeDirectory("state-\(name)")
        self.server = server
        let known = CapabilityStore(in: store(of: server.directory.path)).capabilities
        if let known { CapabilityStore(in: store(of: stateDirectory)).keep(known) }
        try await makeDirectory("")
    }

    func makeDirectory(_ path: String) async throws {
        let slash = path.isEmpty || path.hasSuffix("/") ? "" : "/"
        try await request("-X", "MKCOL", url(path) + slash)
    }

    func dispose() async {
        let found = CapabilityStore(in: store(of: stateDirectory)).capabilities
        if let found { CapabilityStore(in: store(of: server.directory.path)).keep(found) }
    }
}

/// The store that providers with a state directory share.
private func store(of directory: FilePath) -> ReportingStore {
    ReportingStore(TestManager.store(for: directory)) { _ in }
}

/// A remote of the tests that others change by requests.
protocol RequestedRemote: RemoteUnderTest {
    /// Its own name on the server.
    var name: String { get }
    /// Where on the server it is; ends in a slash.
    var base: String { get }
}

extension RequestedRemote {
    func url(_ path: String) -> String {
        let names = path.split(separator: "/").map { PercentEncoding.encode(String($0)) }
        return base + name + "/" + names.joined(separator: "/")
    }

    /// Makes a request as another client.
    ///
    /// - Returns: the answer's body.
    @discardableResult
    func request(_ arguments: String...) async throws -> String {
        let outcome = try await Command(["curl", "-sS", "--fail", "--path-as-is"] + arguments).run()
        guard outcome.status == 0 else { throw CocoaError(.fileWriteUnknown) }
        return outcome.output
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try WebDAVProvider.make(for: manager, credentials: { nil }, logger: Logger(label: "test"))
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        let file = stateDirectory.appending(UUID().uuidString).string
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        try await request("-T", file, url(path))
    }

    func rename(_ path: String, to newPath: String) async throws {
        try await request("-X", "MOVE", "-H", "Destination: \(url(newPath))", url(path))
    }

    func delete(_ path: String) async throws { try await request("-X", "DELETE", url(path)) }
}
