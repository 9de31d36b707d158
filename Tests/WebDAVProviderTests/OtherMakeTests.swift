import FileProvider
import FileProviderTesting
import Foundation
@testable import HTTPTransport
import PathAddressing
import TestSupport
import Testing

@testable import WebDAVProvider

/// What servers of other makes do, as it was seen on them.
@Suite("WebDAV servers of other makes", .serialized)
struct OtherMakeTests {
    /// Creates, changes, renames, reads and deletes some files and folders.
    private func work(_ session: ProviderSession) async throws {
        let folder = try await session.create(ProviderSession.template("folder", kind: .directory)).item
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    _ = try await session.create(
                        ProviderSession.template("file \(number)", in: folder.itemIdentifier),
                        content: [UInt8(number)])
                }
            }
            try await group.waitForAll()
        }
        let items = try await session.list(folder.itemIdentifier)
        #expect(items.count == 40)
        for item in items.prefix(10) {
            let changed = try await session.modify(item, .contents, content: [1, 2, 3, 4]).item
            #expect(try await session.fetch(changed.itemIdentifier).bytes == [1, 2, 3, 4])
            try await session.delete(changed)
        }
        #expect(try await session.list(folder.itemIdentifier).count == 30)
    }

    @Test(
        "S262: a server that closes the connection after each answer serves all requests",
        arguments: ["close", "http10"])
    func closesAfterEachAnswer(_ habit: String) async throws {
        try await PlainServer.run(habit) { server async throws in
            let session = try server.session()
            try await work(session)
            await session.provider.invalidate()
            let connections = try await server.state().connections
            // Each request had one of its own, the one for the state too.
            #expect(connections.all > 200 && connections.open == 1)
        }
    }

    @Test("S263: a server whose answer to one probe is no HTTP is written to, and names of that kind are not moved")
    func oneProbeIsAnsweredWithNonsense() async throws {
        try await PlainServer.run("location") { server async throws in
            let session = try server.session()
            try await work(session)
            let habits = try #require(session.webDAV?.habitStore.habits)
            #expect(habits.oddNames[.controlCharacters] != .kept)
            #expect(habits.oddNames[.hash] == .kept && habits.refusesOverwriting && habits.showsOnlyWhole)
            await session.provider.invalidate()
            #expect(try await server.state().hidden == [])
        }
    }

    @Test("S263: a server that breaks the connection of one probe each time is written to")
    func oneProbeBreaksTheConnection() async throws {
        try await PlainServer.run("breaks") { server async throws in
            let session = try server.session { $0.retries.attempts = 2 }
            try await work(session)
            let habits = try #require(session.webDAV?.habitStore.habits)
            #expect(habits.oddNames[.percent] == .lost)
            #expect(habits.oddNames[.hash] == .kept && habits.refusesOverwriting)
            await session.provider.invalidate()
        }
    }

    @Test("S264: no connection is kept busy by a probe that was broken off", arguments: ["location", "breaks", "late"])
    func brokenProbesHoldNoConnections(_ habit: String) async throws {
        try await PlainServer.run(habit) { server async throws in
            let session = try server.session { $0.retries.attempts = 2 }
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            // The one that asks is busy itself.
            #expect(await eventually { (try? await server.state().connections.busy) == 1 })
            await session.provider.invalidate()
            #expect(await eventually { (try? await server.state().connections.open) == 1 })
        }
    }
}
