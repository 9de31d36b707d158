import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import Synchronization
import SystemPackage
import TestSupport

@testable import S3Provider

/// The object stores that all tests share: each has a bucket of its own.
struct ObjectStore: Sendable {
    let endpoint: String

    private static let started = Mutex<[ObjectStoreProgram.Kind: Task<ObjectStore, any Error>]>([:])

    static func shared(_ kind: ObjectStoreProgram.Kind) async throws -> ObjectStore {
        let task = started.withLock { started in
            if let task = started[kind] { return task }
            let task = Task { try await ObjectStore(kind) }
            started[kind] = task
            return task
        }
        return try await task.value
    }

    private init(_ kind: ObjectStoreProgram.Kind) async throws {
        // Another server to try by hand in Swift's place, with the same keys.
        if kind == .swift, let other = ProcessInfo.processInfo.environment["YONDER_TEST_S3_ENDPOINT"] {
            endpoint = other
            return
        }
        // Ends with this process, and its folder is one of the scratch that scripts/test removes.
        endpoint = try await ObjectStoreProgram(kind).endpoint
    }

    static let environment = [
        "AWS_ACCESS_KEY_ID": ObjectStoreProgram.accessKey, "AWS_SECRET_ACCESS_KEY": ObjectStoreProgram.secretKey,
        "HOME": "/nowhere",
    ]

    func options() -> S3ProviderFactory.Options { S3ProviderFactory.Options(endpoint: endpoint, region: "us-east-1") }
}

/// A bucket for one test, with a prefix in it.
struct Bucket: RemoteUnderTest {
    let store: ObjectStore
    let name: String
    let scratch: TemporaryDirectory
    /// Talks to it behind the provider's back.
    let client: S3Client

    init(on kind: ObjectStoreProgram.Kind = .swift) async throws {
        store = try await ObjectStore.shared(kind)
        name = "bucket-\(UUID().uuidString.lowercased())"
        scratch = try TemporaryDirectory()
        let location = try S3Location(source: "s3://\(name)", endpoint: store.endpoint)
        var configuration = HTTPTransport.Configuration()
        configuration.environment = [:]
        let transport = HTTPTransport(configuration, logger: Logger(label: "test"))
        client = S3Client(
            location, isRegionKnown: true, profile: nil, environment: { ObjectStore.environment }, transport: transport,
            logger: Logger(label: "test"))
        _ = try await client.send { [client] in client.request("PUT", nil) }
        _ = try scratch.makeDirectory("state")
    }

    var domain: FileProviderDomain { FileProviderDomain(identifier: "test", source: "s3://\(name)/top/level") }
    var stateDirectory: FilePath { scratch["state"] }
    var prefix: String { "top/level/" }

    func makeProvider(for manager: any FileProviderManager) async throws -> any FileProviderReplicatedExtension {
        let remote = try S3ProviderFactory.remote(
            store.options(), for: manager, environment: { ObjectStore.environment }, logger: Logger(label: "test"))
        return PathAddressedProvider(remote: remote, manager: manager, ledger: remote.client.ledger)
    }

    /// The remote itself, without what gives its items identifiers.
    func remote(settings: S3Settings = S3Settings(), isReadOnly: Bool = false) throws -> S3Remote {
        var domain = domain
        domain.isReadOnly = isReadOnly
        return try S3ProviderFactory.remote(
            store.options(), for: TestManager(domain: domain, stateDirectory: stateDirectory),
            environment: { ObjectStore.environment }, logger: Logger(label: "test"), settings: settings)
    }

    func put(_ key: String, _ text: String, fields: HTTPFields = [:]) async throws {
        _ = try await client.send { [client] in
            client.request("PUT", key, fields: fields, body: .bytes(Array(text.utf8)))
        }
    }

    /// Puts an object as a rename makes its copies.
    func put(copy key: String, _ text: String, of rename: MoveRecord) async throws {
        try await put(key, text)
        guard let tag = try await client.object(key)?.tag, let mark = rename.mark(at: key, ofCopied: tag) else {
            return
        }
        try await put(key, text, fields: [ObjectMetadata.rename: mark])
    }

    func get(_ key: String) async throws -> HTTPResponse {
        try await client.send { [client] in client.request("GET", key) }
    }

    /// All keys in the bucket.
    func keys(_ prefix: String = "") async throws -> [String] {
        var reader = KeyReader(client: client, prefix: prefix)
        var keys: [String] = []
        while let object = try await reader.next() { keys.append(object.key) }
        return keys
    }

    func makeDirectory(_ path: String) async throws { try await put("\(prefix)\(path)/", "") }

    func write(_ bytes: [UInt8], to path: String) async throws {
        _ = try await client.send { [client] in client.request("PUT", prefix + path, body: .bytes(bytes)) }
    }

    func rename(_ path: String, to newPath: String) async throws {
        for key in try await keys(prefix + path) {
            let rest = key.dropFirst((prefix + path).count)
            guard rest.isEmpty || rest.first == "/" else { continue }
            let source = "/\(name)/\(PercentEncoding.encode(key, keeping: "/"))"
            _ = try await client.send { [client] in
                client.request("PUT", prefix + newPath + rest, fields: ["x-amz-copy-source": source])
            }
            _ = try await client.send { [client] in client.request("DELETE", key) }
        }
    }

    func delete(_ path: String) async throws {
        for key in try await keys(prefix + path) {
            let rest = key.dropFirst((prefix + path).count)
            guard rest.isEmpty || rest.first == "/" else { continue }
            _ = try await client.send { [client] in client.request("DELETE", key) }
        }
    }

    func dispose() async {
        await client.transport.close()
        scratch.remove()
    }
}

/// Runs a body with a bucket and the remote over it.
func withBucket(
    settings: S3Settings = S3Settings(), _ body: (Bucket, S3Remote) async throws -> Void
) async throws {
    let bucket = try await Bucket()
    let remote = try bucket.remote(settings: settings)
    try await withCleanUp({
        await remote.close()
        await bucket.dispose()
    }) {
        try await body(bucket, remote)
    }
}

extension RemotePath {
    init(_ text: String) { self.init(text.split(separator: "/").map(String.init)) }
}
