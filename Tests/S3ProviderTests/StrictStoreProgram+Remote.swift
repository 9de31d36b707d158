import FileProvider
import FileProviderTesting
import Logging
import SystemPackage
import TestSupport

@testable import S3Provider

extension StrictStoreProgram {
    /// Runs a body with a store and a remote on it, and closes both afterwards.
    static func withRemote(
        _ options: [String], settings: S3Settings = S3Settings(),
        _ body: (StrictStoreProgram, S3Remote, TemporaryDirectory) async throws -> Void
    ) async throws {
        try await run(options) { store in
            let scratch = try TemporaryDirectory()
            defer { scratch.remove() }
            let remote = try store.remote(stateDirectory: scratch.makeDirectory("state"), settings: settings)
            try await withCleanUp({ await remote.close() }) { try await body(store, remote, scratch) }
        }
    }

    /// The remote of one machine.
    func remote(stateDirectory: FilePath, settings: S3Settings = S3Settings()) throws -> S3Remote {
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "s3://bucket/top"), stateDirectory: stateDirectory)
        return try S3ProviderFactory.remote(
            S3ProviderFactory.Options(endpoint: endpoint, region: "us-east-1"), for: manager,
            environment: { ObjectStore.environment }, logger: Logger(label: "test"), settings: settings)
    }

    /// Writes an object as another client does.
    func put(_ text: String, to key: String, mark: String? = nil) async throws {
        let field = mark.map { "-H '\(ObjectMetadata.rename): \($0)'" } ?? ""
        _ = try await ask("curl -sS -X PUT \(field) --data-binary '\(text)' \"$at/bucket/\(key)\"")
    }
}
