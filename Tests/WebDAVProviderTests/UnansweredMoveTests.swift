import FileProvider
import FileProviderPaths
import FileProviderTesting
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("Moves that a proxy does not wait for", .tags(.server))
struct UnansweredMoveTests {
    @Test(
        "DAV-29: a move that is made after its 504 ends the upload, and nothing is sent twice",
        arguments: ["", "pathtags"], [3, 300 << 10])
    func isMadeLater(_ habit: String, _ size: Int) async throws {
        try await PlainServer.run(habit) { server async throws in
            let session = try server.session()
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            let before = try await server.state().counts
            try await server.request(".gateway=1000")
            let content = [UInt8](repeating: 7, count: size)
            let changed = try await session.modify(made, .contents, content: content).item
            #expect(try await session.fetch(changed.itemIdentifier).bytes == content)
            let state = try await server.state()
            #expect(state.paths == ["/", "/file"])
            #expect(state.counts["PUT", default: 0] == before["PUT", default: 0] + 1)
            #expect(state.counts["MOVE", default: 0] == before["MOVE", default: 0] + 1)
            #expect(state.counts["DELETE", default: 0] == before["DELETE", default: 0])
            await session.provider.invalidate()
        }
    }

    @Test("DAV-29: the end of a session takes no source away from a move without an answer, nor does the next start")
    func isKept() async throws {
        try await PlainServer.run { server async throws in
            let session = try server.session()
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let content = try TestContent([2, 3])
            let before = try await server.state().counts
            try await server.request(".gateway=3000")
            let upload = Task {
                try await remote.write(
                    content.source, to: RemotePath(["file"]), attributes: RemoteAttributes(), if: .always)
            }
            #expect(
                await eventually {
                    (try? await server.state().counts["MOVE"]) == before["MOVE", default: 0] + 1
                })
            upload.cancel()
            _ = try? await upload.value
            await session.provider.invalidate()
            let next = try server.session()
            _ = try await next.list()
            #expect(await eventually(within: .seconds(20)) { (try? await server.state().hidden) == [] })
            // The server has replaced the file, and has not lost it.
            let file = try await next.find("file")
            #expect(try await next.fetch(file.itemIdentifier).bytes == [2, 3])
            await next.provider.invalidate()
        }
    }

    @Test(
        "DAV-29: a move without an answer replaces nothing newer, also after a restart",
        arguments: ["gateway", "break"], [3, 9 << 20])
    func replacesNothingNewer(_ end: String, _ size: Int) async throws {
        try await PlainServer.run { server async throws in
            let file = RemotePath(["file"])
            let (old, newer) = ([UInt8](repeating: 2, count: size), [UInt8]([3]))
            let session = try server.session()
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            try await server.request(".\(end)=0")
            let content = try TestContent(old)
            let upload = Task {
                try await remote.write(content.source, to: file, attributes: RemoteAttributes(), if: .always)
            }
            #expect(
                await eventually {
                    remote.server.hiddenFiles.sources(ofMovesTo: .root).first?.replacement.digest != nil
                })
            upload.cancel()
            _ = try? await upload.value
            await session.provider.invalidate()

            let next = try server.session()
            let later = try #require(next.webDAV)
            func write(_ bytes: [UInt8]) async throws {
                let content = try TestContent(bytes)
                _ = try await later.write(content.source, to: file, attributes: RemoteAttributes(), if: .always)
            }
            #expect(await isHeldBack { try await write(newer) })
            #expect(await isHeldBack { try await later.delete(file, kind: .file, if: .always) })
            #expect(await isHeldBack { _ = try await later.move(file, to: RemotePath(["other"]), kind: .file) })
            // This server keeps no attributes.
            let capabilities = try #require(later.server.capabilityStore.capabilities)
            var other = capabilities
            other.keepsAttributes = true
            later.server.capabilityStore.keep(other)
            let date = RemoteAttributes(contentModificationDate: FileTimestamp(seconds: 7))
            #expect(await isHeldBack { _ = try await later.set(date, of: file, kind: .file) })
            later.server.capabilityStore.keep(capabilities)
            // The same content does not wait.
            try await write(old)
            #expect(try await server.state().hidden.count == 1)
            try await server.request(".release")
            #expect(await eventually { (try? await write(newer)) != nil })
            #expect(try await server.state().paths == ["/", "/file"])
            let item = try await next.find("file")
            #expect(try await next.fetch(item.itemIdentifier).bytes == newer)
            await next.provider.invalidate()
        }
    }

    /// Sends the same content twice over a file, of which the first move is made after the second one.
    ///
    /// - Parameter test: gets the file as it was acknowledged, when the first move has given it another tag.
    private func withLateMove(
        _ habit: String = "", of size: Int = 3, test: (ProviderSession, FileProviderItem) async throws -> Void
    ) async throws {
        try await PlainServer.run("newtags", habit) { server async throws in
            let session = try server.session()
            let remote = try #require(session.webDAV)
            let file = RemotePath(["file"])
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            try await server.request(".gateway=0")
            let bytes = [UInt8](repeating: 2, count: size)
            let content = try TestContent(bytes)
            let upload = Task {
                try await remote.write(content.source, to: file, attributes: RemoteAttributes(), if: .always)
            }
            #expect(
                await eventually {
                    remote.server.hiddenFiles.sources(ofMovesTo: file).first?.replacement.digest != nil
                })
            upload.cancel()
            _ = try? await upload.value
            let acknowledged = try await session.modify(made, .contents, content: bytes).item
            let tag = try await remote.entry(at: file).tag
            #expect(remote.server.hiddenFiles.sources(ofMovesTo: file).count == 1)
            try await server.request(".release")
            #expect(await eventually { (try? await server.state().hidden) == [] })
            #expect(try await remote.entry(at: file).tag != tag)
            try await test(session, acknowledged)
            await session.provider.invalidate()
        }
    }

    @Test(
        "DAV-29: the same content that arrives once more is no conflict with what is changed here since",
        arguments: ["", "pathtags"], [3, 300 << 10])
    func arrivesTwice(_ habit: String, _ size: Int) async throws {
        try await withLateMove(habit, of: size) { session, file async throws in
            let changed = try await session.modify(file, .contents, content: [3, 3]).item
            #expect(try await session.fetch(changed.itemIdentifier).bytes == [3, 3])
        }
        try await withLateMove(habit, of: size) { session, file async throws in
            try await session.delete(file)
            #expect(try await session.list().isEmpty)
        }
    }

    @Test(
        "DAV-29: what another client has written since is a conflict, also if it is as long",
        arguments: ["", "pathtags"])
    func othersAreNotTaken(_ habit: String) async throws {
        try await withLateMove(habit) { session, file async throws in
            let other = try TestContent([4, 4, 4])
            _ = try await session.webDAV?.write(
                other.source, to: RemotePath(["file"]), attributes: RemoteAttributes(), if: .always)
            let error = await #expect(throws: FileProviderError.self) {
                try await session.modify(file, .contents, content: [3, 3])
            }
            #expect(error?.code == .localVersionConflictingWithServer)
            #expect(try await session.fetch(file.itemIdentifier).bytes == [4, 4, 4])
        }
    }

    @Test("DAV-29: a move during which the daemon is killed keeps its source, and replaces nothing newer")
    func killed() async throws {
        try await PlainServer.run { server async throws in
            let file = RemotePath(["file"])
            let session = try server.session()
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let before = try await server.state().counts
            try await server.request(".hang=0")
            let content = try TestContent([2])
            let upload = Task {
                try await remote.write(content.source, to: file, attributes: RemoteAttributes(), if: .always)
            }
            #expect(
                await eventually {
                    (try? await server.state().counts["MOVE"]) == before["MOVE", default: 0] + 1
                })
            // The next daemon reads what this one has stored until now.
            let next = try server.session()
            let later = try #require(next.webDAV)
            func write() async throws {
                let newer = try TestContent([3])
                _ = try await later.write(newer.source, to: file, attributes: RemoteAttributes(), if: .always)
            }
            #expect(await isHeldBack { try await write() })
            #expect(try await server.state().hidden.count == 1)
            try await server.request(".release")
            #expect(await eventually { (try? await write()) != nil })
            _ = try? await upload.value
            let item = try await next.find("file")
            #expect(try await next.fetch(item.itemIdentifier).bytes == [3])
            #expect(try await server.state().paths == ["/", "/file"])
            await next.provider.invalidate()
            await session.provider.invalidate()
        }
    }

    /// Whether a change waits for an earlier move, and it is known that nothing was sent for it.
    private func isHeldBack(_ body: () async throws -> Void) async -> Bool {
        do {
            try await body()
            return false
        } catch {
            return (error as? FileProviderError)?.code == .providerDomainTemporarilyUnavailable
                && !OperationLedger.isOutcomeUnknown(after: error)
        }
    }
}
