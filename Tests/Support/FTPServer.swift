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
        let port = directory["port"].string
        let script = FilePath(#filePath).removingLastComponent().appending("Programs/ftp/server.py").string
        program = try await BackgroundProgram(Self.python ?? "", script, remote.string, port)
        top = remote.appending("top")
        guard await eventually(within: .seconds(20), { FileManager.default.fileExists(atPath: port) }) else {
            program.kill()
            throw Errno.timedOut
        }
        source = "ftp://user@127.0.0.1:\(try String(contentsOfFile: port, encoding: .utf8))/top"
    }

    /// Ends the server, and removes its files.
    public func stop() {
        program.kill()
        directory.remove()
    }
}
