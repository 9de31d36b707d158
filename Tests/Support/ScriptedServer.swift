import Foundation
import SystemPackage

/// A server of the tests' own, written in Python, on loopback. The system chooses its port, and the server writes it to a file:
/// a port chosen by the test could be taken by then.
package struct ScriptedServer: Sendable {
    package let port: Int
    private let program: BackgroundProgram
    private let scratch: TemporaryDirectory

    /// Starts a server of `Tests/WebDAVProviderTests/Programs`.
    package init(_ script: String, _ arguments: String...) async throws {
        try await self.init(script, arguments: arguments)
    }

    /// The same.
    package init(_ script: String, arguments: [String]) async throws {
        try await self.init(program: "WebDAVProviderTests/Programs/" + script, arguments)
    }

    /// Starts a server.
    ///
    /// - Parameter script: its path below `Tests`. Its first argument is the file that gets the port.
    /// - Throws: ``TestFailure``.
    package init(program script: String, _ arguments: [String] = []) async throws {
        scratch = try TemporaryDirectory()
        let file = scratch["port"]
        let tests = FilePath(#filePath).removingLastComponent().removingLastComponent()
        let text: String
        (program, text) = try await BackgroundProgram.start(
            ["python3", tests.appending(script).string, file.string] + arguments, until: file)
        port = Int(text) ?? 0
    }

    /// What the server wrote beside the file of its port.
    package func note(_ name: String) throws -> String {
        try String(contentsOfFile: scratch["port"].string + "." + name, encoding: .utf8)
    }

    /// Has it answer nothing and keep all connections, or go on.
    package func hang(_ isHanging: Bool) { program.interrupt(by: isHanging ? SIGSTOP : SIGCONT) }

    package func stop() {
        program.kill()
        scratch.remove()
    }
}
