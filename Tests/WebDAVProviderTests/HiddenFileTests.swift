import FileProvider
import FileProviderPaths
import FileProviderTesting
import Foundation
import HTTPTransport
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("Hidden files on a server", .tags(.server), .serialized)
struct HiddenFileTests {
    @Test("DAV-13: a session that ends while the server is tried out leaves nothing on it", arguments: ["", "late"])
    func endsDuringTrial(_ habit: String) async throws {
        try await PlainServer.run("slow=40", habit) { server async throws in
            let session = try server.session()
            let creation = Task {
                try await session.create(ProviderSession.template("file"), content: [1, 2, 3])
            }
            #expect(await eventually { (try? await server.state().hidden.isEmpty) == false })
            creation.cancel()
            await session.provider.invalidate()
            _ = try? await creation.value
            #expect(try await server.state().hidden == [])
        }
    }

    @Test("DAV-13: an upload that is broken off by the end of the session leaves nothing on the server")
    func endsDuringUpload() async throws {
        try await PlainServer.run("late") { server async throws in
            let session = try server.session()
            // Onto a name that is there it is sent under a hidden one.
            let made = try await session.create(ProviderSession.template("file"), content: [1, 2, 3])
            let change = Task {
                try await session.modify(made.item, .contents, content: [UInt8](repeating: 7, count: 60 << 20))
            }
            #expect(await eventually { session.webDAV?.server.hiddenFiles.all.isEmpty == false })
            change.cancel()
            _ = try? await change.value
            await session.provider.invalidate()
            #expect(await eventually { (try? await server.state().hidden) == [] })
            let next = try server.session()
            _ = try await next.list()
            #expect(await eventually { (try? await server.state().hidden) == [] && next.isClean })
            await next.provider.invalidate()
        }
    }

    @Test("DAV-13: the end of a session does not wait for a server that hangs, and remembers what may be left")
    func endsWhileTheServerHangs() async throws {
        try await PlainServer.run("slow=40") { server async throws in
            let session = try server.session()
            let creation = Task {
                try await session.create(ProviderSession.template("file"), content: [1, 2, 3])
            }
            #expect(await eventually { (try? await server.state().hidden.isEmpty) == false })
            server.server.hang(true)
            creation.cancel()
            let start = ContinuousClock.now
            await session.provider.invalidate()
            let took = ContinuousClock.now - start
            server.server.hang(false)
            _ = try? await creation.value
            // Ten seconds, with time for a busy machine. Each request would wait for thirty.
            #expect(took < .seconds(25), "\(took)")
            #expect(!session.isClean)
        }
    }

    /// Ends the connections of a session in the middle of its first change: nothing of it comes to the server any more.
    private func kill(_ session: ProviderSession, on server: PlainServer) async throws {
        let creation = Task {
            try await session.create(ProviderSession.template("file"), content: [1, 2, 3])
        }
        #expect(await eventually { (try? await server.state().hidden.count) ?? 0 > 5 })
        await session.webDAV?.server.client.transport.close()
        _ = try? await creation.value
    }

    @Test("DAV-14: what a daemon that was killed has left is removed when the domain is connected to again")
    func nextStart() async throws {
        try await PlainServer.run("slow=40") { server async throws in
            try await kill(server.session(), on: server)
            #expect(try await server.state().hidden != [])

            let next = try server.session()
            #expect(try await next.list().isEmpty)
            #expect(await eventually { (try? await server.state().hidden) == [] && next.isClean })
            await next.provider.invalidate()
        }
    }

    @Test(
        "DAV-14: a hidden file of another machine is removed after a day, and a newer one stays",
        .enabled(if: DAVServer.Kind.apache.program != nil, "apache2 is not installed"))
    func ofOtherMachines() async throws {
        try await ServedFolder.run(on: .apache) { folder, session async throws in
            let (old, new) = (HiddenName.make(), HiddenName.make())
            let now = Date()
            try folder.write([1], to: old, at: now - 86_400 - 3600)
            try folder.write([1], to: new, at: now - 86_400 + 3600)
            try folder.write([1], to: "file", at: now - 86_400 - 3600)
            let remote = try #require(session.webDAV)
            // That it was seen ten minutes ago is a promise of its own.
            let provider = PathAddressedProvider(
                remote: remote, manager: session.manager, ledger: nil, leftoverPatience: .zero)
            let other = ProviderSession(provider: provider, manager: session.manager)
            #expect(try await other.list().map(\.filename) == ["file"])
            #expect(await eventually { folder.names == ["file", new].sorted() }, "\(folder.names)")
        }
    }

    /// Leaves a hidden file in a directory, as an upload that goes on does.
    private func leave(in directory: RemotePath, of remote: WebDAVRemote) async throws -> String {
        let hidden = try remote.server.hiddenFiles.make(in: directory)
        _ = try await ChangeRequests(server: remote.server).put(.bytes([1]), at: hidden)
        return try #require(hidden.name)
    }

    @Test("DAV-13: a hidden file whose directory is renamed here is removed in its new place")
    func renamedHere() async throws {
        try await PlainServer.run { server async throws in
            let session = try server.session()
            let remote = try #require(session.webDAV)
            let (old, new) = (RemotePath(["old"]), RemotePath(["new"]))
            _ = try await remote.makeDirectory(at: old, attributes: RemoteAttributes())
            let name = try await leave(in: old, of: remote)
            _ = try await remote.move(old, to: new, kind: .directory)
            #expect(try await server.state().paths.contains("/new/\(name)"))
            await session.provider.invalidate()
            #expect(await eventually { (try? await server.state().hidden) == [] })
        }
    }

    @Test("DAV-14: what is left in a directory that another client has renamed is removed when the directory is listed")
    func renamedByOthers() async throws {
        try await PlainServer.run { server async throws in
            let session = try server.session()
            let remote = try #require(session.webDAV)
            let old = RemotePath(["old"])
            _ = try await remote.makeDirectory(at: old, attributes: RemoteAttributes())
            let name = try await leave(in: old, of: remote)
            await remote.server.client.transport.close()
            let address = "http://127.0.0.1:\(server.server.port)"
            try await Command.run(
                "curl", "-sS", "--fail", "-X", "MOVE", "-H", "Destination: \(address)/new", "\(address)/old"
            ).expectSuccess()

            let next = try server.session()
            let items = try await next.list()
            let hiddenFiles = try #require(next.webDAV).server.hiddenFiles
            #expect(await eventually { hiddenFiles.isSought(name) })
            #expect(try await server.state().paths.contains("/new/\(name)"))
            let directory = try #require(items.first { $0.filename == "new" })
            #expect(try await next.list(directory.itemIdentifier).isEmpty)
            #expect(await eventually { (try? await server.state().hidden) == [] && next.isClean })
            await next.provider.invalidate()
        }
    }

    @Test("WRITE-15: a domain that is read-only leaves what an earlier start has left, and a later one removes it")
    func readOnly() async throws {
        try await PlainServer.run("slow=40") { server async throws in
            try await kill(server.session(), on: server)
            let left = Set(try await server.state().hidden)
            #expect(!left.isEmpty)

            let reader = try server.session(isReadOnly: true)
            #expect(try await reader.list().isEmpty)
            // The end of a session waits for what it removes.
            await reader.provider.invalidate()
            #expect(Set(try await server.state().hidden) == left)

            let next = try server.session()
            _ = try await next.list()
            #expect(await eventually { (try? await server.state().hidden) == [] && next.isClean })
            await next.provider.invalidate()
        }
    }

    @Test("Nothing is noted of uploads that are over") func staysSmall() async throws {
        try await PlainServer.run { server async throws in
            let session = try server.session()
            var item = try await session.create(ProviderSession.template("file"), content: [1, 2, 3]).item
            for count in 1...20 {
                item = try await session.modify(item, .contents, content: [UInt8](repeating: 1, count: count)).item
            }
            #expect(session.isClean)
            await session.provider.invalidate()
            #expect(try await server.state().hidden == [])
        }
    }
}

extension ProviderSession {
    /// Whether nothing hidden is noted to be on the server.
    fileprivate var isClean: Bool { webDAV?.server.hiddenFiles.all.isEmpty == true }
}
