import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import SystemPackage
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("Look-ups that a change takes", .tags(.server))
struct ChangeLookUpTests {
    private static let file = RemotePath(["file"])

    @Test("DAV-34: a file is looked up once before it is overwritten or deleted where the server checks its ETag")
    func checkedByTheServer() async throws {
        try await PlainServer.withSession("checks") { server, session async throws in
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            let remote = try #require(session.webDAV)
            let capabilities = try #require(remote.server.capabilityStore.capabilities)
            #expect(capabilities.movesConditionally && capabilities.deletions == .tagged)
            let first = try await server.state().counts["PROPFIND", default: 0]
            let changed = try await session.modify(made, .contents, content: [2, 3]).item
            let second = try await server.state().counts["PROPFIND", default: 0]
            try await session.delete(changed)
            let third = try await server.state().counts["PROPFIND", default: 0]
            // The other one is of the hidden file, which may not have arrived as a whole.
            #expect(second - first == 2)
            #expect(third - second == 1)
            #expect(try await !server.state().paths.contains("/file"))
        }
    }

    @Test("DAV-34: what another client has written since that look-up stays")
    func writtenSince() async throws {
        try await PlainServer.withSession("checks") { server, session async throws in
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let remote = try #require(session.webDAV)
            let tag = try await remote.entry(at: Self.file).tag
            try await remote.prober.changes.put(.bytes([4, 5, 6]), at: Self.file)
            let deletion = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.delete(Self.file, kind: .file, if: .unchanged(tag: tag))
            }
            #expect(deletion?.present?.size == 3)
            // The refused deletion has looked it up.
            let now = try await remote.entry(at: Self.file).tag
            try await remote.prober.changes.put(.bytes([7, 8, 9, 10]), at: Self.file)
            let write = await #expect(throws: RemoteConditionFailure.self) {
                try await remote.write([2, 3], to: Self.file, if: .unchanged(tag: now))
            }
            #expect(write?.present?.size == 4)
            #expect(try await remote.entry(at: Self.file).size == 4)
        }
    }

    @Test("DAV-34: on a server with identifiers a file is looked up once, and what others have written since stays")
    func identified() async throws {
        try await IdentifyingRemote.run { port, directory in
            let remote = try await IdentifyingRemote(port: port, in: directory)
            let session = try await remote.session()
            // The server is probed before the first deletion.
            try await session.delete(session.create(ProviderSession.template("other"), content: [1]).item)
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            func requests() throws -> [String] {
                try String(contentsOfFile: directory["requests"].string, encoding: .utf8).split(separator: "\n")
                    .filter { $0.hasSuffix("/file") }.map { String($0.prefix { $0 != " " }) }
            }
            let first = try requests().count
            let changed = try await session.modify(made, .contents, content: [2, 3]).item
            try await session.delete(changed)
            let all = try requests()
            #expect(all.dropFirst(first) == ["PROPFIND", "PUT", "PROPFIND", "PROPFIND", "DELETE"])

            let paths = try #require((session.provider as? PathAddressedProvider)?.remote)
            try await remote.write([1], to: "file")
            let tag = try await paths.entry(at: Self.file).tag
            try await remote.write([4, 5], to: "file")
            await #expect(throws: RemoteConditionFailure.self) {
                try await paths.delete(Self.file, kind: .file, if: .unchanged(tag: tag))
            }
            let now = try await paths.entry(at: Self.file).tag
            try await remote.write([7, 8], to: "file")
            await #expect(throws: RemoteConditionFailure.self) {
                try await paths.write([2], to: Self.file, if: .unchanged(tag: now))
            }
            #expect(try await remote.content(of: "file") == Data([7, 8]))
            await session.provider.invalidate()
        }
    }
}
