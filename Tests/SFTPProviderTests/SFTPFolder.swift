import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport

@testable import SFTPProvider

/// A folder behind OpenSSH's server, changed on the disk behind the provider's back. Its `ssh` is a program that starts the
/// server, or one that really connects.
final class SFTPFolder: RemoteUnderTest {
    static let program = "/usr/lib/openssh/sftp-server"
    static var isInstalled: Bool { FileManager.default.isExecutableFile(atPath: program) }

    let directory: TemporaryDirectory
    let stateDirectory: FilePath
    let root: FilePath
    let domain: FileProviderDomain
    /// Each write gets a second of its own, long ago: two contents in one second are not told apart.
    private static let clock = Mutex(Int64(1_000_000_000))

    /// As the daemon does: a write to a program that has ended fails with EPIPE.
    private static let ignoresBrokenPipes: Void = { signal(SIGPIPE, SIG_IGN) }()

    /// - Parameter words: the command line of the server.
    init(_ words: String = program) throws {
        Self.ignoresBrokenPipes
        directory = try TemporaryDirectory()
        stateDirectory = try directory.makeDirectory("state")
        root = try directory.makeDirectory("a folder")
        let ssh = try directory.makeFile("ssh", "#!/bin/sh\nexec \(words)\n".utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: ssh.string)
        domain = FileProviderDomain(identifier: "test", source: "sftp://server" + root.string)
    }

    var environment: [String: String] {
        ProcessInfo.processInfo.environment.merging(["YONDER_SSH": directory["ssh"].string]) { $1 }
    }

    subscript(_ path: String) -> String { root.string + "/" + path }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        let environment = environment
        return try SFTPProvider.make(for: manager) { environment }
    }

    func makeDirectory(_ path: String) async throws {
        try FileManager.default.createDirectory(atPath: self[path], withIntermediateDirectories: false)
    }

    func write(_ bytes: [UInt8], to path: String) async throws {
        let seconds = Self.clock.withLock { clock in
            clock += 2
            return clock
        }
        try Data(bytes).write(to: URL(fileURLWithPath: self[path]))
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: TimeInterval(seconds))], ofItemAtPath: self[path])
    }

    func rename(_ path: String, to newPath: String) async throws {
        try FileManager.default.moveItem(atPath: self[path], toPath: self[newPath])
    }

    func delete(_ path: String) async throws {
        try FileManager.default.removeItem(atPath: self[path])
    }

    func dispose() async { directory.remove() }
}
