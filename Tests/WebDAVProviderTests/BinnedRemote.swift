import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport

@testable import WebDAVProvider

/// A folder on a server with a trash bin, changed behind the provider's back by requests of others.
final class BinnedRemote: RequestedRemote {
    static let files = "remote.php/dav/files/user/"
    let name: String
    let domain: FileProviderDomain
    let stateDirectory: FilePath
    let base: String
    let port: Int
    private let attempts: Int

    /// - Parameters:
    ///   - name: the folder below the user's files.
    ///   - attempts: how often a request is made that breaks.
    init(
        port: Int, in directory: TemporaryDirectory, named name: String = UUID().uuidString, attempts: Int = 3
    ) async throws {
        self.name = name
        self.port = port
        self.attempts = attempts
        base = "http://127.0.0.1:\(port)/\(Self.files)"
        domain = FileProviderDomain(
            identifier: "test", source: "webdav://127.0.0.1:\(port)/\(Self.files)\(name)")
        stateDirectory = try directory.makeDirectory("state-\(UUID().uuidString)")
        if try await Command.run("curl", "-sS", "--fail", "-X", "PROPFIND", "-H", "Depth: 0", url("")).status != 0 {
            try await makeDirectory("")
        }
    }

    /// As a mount makes one: the server was tried out before.
    func makePathProvider(for manager: any FileProviderManager) async throws -> PathAddressedProvider {
        var configuration = HTTPTransport.Configuration()
        configuration.retries.attempts = attempts
        let logger = Logger(label: "test")
        let findings = try await WebDAVProvider.tryOut(domain.source, credentials: { nil }, logger: logger)
        return try WebDAVProvider.make(
            for: manager, configuration: configuration, findings: findings, credentials: { nil }, logger: logger)
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try await makePathProvider(for: manager)
    }

    func makeDirectory(_ path: String) async throws { try await request("-X", "MKCOL", url(path)) }

    func dispose() async {}

    // MARK: - Behind the provider's back

    /// Has the server do something wrong.
    func fault(_ name: String, _ value: String) async throws {
        try await request("-X", "POST", "-d", "", "http://127.0.0.1:\(port)/faults/\(name)/\(value)")
    }

    private var bin: String { "http://127.0.0.1:\(port)/remote.php/dav/trashbin/user/" }

    /// What a listing says of a folder, or of the bin.
    private func names(at address: String) async throws -> [String] {
        let text = try await request("-X", "PROPFIND", "-H", "Depth: 1", address)
        let hrefs = text.components(separatedBy: "<d:href>").dropFirst().map { $0.components(separatedBy: "<")[0] }
        return hrefs.dropFirst().map { href in
            let last = href.split(separator: "/").last.map(String.init) ?? ""
            return last.removingPercentEncoding ?? last
        }.sorted()
    }

    /// What is in a folder on the server.
    func listing(of path: String = "") async throws -> [String] { try await names(at: url(path) + "/") }

    /// What is in the bin, as it is called there.
    func binned() async throws -> [String] { try await names(at: bin + "trash/") }

    /// The names that the things in the bin had, but for those that a provider hides.
    func binnedNames() async throws -> [String] {
        try await binned().filter { !$0.hasPrefix(HiddenName.prefix) }
            .map { $0.components(separatedBy: ".d1").dropLast().joined(separator: ".d1") }
    }

    /// Brings back what is in the bin, as in the browser.
    func restore(_ place: String) async throws {
        try await request(
            "-X", "MOVE", "-H", "Destination: \(bin)restore/x", bin + "trash/" + PercentEncoding.encode(place))
    }

    /// Deletes for good, as in the browser.
    func deleteFromBin(_ place: String) async throws {
        try await request("-X", "DELETE", bin + "trash/" + PercentEncoding.encode(place))
    }

    func content(of path: String) async throws -> String { try await request(url(path)) }

    /// Runs a test with a provider on a server of its own.
    static func run(
        attempts: Int = 3, _ test: (BinnedRemote, ProviderSession, TestManager) async throws -> Void
    ) async throws {
        try await IdentifyingRemote.run { port, directory in
            let remote = try await BinnedRemote(port: port, in: directory, attempts: attempts)
            let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
            let provider = try await remote.makeProvider(for: manager)
            try await withCleanUp({ await provider.invalidate() }) {
                try await test(remote, ProviderSession(provider: provider, manager: manager), manager)
            }
        }
    }
}

extension ProviderSession {
    /// Throws an item away.
    func trash(_ item: FileProviderItem) async throws -> FileProviderItem {
        try await modify(item.moved(to: .trashContainer), .parentItemIdentifier).item
    }

    /// Brings an item back to a place.
    func restore(
        _ item: FileProviderItem, to parent: ItemIdentifier, as name: String, content: [UInt8]? = nil
    ) async throws -> FileProviderItem {
        let item = item.renamed(name).moved(to: parent)
        return try await modify(item, [.parentItemIdentifier, .filename], content: content).item
    }
}
