import DirectoryProvider
import FileProvider
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport

/// A real folder in a temporary directory.
struct FolderRemote: RemoteUnderTest, TestFolder {
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

    /// Gives a file of the folder another name.
    func link(_ name: String, as other: String) throws {
        try FileManager.default.linkItem(atPath: self[name], toPath: self[other])
    }

    /// Makes a file with two names.
    func writeLinked(_ name: String, _ other: String) async throws {
        try await write(Array("shared".utf8), to: name)
        try link(name, as: other)
    }

    /// Makes "directory" with a file, which become known, and puts a link to a directory outside in its place. It goes "elsewhere".
    func replaceDirectoryByLink(
        in session: ProviderSession
    ) async throws -> (directory: FileProviderItem, file: FileProviderItem, outside: FilePath) {
        let outside = try directory.makeDirectory("outside")
        _ = try directory.makeFile("outside/file", Array("secret".utf8))
        try await makeDirectory("directory")
        try await write(Array("public".utf8), to: "directory/file")
        let item = try await session.find("directory")
        let file = try await session.find("directory/file")
        try FileManager.default.moveItem(atPath: self["directory"], toPath: directory["elsewhere"].string)
        try FileManager.default.createSymbolicLink(atPath: self["directory"], withDestinationPath: outside.string)
        return (item, file, outside)
    }

    /// The content of a file of the folder; empty for none.
    func text(_ path: String) -> String {
        String(decoding: FileManager.default.contents(atPath: self[path]) ?? Data(), as: UTF8.self)
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        try DirectoryProvider(root: root, manager: manager)
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
