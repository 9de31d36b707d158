import Foundation
import SystemPackage

/// OpenStack Swift with its S3 API on loopback (Tests/S3ProviderTests/Programs/object_store.py): an object store that checks
/// signatures. It ends with the process that started it.
package struct ObjectStoreProgram: Sendable {
    package let endpoint: String
    private let scratch: TemporaryDirectory
    private let program: BackgroundProgram

    package static let accessKey = "test:tester"
    package static let secretKey = "testing"
    package static let region = "us-east-1"

    /// What went wrong.
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    package init() async throws {
        scratch = try TemporaryDirectory()
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let script = tests.appendingPathComponent("S3ProviderTests/Programs/object_store.py")
        program = try BackgroundProgram("/usr/bin/python3", script.path, scratch.path.string, Self.region)
        let path = scratch["port"].string
        guard await eventually(within: .seconds(60), { FileManager.default.fileExists(atPath: path) }) else {
            program.kill()
            scratch.remove()
            throw Failure(description: "the object store does not start: are swift-proxy and its like installed?")
        }
        endpoint = "http://127.0.0.1:\(try String(contentsOfFile: path, encoding: .utf8))"
    }

    package func stop() {
        program.kill()
        scratch.remove()
    }

    /// Asks it by its own interface, which knows nothing of S3: `curl` with these words, `$at` being where the buckets are.
    package func ask(_ line: String) async throws -> Command.Outcome {
        let login = """
            head=$(curl -sSi -H 'X-Auth-User: test:tester' -H 'X-Auth-Key: testing' "$1/auth/v1.0" | tr -d '\\r')
            token=$(printf '%s\\n' "$head" | sed -n 's/^X-Auth-Token: //pI')
            at=$1/v1/AUTH_test
            ask() { curl -sS -f -H "X-Auth-Token: $token" "$@"; }

            """
        return try await Command.shell(login + line, endpoint)
    }
}
