import DirectoryProvider
import FileProvider
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport

/// A real folder in a temporary directory, changed with Foundation behind the provider's back.
struct FolderRemote: RemoteUnderTest {
    let directory: TemporaryDirectory
    let root: FilePath
    let stateDirectory: FilePath

    init() throws {
        directory = try TemporaryDirectory()
        root = try directory.makeDirectory("root")
        stateDirectory = try directory.makeDirectory("state")
    }

    var domain: FileProviderDomain { FileProviderDomain(identifier: "test", source: root.string) }

    /// A path in the folder.
    subscript(_ path: String) -> String { root.string + "/" + path }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try DirectoryProvider(root: root, manager: manager)
    }

    func makeDirectory(_ path: String) async throws {
        try FileManager.default.createDirectory(atPath: self[path], withIntermediateDirectories: false)
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        if !FileManager.default.fileExists(atPath: self[path]) {
            guard FileManager.default.createFile(atPath: self[path], contents: nil) else {
                throw CocoaError(.fileWriteUnknown)
            }
        }
        // In place, as a remote file that is written keeps its inode.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: self[path]))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data(bytes))
        try file.close()
    }

    func rename(_ path: String, to newPath: String) async throws {
        try FileManager.default.moveItem(atPath: self[path], toPath: self[newPath])
    }

    func delete(_ path: String) async throws {
        try FileManager.default.removeItem(atPath: self[path])
    }

    func dispose() async {
        directory.remove()
    }

    /// Runs a test with a folder and a provider of its own.
    static func run(_ test: (FolderRemote, ProviderSession) async throws -> Void) async throws {
        let remote = try FolderRemote()
        defer { remote.directory.remove() }
        let manager = TestManager(domain: remote.domain, stateDirectory: remote.stateDirectory)
        let provider = try await remote.makeProvider(for: manager)
        try await withCleanUp({ await provider.invalidate() }) {
            try await test(remote, ProviderSession(provider: provider, manager: manager))
        }
    }
}
