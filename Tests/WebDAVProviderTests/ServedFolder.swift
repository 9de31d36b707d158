import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport
import Testing
import WebDAVProvider

/// A folder of a server's, changed on the disk behind the provider's back.
final class ServedFolder: RemoteUnderTest, TestFolder {
    let server: DAVServer
    /// The folder's name on the server.
    let name: String
    let stateDirectory: FilePath
    let domain: FileProviderDomain
    private let credentials: WebDAVCredentials?
    private let configuration: HTTPTransport.Configuration?

    init(
        _ server: DAVServer, credentials: WebDAVCredentials? = nil, configuration: HTTPTransport.Configuration? = nil
    ) throws {
        self.server = server
        self.credentials = credentials
        self.configuration = configuration
        name = "a folder \(UUID().uuidString)"
        domain = FileProviderDomain(identifier: "test", source: server.source + name)
        stateDirectory = try server.directory.makeDirectory("state-\(UUID().uuidString)")
        try makeFolder(server.root.appending(name).string)
    }

    /// A path in the folder.
    subscript(_ path: String) -> String { server.root.appending(name).string + "/" + path }

    private func makeFolder(_ path: String) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        // The server may run as another user.
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try makePathProvider(for: manager)
    }

    func makePathProvider(for manager: any FileProviderManager) throws -> PathAddressedProvider {
        let credentials = credentials
        return try WebDAVProvider.make(
            for: manager, configuration: configuration, credentials: { credentials }, logger: Logger(label: "test"))
    }

    func makeDirectory(_ path: String) async throws { try makeFolder(self[path]) }

    func write(_ bytes: [UInt8], to path: String) async throws {
        try write(bytes, to: path, at: WriteClock.next())
    }

    /// Writes a file as it would be at a time; nil for now.
    func write(_ bytes: [UInt8], to path: String, at date: Date?) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: self[path]))
        if let date { try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: self[path]) }
    }

    func dispose() async {
        try? FileManager.default.removeItem(atPath: self[""])
    }

    /// The names in it, hidden ones too, without the folder in which Apache keeps properties.
    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: self[""])) ?? []).filter { $0 != ".DAV" }.sorted()
    }

    /// Runs a test with a provider on a server of its own.
    static func run(
        on kind: DAVServer.Kind, _ admission: DAVServer.Admission = .everybody, isSecure: Bool = false,
        credentials: WebDAVCredentials? = nil,
        configure: (DAVServer) -> HTTPTransport.Configuration? = { _ in nil },
        _ test: (ServedFolder, ProviderSession) async throws -> Void
    ) async throws {
        let server = try await DAVServer.start(kind, admission, isSecure: isSecure)
        do {
            let folder = try ServedFolder(server, credentials: credentials, configuration: configure(server))
            let manager = TestManager(domain: folder.domain, stateDirectory: folder.stateDirectory)
            let provider = try await folder.makeProvider(for: manager)
            try await withCleanUp({ await provider.invalidate() }) {
                try await test(folder, ProviderSession(provider: provider, manager: manager))
            }
        } catch {
            if !server.log.isEmpty { Issue.record("the server has complained of: \(server.log)") }
            await server.stop()
            throw error
        }
        await server.stop()
    }
}
