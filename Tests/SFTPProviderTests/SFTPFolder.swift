import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import SystemPackage
import TestSupport

@testable import SFTPProvider

/// A folder behind an SFTP server, changed on the disk behind the provider's back.
final class SFTPFolder: RemoteUnderTest, TestFolder {
    static let program = "/usr/lib/openssh/sftp-server"
    static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: program) }

    let directory: TemporaryDirectory
    let stateDirectory: FilePath
    let root: FilePath
    let domain: FileProviderDomain
    let environment: [String: String]
    /// Nil where a program in place of `ssh` starts the SFTP server itself.
    let server: SSHServer?

    /// - Parameter words: the command line of OpenSSH's SFTP server.
    convenience init(_ words: String = program) throws {
        let directory = try TemporaryDirectory()
        let ssh = try directory.makeFile("ssh", "#!/bin/sh\nexec \(words)\n".utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: ssh.string)
        let root = try directory.makeDirectory("a folder")
        try self.init(directory, root, "sftp://server" + root.string, ["YONDER_SSH": ssh.string], nil)
    }

    /// The folder of a server, which ends with it.
    convenience init(_ server: SSHServer) throws {
        try self.init(server.directory, server.root, server.source, server.environment, server)
    }

    private init(
        _ directory: TemporaryDirectory, _ root: FilePath, _ source: String, _ environment: [String: String],
        _ server: SSHServer?
    ) throws {
        BrokenPipes.areIgnored
        (self.directory, self.root, self.server) = (directory, root, server)
        stateDirectory = try directory.makeDirectory("state")
        domain = FileProviderDomain(identifier: "test", source: source)
        self.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    }

    subscript(_ path: String) -> String { root.string + "/" + path }

    /// Runs a test with a connection to the server, and takes both away.
    func withRemote(_ test: (SFTPRemote) async throws -> Void) async throws {
        let environment = environment
        let remote = try SFTPProviderFactory.remote(domain.source) { environment }
        try await withCleanUp({
            await remote.close()
            await dispose()
        }) {
            try await test(remote)
        }
    }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        let environment = environment
        return PathAddressedProvider(
            remote: try SFTPProviderFactory.remote(domain.source) { environment }, manager: manager)
    }

    func makeDirectory(_ path: String) async throws {
        try FileManager.default.createDirectory(atPath: self[path], withIntermediateDirectories: false)
        try giveToUser(path)
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        try Data(bytes).write(to: URL(fileURLWithPath: self[path]))
        try FileManager.default.setAttributes(
            [.modificationDate: WriteClock.next()], ofItemAtPath: self[path])
        try giveToUser(path)
    }

    /// Only its owner can change an item's mode and times.
    private func giveToUser(_ path: String) throws {
        guard server?.kind == .ordinaryUser else { return }
        try FileManager.default.setAttributes([.ownerAccountID: 65_534], ofItemAtPath: self[path])
    }

    func dispose() async {
        await server?.halt()
        directory.remove()
    }
}
