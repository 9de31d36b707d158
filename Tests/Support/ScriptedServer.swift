import Foundation
import SystemPackage

/// A server of the tests' own, written in Python, on loopback. The system chooses its port, and the server writes it to a file:
/// a port chosen by the test could be taken by then.
package struct ScriptedServer: Sendable {
    package let port: Int
    private let program: BackgroundProgram
    private let scratch: TemporaryDirectory

    package struct DidNotStart: Error {
        package var script: String
    }

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
    /// - Throws: ``DidNotStart``.
    package init(program script: String, _ arguments: [String] = []) async throws {
        let scratch = try TemporaryDirectory()
        let file = scratch["port"].string
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let program = try await BackgroundProgram(
            ["python3", tests.appendingPathComponent(script).path, file] + arguments)
        _ = await eventually(within: .seconds(60)) {
            FileManager.default.fileExists(atPath: file) || !program.isRunning
        }
        guard let port = (try? String(contentsOfFile: file, encoding: .utf8)).flatMap({ Int($0) }) else {
            program.kill()
            scratch.remove()
            throw DidNotStart(script: script)
        }
        (self.port, self.program, self.scratch) = (port, program, scratch)
    }

    /// What the server wrote beside the file of its port.
    package func note(_ name: String) throws -> String {
        try String(contentsOfFile: scratch["port"].string + "." + name, encoding: .utf8)
    }

    package func stop() {
        program.kill()
        scratch.remove()
    }
}
