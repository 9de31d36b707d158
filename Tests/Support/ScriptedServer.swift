import Foundation
import SystemPackage

/// A WebDAV server of the tests' own (Tests/WebDAVProviderTests/Programs), on loopback. It listens where the system lets it,
/// and says in a file where that is: a port chosen here may be somebody's by then.
package struct ScriptedServer: Sendable {
    package let port: Int
    private let program: BackgroundProgram
    private let scratch: TemporaryDirectory

    package struct DidNotStart: Error {
        package var script: String
    }

    package init(_ script: String, _ arguments: String...) async throws {
        try await self.init(script, arguments: arguments)
    }

    package init(_ script: String, arguments: [String]) async throws {
        let scratch = try TemporaryDirectory()
        let file = scratch["port"].string
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("WebDAVProviderTests/Programs")
        let program = try BackgroundProgram(
            ["python3", folder.appendingPathComponent(script).path, file] + arguments)
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

    package func stop() {
        program.kill()
        scratch.remove()
    }
}
