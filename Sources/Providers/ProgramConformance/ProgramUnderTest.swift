import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import ProgramProvider
import ProviderDescriptors
import SystemPackage

/// The remote of a program, which a second process of the same program changes as another client would.
struct ProgramUnderTest: RemoteUnderTest {
    let domain: FileProviderDomain
    let stateDirectory: FilePath
    private let factory: ProgramProviderFactory
    private let settings: ProviderSettings
    private let findings: ProviderFindings?
    private let other: any OtherClient

    init(_ source: String, _ factory: ProgramProviderFactory, _ settings: ProviderSettings) async throws {
        self.factory = factory
        self.settings = settings
        domain = FileProviderDomain(identifier: "check", source: source)
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("yonder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: directory.appendingPathComponent("other"), withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        stateDirectory = FilePath(directory.path)
        do {
            findings = try await factory.probe(source, settings)
            let manager = TestManager(domain: domain, stateDirectory: stateDirectory.appending("other"))
            let provider = try factory.make(for: manager, settings, findings: findings)
            isWritable = provider.features.writing
            if let paths = provider as? PathAddressedProvider {
                other = PathClient(remote: paths.remote, directory: stateDirectory)
            } else {
                other = ItemClient(session: ProviderSession(provider: provider, manager: manager))
            }
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw error
        }
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try factory.make(for: manager, settings, findings: findings)
    }

    /// The program's calls of the level paths; nil if it has chosen the other one.
    var paths: PathClient? { other as? PathClient }

    /// Likewise of the level items.
    var store: ItemClient? { other as? ItemClient }

    /// The names in the root of the remote.
    func items() async throws -> [String] { try await other.names() }

    /// Whether the program can change anything.
    let isWritable: Bool

    func makeDirectory(_ path: String) async throws { try await other.makeDirectory(path) }

    func write(_ bytes: [UInt8], to path: String) async throws { try await other.write(bytes, to: path) }

    func rename(_ path: String, to newPath: String) async throws { try await other.rename(path, to: newPath) }

    func delete(_ path: String) async throws { try await other.delete(path) }

    func dispose() async {
        await other.deleteAll()
        await close()
    }

    /// Ends the programs and leaves the remote as it is.
    func close() async {
        await other.close()
        try? FileManager.default.removeItem(atPath: stateDirectory.string)
    }
}
