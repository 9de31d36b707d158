import Foundation
import SystemPackage

/// A real object store on loopback, for one test or all (Tests/S3ProviderTests/Programs). It ends with the process that
/// started it.
package struct ObjectStoreProgram: Sendable {
    package enum Kind: String, Sendable, CaseIterable, CustomStringConvertible {
        /// OpenStack Swift with its S3 API: it checks signatures, and no conditions.
        case swift
        /// moto: it checks conditions, and no signatures.
        case moto

        package var description: String { rawValue }

        /// Those that are installed.
        package static var installed: [Kind] { allCases.filter { $0 == .swift || $0.python != nil } }

        /// What runs its program.
        fileprivate var python: String? {
            if self == .swift { return "/usr/bin/python3" }
            let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
            return folders.first { FileManager.default.isExecutableFile(atPath: $0 + "/moto_server") }
                .map { $0 + "/python3" }
        }
    }

    package let endpoint: String
    private let scratch: TemporaryDirectory
    private let program: BackgroundProgram

    package static let accessKey = "test:tester"
    package static let secretKey = "testing"
    package static let region = "us-east-1"

    package init(_ kind: Kind = .swift) async throws {
        guard let python = kind.python else { throw TestFailure("\(kind) is not installed") }
        scratch = try TemporaryDirectory()
        let script = FilePath(#filePath).removingLastComponent().removingLastComponent().appending(
            "S3ProviderTests/Programs/\(kind == .swift ? "object_store" : "moto_store").py")
        let port: String
        (program, port) = try await BackgroundProgram.start(
            [python, script.string, scratch.path.string, Self.region], until: scratch["port"])
        endpoint = "http://127.0.0.1:\(port)"
    }

    package func stop() {
        program.kill()
        scratch.remove()
    }

    /// Asks Swift by its own interface, which knows nothing of S3: `curl` with these words, `$at` being where the buckets are.
    package func ask(_ line: String, seconds: Int = 20) async throws -> Command.Outcome {
        let login = """
            head=$(curl -sSi -H 'X-Auth-User: test:tester' -H 'X-Auth-Key: testing' "$1/auth/v1.0" | tr -d '\\r')
            token=$(printf '%s\\n' "$head" | sed -n 's/^X-Auth-Token: //pI')
            at=$1/v1/AUTH_test
            ask() { curl -sS -f -H "X-Auth-Token: $token" "$@"; }

            """
        return try await Command.shell(login + line, endpoint, seconds: seconds)
    }
}
