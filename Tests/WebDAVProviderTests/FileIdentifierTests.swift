import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// A folder on a server that names files by identifiers, changed behind the provider's back by requests of others.
final class IdentifyingRemote: RequestedRemote {
    let name = UUID().uuidString
    let domain: FileProviderDomain
    let stateDirectory: FilePath
    let base: String

    /// - Parameter base: where on the server it is; ends in a slash.
    init(port: Int, in directory: TemporaryDirectory, below base: String = "") async throws {
        self.base = "http://127.0.0.1:\(port)/\(base)"
        domain = FileProviderDomain(identifier: "test", source: "webdav://127.0.0.1:\(port)/\(base)\(name)")
        stateDirectory = try directory.makeDirectory("state-\(name)")
        try await makeDirectory("")
    }

    /// What a file has on the server.
    func content(of path: String) async throws -> Data {
        let file = stateDirectory.appending(UUID().uuidString).string
        defer { try? FileManager.default.removeItem(atPath: file) }
        let outcome = try await Command.run("curl", "-sS", "--fail", "-o", file, url(path))
        guard outcome.status == 0 else { throw CocoaError(.fileReadNoSuchFile) }
        return try Data(contentsOf: URL(fileURLWithPath: file))
    }

    func makeDirectory(_ path: String) async throws { try await request("-X", "MKCOL", url(path)) }

    func dispose() async {}

    /// Runs a test on a server of its own.
    static func run(_ test: (Int, TemporaryDirectory) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let server = try await ScriptedServer("file_id_server.py", directory["requests"].string)
        defer { server.stop() }
        try await test(server.port, directory)
    }
}

/// As ownCloud and Nextcloud document their servers; none of them is here.
@Suite("WebDAV servers with identifiers of their own", .tags(.server), .serialized)
struct FileIdentifierTests {
    @Test("DAV-24: conforms where files have identifiers") func conforms() async throws {
        try await IdentifyingRemote.run { port, directory in
            for check in ProviderConformance.Check.allCases {
                do {
                    try await ProviderConformance { try await IdentifyingRemote(port: port, in: directory) }.run(check)
                } catch {
                    Issue.record("\(check): \(error)")
                }
            }
        }
    }

    @Test("DAV-24: an item stays itself, wherever others move it, and has the date it had")
    func identities() async throws {
        try await IdentifyingRemote.run { port, directory in
            let remote = try await IdentifyingRemote(port: port, in: directory)
            let session = try await remote.session()
            var template = ProviderSession.template("file")
            template.contentModificationDate = FileTimestamp(seconds: 981_173_106)
            let made = try await session.create(
                template, content: [1, 2], fields: .contentModificationDate)
            #expect(made.stillPending == [])
            #expect(made.item.contentModificationDate == template.contentModificationDate)
            // What is finer than a second stays here.
            var finer = made.item
            finer.contentModificationDate = FileTimestamp(seconds: 981_173_107, nanoseconds: 5)
            let changed = try await session.modify(finer, [.contents, .contentModificationDate], content: [3])
            #expect(changed.stillPending == [.contentModificationDate])
            #expect(changed.item.itemIdentifier == made.item.itemIdentifier)
            try await remote.makeDirectory("there")
            try await remote.rename("file", to: "there/other")
            #expect(try await session.find("there/other").itemIdentifier == made.item.itemIdentifier)
            // What was said at first is not asked for again.
            #expect(try await session.provider.quota()?.free == 1 << 30)
            #expect(try await session.provider.quota() == RemoteQuota(free: (1 << 30) - 1, total: 1 << 30))
            await session.provider.invalidate()
        }
    }

    @Test(
        "DAV-33: previews of the server are thumbnails; a file without one has none",
        arguments: ["remote.php/dav/files/user/", "dav/files/guest/"])
    func previews(base: String) async throws {
        try await IdentifyingRemote.run { port, directory in
            let remote = try await IdentifyingRemote(port: port, in: directory, below: base)
            let session = try await remote.session()
            // As far as is known before the first call.
            #expect(session.provider.features.thumbnails)
            let picture = try await session.create(ProviderSession.template("a b.jpg"), content: [1, 2])
            let text = try await session.create(ProviderSession.template("text"), content: [3])
            #expect(session.provider.features.thumbnails)
            let found = Mutex<[ItemIdentifier: [UInt8]?]>([:])
            try await session.provider.fetchThumbnails(
                for: [picture.item.itemIdentifier, text.item.itemIdentifier, "no such item"],
                requestedSize: ThumbnailSize(width: 256, height: 128), request: FileProviderRequest(reason: .lookAhead)
            ) { identifier, result in
                if case .success(let image) = result { found.withLock { $0[identifier] = .some(image) } }
            }
            #expect(
                found.withLock { $0 } == [
                    picture.item.itemIdentifier: Array("preview of a b.jpg, 256 by 128".utf8),
                    text.item.itemIdentifier: nil,
                ])
            await session.provider.invalidate()
        }
    }
}
