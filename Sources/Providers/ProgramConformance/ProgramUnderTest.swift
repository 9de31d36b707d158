import FileProvider
import FileProviderTesting
import Foundation
import PathAddressing
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
    /// The other client.
    private let other: any PathRemote

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
            other = try factory.remote(source, settings, in: stateDirectory.appending("other"))
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw error
        }
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try factory.make(for: manager, settings, findings: findings)
    }

    /// What the remote has in its root.
    func items() async throws -> [RemoteEntry] {
        var entries: [RemoteEntry] = []
        try await other.visitListing(of: .root) { part in
            entries += part.entries
            return true
        }
        return entries
    }

    /// Whether the program can change anything; known after a call.
    var isWritable: Bool { other.traits.isWritable }

    func makeDirectory(_ path: String) async throws {
        _ = try await other.makeDirectory(at: RemotePath(path), attributes: RemoteAttributes())
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        let place = stateDirectory.appending("written-\(UUID().uuidString)")
        try Data(bytes).write(to: URL(fileURLWithPath: place.string))
        defer { try? FileManager.default.removeItem(atPath: place.string) }
        let file = try FileDescriptor.open(place, .readOnly, options: .closeOnExec)
        defer { try? file.close() }
        _ = try await other.write(
            ContentSource(descriptor: file, size: Int64(bytes.count)), to: RemotePath(path),
            attributes: RemoteAttributes(), if: .always)
    }

    func rename(_ path: String, to newPath: String) async throws {
        let kind = try await other.entry(at: RemotePath(path)).kind
        _ = try await other.move(RemotePath(path), to: RemotePath(newPath), kind: kind)
    }

    func delete(_ path: String) async throws {
        let kind = try await other.entry(at: RemotePath(path)).kind
        try await other.delete(RemotePath(path), kind: kind, if: .always)
    }

    func dispose() async {
        for entry in (try? await items()) ?? [] {
            try? await other.delete(RemotePath([entry.name]), kind: entry.kind, if: .always)
        }
        await close()
    }

    /// Ends the programs and leaves the remote as it is.
    func close() async {
        await other.close()
        try? FileManager.default.removeItem(atPath: stateDirectory.string)
    }
}

extension RemotePath {
    fileprivate init(_ path: String) { self.init(path.split(separator: "/").map(String.init)) }
}
