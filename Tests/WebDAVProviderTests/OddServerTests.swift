import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("WebDAV servers with bad habits", .tags(.server), .serialized)
struct OddServerTests {
    /// Runs a test on a folder of a server that does everything wrong in one way.
    private func run(
        _ folders: String..., test: (ProviderSession, TestManager, HTTPURL) async throws -> Void
    ) async throws {
        let server = try await ScriptedServer("odd_server.py")
        defer { server.stop() }
        let port = server.port
        for folder in folders {
            let manager = TestManager(
                domain: FileProviderDomain(identifier: "test", source: "webdav://127.0.0.1:\(port)/\(folder)"),
                stateDirectory: "/nonexistent")
            var configuration = HTTPTransport.Configuration()
            configuration.retries.attempts = 1
            let provider = try WebDAVProvider.make(
                for: manager, configuration: configuration, credentials: { nil }, logger: Logger(label: "test"))
            do {
                try await test(
                    ProviderSession(provider: provider, manager: manager), manager,
                    HTTPURL(isSecure: false, host: "127.0.0.1", port: port))
            } catch {
                Issue.record("\(folder): \(error)")
            }
            await provider.invalidate()
        }
    }

    @Test("DAV-22: what lies elsewhere, or cannot be a name, is left out and said; the rest is listed")
    func hrefs() async throws {
        try await run("elsewhere") { session, manager, _ async throws in
            let items = try await session.list()
            #expect(items.map(\.filename) == ["good"])
            let said = try await manager.warnings + session.omissions()
            for text in [
                "other.example", "/outside/two", "deep/three", "'..'", "slash", "NUL", "%FF", "%zz", "300 bytes",
                "twice",
            ] {
                #expect(said.contains { $0.contains(text) }, "'\(text)' is not among \(said)")
            }
        }
    }

    @Test("DAV-22: a directory that holds only what cannot be shown is not empty")
    func unshown() async throws {
        try await run("unshown") { session, _, _ async throws in
            let directory = try await session.find("unshown")
            #expect(try await session.list(directory.itemIdentifier).isEmpty)
            #expect(await failureCode { try await session.delete(directory) } == .directoryNotEmpty)
        }
    }

    @Test("DAV-15: a directory that is deleted member by member takes nothing beside or above it along")
    func dots() async throws {
        try await run("dots") { session, _, base async throws in
            let provider = try #require(session.provider as? PathAddressedProvider)
            try await provider.remote.delete(RemotePath(["dir"]), kind: .directory, if: .always)
            let transport = HTTPTransport(logger: Logger(label: "test"))
            var page = base
            page.path = "/deleted"
            #expect(try await transport.send(HTTPRequest("GET", page)).text == "/dots/dir/ /dots/dir/member /dots/dir/")
            await transport.close()
        }
    }

    @Test("DAV-15: a directory that has ever more below it is not deleted for ever")
    func endlessDeletions() async throws {
        try await run("endless") { session, _, _ async throws in
            let remote = try #require(session.webDAV)
            let directory = RemotePath(["dir"])
            let tooDeep = await failure { try await remote.delete(directory, kind: .directory, if: .always) }
            #expect(tooDeep?.code == .cannotSynchronize)
            #expect(tooDeep?.message.contains("levels") == true, "\(tooDeep?.message ?? "")")
            let tree = ChangeRequests.TreeDeletion(top: directory, end: .now)
            let tooLate = await failure {
                try await ChangeRequests(server: remote.server).delete(directory, isDirectory: true, [:], in: tree)
            }
            #expect(tooLate?.code == .cannotSynchronize)
            #expect(tooLate?.message.contains("ten minutes") == true, "\(tooLate?.message ?? "")")
        }
    }

    @Test("DAV-22: half a listing is no listing")
    func truncated() async throws {
        try await run("truncated", "cut", "partly", "empty", "nothing", "entities") { session, _, _ async throws in
            let error = await #expect(throws: FileProviderError.self) { _ = try await session.list() }
            #expect(error?.code == .malformedResponse || error?.code == .serverUnreachable)
        }
    }

    @Test("DAV-22: what a server lists and says it has not is not there")
    func innerNotFound() async throws {
        try await run("inner404") { session, _, _ async throws in
            #expect(try await session.list().map(\.filename) == ["file"])
            let provider = try #require(session.provider as? PathAddressedProvider)
            #expect(await failureCode { _ = try await provider.remote.entry(at: RemotePath(["gone"])) } == .noSuchItem)
        }
    }

    @Test("DAV-22: what a server names and does not describe is no file, and no other version of one")
    func innerRefusal() async throws {
        try await run("refused") { session, manager, _ async throws in
            #expect(try await session.list().map(\.filename) == ["file"])
            for name in ["forbidden", "busy", "unread"] {
                #expect(manager.warnings.contains { $0.contains("does not show '\(name)'") }, "\(name)")
            }
            let remote = try #require(session.provider as? PathAddressedProvider).remote
            let codes: [(String, FileProviderError.Code)] = [
                ("forbidden", .fileReadNoPermission), ("unread", .fileReadNoPermission), ("busy", .serverUnreachable),
            ]
            for (name, code) in codes {
                let found = await failureCode { _ = try await remote.entry(at: RemotePath([name])) }
                #expect(found == code, "\(name)")
            }
            // It would be gone from the mount if it were no directory.
            let closed = await failureCode {
                _ = try await remote.entries(in: RemotePath(["closed"]), from: nil, limit: 10)
            }
            #expect(closed == .fileReadNoPermission)
        }
    }

    @Test("DAV-22: what is somewhere else is not taken for what was asked for")
    func leadsAway() async throws {
        try await run("leads") { session, _, _ async throws in
            let remote = try #require(session.provider as? PathAddressedProvider).remote
            #expect(try await remote.entry(at: RemotePath(["file"])).kind == .file)
            let found = await failureCode { _ = try await remote.entry(at: RemotePath(["away"])) }
            #expect(found == .malformedResponse)
        }
    }

    @Test("DAV-6: a server that redirects to another one counts as unreachable, and what to mount is said")
    func redirectsToAnotherServer() async throws {
        try await run("moved") { session, _, _ async throws in
            let error = await failure { _ = try await session.list() }
            #expect(error?.code == .serverUnreachable)
            let said = error?.message ?? ""
            #expect(said.contains("mount 'webdavs://other.example:8443/dav/'"), "\(said)")
        }
        // The rest of the domain is there.
        try await run("leads") { session, _, _ async throws in
            let remote = try #require(session.provider as? PathAddressedProvider).remote
            let error = await failure { _ = try await remote.entry(at: RemotePath(["out"])) }
            #expect(error?.code == .malformedResponse)
            #expect(error?.message.contains("another server (https://other.example:8443)") == true)
        }
    }

    @Test("DAV-22: a page to log in is neither a listing nor a file")
    func portals() async throws {
        try await run("plain") { session, _, base async throws in
            let file = try await session.find("file")
            let transport = HTTPTransport(logger: Logger(label: "test"))
            var toggle = base
            toggle.path = "/toggle"
            _ = try await transport.send(HTTPRequest("PROPFIND", toggle))
            await transport.close()
            for attempt in ["listing", "looking", "reading"] {
                let error = await #expect(throws: FileProviderError.self) {
                    switch attempt {
                    case "listing": _ = try await session.list()
                    case "looking": _ = try await session.item(file.itemIdentifier)
                    default:
                        _ = try await session.fetch(
                            file.itemIdentifier, version: file.itemVersion.contentVersion)
                    }
                }
                // The cause is not one file or directory: no request is repeated.
                #expect(error?.code == .serverUnreachable, "\(attempt)")
                #expect(error?.message.contains("a page to log in?") == true, "\(attempt)")
            }
        }
    }

    @Test("READ-1: ranges are right also where the server ignores them; content that is not what was listed is refused")
    func contents() async throws {
        try await run("plain", "anonymous") { session, manager, _ async throws in
            let file = try await session.find("file")
            let sink = CollectingSink()
            _ = try await session.provider.fetchContents(
                for: file.itemIdentifier, version: file.itemVersion.contentVersion, range: nil,
                request: session.request, into: sink)
            #expect(try sink.bytes(in: 0..<5) == Array("hello".utf8))
            // Without an ETag only a look-up at the end shows which version it was.
            #expect(sink.isConfirmed == manager.domain.source.hasSuffix("/plain"))
            let bytes = try await session.fetch(
                file.itemIdentifier, version: file.itemVersion.contentVersion, range: 1..<3
            ).bytes
            #expect(bytes == Array("el".utf8))
        }
        try await run("short", "other") { session, _, _ async throws in
            let file = try await session.find("file")
            let error = await #expect(throws: FileProviderError.self) {
                _ = try await session.fetch(file.itemIdentifier, version: file.itemVersion.contentVersion)
            }
            #expect(error?.code == .malformedResponse || error?.code == .versionNoLongerAvailable)
        }
    }
}
