import FileProvider
import FileProviderTesting
import Logging
import SystemPackage
import TestSupport

@testable import S3Provider

extension StrictStoreProgram {
    /// Runs a body with a store and a remote on it, and closes both afterwards.
    static func withRemote(
        _ options: [String], _ body: (StrictStoreProgram, S3Remote, TemporaryDirectory) async throws -> Void
    ) async throws {
        try await run(options) { store in
            let scratch = try TemporaryDirectory()
            defer { scratch.remove() }
            let manager = TestManager(
                domain: FileProviderDomain(identifier: "test", source: "s3://bucket/top"),
                stateDirectory: try scratch.makeDirectory("state"))
            let remote = try S3Provider.remote(
                S3Provider.Options(endpoint: store.endpoint, region: "us-east-1"), for: manager,
                environment: { ObjectStore.environment }, logger: Logger(label: "test"))
            try await withCleanUp({ await remote.close() }) { try await body(store, remote, scratch) }
        }
    }
}
