import Foundation
import SystemPackage

/// The small object store of Tests/S3ProviderTests/Programs/strict_store.py on loopback, which behaves as servers of other
/// makes do. It ends with the process that started it.
package struct StrictStoreProgram: Sendable {
    package let endpoint: String
    private let scratch: TemporaryDirectory
    private let program: BackgroundProgram

    package struct Failure: Error {}

    package init(_ options: [String]) async throws {
        scratch = try TemporaryDirectory()
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let script = tests.appendingPathComponent("S3ProviderTests/Programs/strict_store.py")
        let path = scratch["port"].string
        program = try await BackgroundProgram(["python3", script.path, path] + options)
        guard await eventually(within: .seconds(20), { FileManager.default.fileExists(atPath: path) }) else {
            program.kill()
            scratch.remove()
            throw Failure()
        }
        endpoint = "http://127.0.0.1:\(try String(contentsOfFile: path, encoding: .utf8))"
    }

    package func stop() {
        program.kill()
        scratch.remove()
    }

    /// Runs a body with a store of its own.
    package static func run(_ options: [String], _ body: (StrictStoreProgram) async throws -> Void) async throws {
        let store = try await StrictStoreProgram(options)
        try await withCleanUp({ store.stop() }) { try await body(store) }
    }

    /// What `curl` gets with these words, `$at` being the endpoint. The store looks at no signature.
    package func ask(_ line: String) async throws -> String {
        try await Command.shell("at=$1\n" + line, endpoint).output
    }

    /// The keys in the bucket, in order.
    package func keys() async throws -> [String] {
        try await ask("curl -sS \"$at/bucket?list-type=2&prefix=\" | grep -o '<Key>[^<]*' | cut -c 6-")
            .split(separator: "\n").map { $0.removingPercentEncoding ?? String($0) }
    }

    /// What was asked so far, a line each.
    package func log() async throws -> [String] {
        try await ask("curl -sS \"$at/log\"").split(separator: "\n").map(String.init)
    }
}
