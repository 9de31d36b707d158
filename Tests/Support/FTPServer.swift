import Foundation
import SystemPackage

/// An FTP server on loopback, by pyftpdlib. The user is `user`, and the password `secret word`.
public struct FTPServer: Sendable {
    /// `ftp:` and the directory that is served, whose files are in ``top``.
    public let source: String
    /// The served directory here.
    public let top: FilePath
    private let directory: TemporaryDirectory
    private let program: BackgroundProgram

    /// The interpreter that has pyftpdlib; nil if it is not installed.
    public static let python: String? = {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        return folders.first { FileManager.default.isExecutableFile(atPath: $0 + "/ftpbench") }.map { $0 + "/python3" }
    }()

    /// Starts a server with an empty directory.
    public init() async throws {
        directory = try TemporaryDirectory()
        let remote = try directory.makeDirectory("remote")
        let file = directory["port"]
        let script = FilePath(#filePath).removingLastComponent().appending("Programs/ftp/server.py").string
        let port: String
        (program, port) = try await BackgroundProgram.start(
            [Self.python ?? "", script, remote.string, file.string], until: file)
        top = remote.appending("top")
        source = "ftp://user@127.0.0.1:\(port)/top"
    }

    /// Ends the server, and removes its files.
    public func stop() {
        program.kill()
        directory.remove()
    }
}
