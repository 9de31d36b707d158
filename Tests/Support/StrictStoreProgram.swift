import Foundation

/// The small object store of Tests/S3ProviderTests/Programs/strict_store.py on loopback, which behaves as servers of other
/// makes do. It ends with the process that started it.
package struct StrictStoreProgram: Sendable {
    package let endpoint: String
    private let server: ScriptedServer

    package init(_ options: [String]) async throws {
        server = try await ScriptedServer(program: "S3ProviderTests/Programs/strict_store.py", options)
        endpoint = "http://127.0.0.1:\(server.port)"
    }

    package func stop() { server.stop() }

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
