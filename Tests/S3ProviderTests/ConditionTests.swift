import FileProvider
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import PathAddressing
import SystemPackage
import TestSupport
import Testing

@testable import S3Provider

/// What a server does that Swift does not: Programs/strict_store.py.
@Suite struct ConditionTests {
    private func withStore(
        _ options: String..., region: String? = "us-east-1", token: String = "old",
        _ body: (S3Remote, TemporaryDirectory, () async throws -> [String]) async throws -> Void
    ) async throws {
        let scratch = try TemporaryDirectory()
        defer { scratch.remove() }
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
            "Programs/strict_store.py")
        let program = try BackgroundProgram(
            "python3", script.path, scratch["port"].string, options.first ?? "plain")
        defer { program.kill() }
        let path = scratch["port"].string
        #expect(await eventually(within: .seconds(20)) { FileManager.default.fileExists(atPath: path) })
        let endpoint = "http://127.0.0.1:\(try String(contentsOfFile: path, encoding: .utf8))"
        let manager = TestManager(
            domain: FileProviderDomain(identifier: "test", source: "s3://bucket/top"),
            stateDirectory: try scratch.makeDirectory("state"))
        _ = try scratch.makeDirectory(".aws")
        try Self.write(token, scratch)
        let environment = ["HOME": scratch.path.string]
        let remote = try S3Provider.remote(
            S3Provider.Options(endpoint: endpoint, region: region), for: manager, environment: { environment },
            logger: Logger(label: "test"))
        let client = HTTPTransport(logger: Logger(label: "test"))
        let log = { () async throws -> [String] in
            let url = try #require(HTTPURL("\(endpoint)/log"))
            return try await client.send(HTTPRequest("GET", url)).text.split(separator: "\n").map(String.init)
        }
        do {
            try await body(remote, scratch, log)
        } catch {
            await client.close()
            await remote.close()
            throw error
        }
        await client.close()
        await remote.close()
    }

    private static func write(_ token: String, _ scratch: TemporaryDirectory) throws {
        let text = "[default]\naws_access_key_id = a\naws_secret_access_key = b\naws_session_token = \(token)\n"
        _ = try scratch.makeFile(".aws/credentials", Array(text.utf8))
    }

    private func write(_ text: String, _ remote: S3Remote, if condition: RemoteCondition) async throws -> RemoteEntry {
        var entry: RemoteEntry?
        try await withSource(Array(text.utf8)) {
            entry = try await remote.write($0, to: RemotePath("file"), attributes: RemoteAttributes(), if: condition)
        }
        return try #require(entry)
    }

    @Test func conditionsAreLeftToAServerThatKnowsThem() async throws {
        try await withStore { remote, _, log in
            let first = try await write("one", remote, if: .absent)
            #expect(remote.traits.checksConditions && remote.traits.peculiarities.isEmpty)
            let second = try await write("two", remote, if: .unchanged(tag: first.tag))
            await #expect(throws: RemoteConditionFailure(present: second)) {
                try await write("three", remote, if: .unchanged(tag: first.tag))
            }
            try await remote.delete(RemotePath("file"), kind: .file, if: .unchanged(tag: second.tag))
            await #expect(throws: RemoteConditionFailure(present: nil)) {
                try await write("three", remote, if: .unchanged(tag: first.tag))
            }
            let asked = try await log()
            #expect(asked.contains("PUT top/file *"))
            #expect(asked.contains("PUT top/file \(String(decoding: first.tag, as: UTF8.self))"))
        }
    }

    @Test func aServerThatIgnoresConditionsIsFoundOut() async throws {
        try await withStore("ignores") { remote, _, _ in
            let first = try await write("one", remote, if: .absent)
            #expect(!remote.traits.checksConditions && remote.traits.peculiarities.count == 1)
            _ = try await write("two", remote, if: .unchanged(tag: first.tag))
            await #expect(throws: RemoteConditionFailure.self) {
                try await write("three", remote, if: .unchanged(tag: first.tag))
            }
        }
    }

    @Test func anExpiredSessionIsReplacedByTheOneInTheFile() async throws {
        try await withStore("expired=old", token: "new") { remote, scratch, _ in
            _ = try await remote.entry(at: .root)
            try Self.write("old", scratch)
        }
        try await withStore("expired=old") { remote, scratch, _ in
            let refused = await failure { _ = try await remote.entry(at: .root) }
            #expect(refused?.code == .notAuthenticated)
            #expect(refused?.message.contains("expired") == true)
            try Self.write("new", scratch)
            _ = try await remote.entry(at: .root)
        }
    }

    @Test func theRightRegionIsFoundWhereNoneWasNamed() async throws {
        try await withStore("region=eu-north-1", region: nil) { remote, _, _ in
            _ = try await remote.entry(at: .root)
        }
        try await withStore("region=eu-north-1", region: "us-east-1") { remote, _, _ in
            let error = await failure { _ = try await remote.entry(at: .root) }
            #expect(error?.message.contains("region") == true, "\(error?.message ?? "")")
        }
    }
}
