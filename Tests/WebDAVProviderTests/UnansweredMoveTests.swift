import FileProvider
import FileProviderPaths
import FileProviderTesting
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@testable import WebDAVProvider

@Suite("Moves that a proxy does not wait for", .tags(.server))
struct UnansweredMoveTests {
    private let file = RemotePath(["file"])

    /// Replaces the file, and gives up once its move is on its way.
    private func giveUp(_ bytes: [UInt8], on remote: WebDAVRemote, once isMoving: () async -> Bool) async {
        let upload = Task { try await remote.write(bytes, to: file) }
        let hasBegun = await eventually(isMoving)
        #expect(hasBegun)
        upload.cancel()
        _ = try? await upload.value
    }

    @Test(
        "DAV-29: a move that is made after its 504 ends the upload, and nothing is sent twice",
        arguments: ["", "pathtags"], [3, 300 << 10])
    func isMadeLater(_ habit: String, _ size: Int) async throws {
        try await PlainServer.withSession(habit) { server, session async throws in
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
        }
    }

    @Test("DAV-29: the end of a session takes no source away from a move without an answer, nor does the next start")
    func isKept() async throws {
        try await PlainServer.run { server async throws in
            let session = try server.session()
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let before = try await server.state().counts
            try await server.request(".gateway=3000")
            await giveUp([2, 3], on: remote) {
                (try? await server.state().counts["MOVE"]) == before["MOVE", default: 0] + 1
            }
            await session.provider.invalidate()
            let next = try server.session()
            _ = try await next.list()
            #expect(await eventually(within: .seconds(20)) { (try? await server.state().hidden) == [] })
            // The server has replaced the file, and has not lost it.
            #expect(try await next.fetch(next.find("file").itemIdentifier).bytes == [2, 3])
            await next.provider.invalidate()
        }
    }

    @Test(
        "DAV-29: a move without an answer replaces nothing newer, also after a restart",
        arguments: ["gateway", "break"], [3, 9 << 20])
    func replacesNothingNewer(_ end: String, _ size: Int) async throws {
        try await PlainServer.run { server async throws in
            let (old, newer) = ([UInt8](repeating: 2, count: size), [UInt8]([3]))
            let session = try server.session()
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            try await server.request(".\(end)=0")
            await giveUp(old, on: remote) {
                remote.server.hiddenFiles.sources(ofMovesTo: .root).first?.replacement.digest != nil
            }
            await session.provider.invalidate()

            let next = try server.session()
            let later = try #require(next.webDAV)
            #expect(await isHeldBack { try await later.write(newer, to: file) })
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
            try await later.write(old, to: file)
            #expect(try await server.state().hidden.count == 1)
            try await server.request(".release")
            #expect(await eventually { (try? await later.write(newer, to: file)) != nil })
            #expect(try await server.state().paths == ["/", "/file"])
            #expect(try await next.fetch(next.find("file").itemIdentifier).bytes == newer)
            await next.provider.invalidate()
        }
    }

    /// Sends the same content twice over a file, of which the first move is made after the second one.
    ///
    /// - Parameter test: gets the file as it was acknowledged, when the first move has given it another tag.
    private func withLateMove(
        _ habit: String = "", of size: Int = 3, test: (ProviderSession, FileProviderItem) async throws -> Void
    ) async throws {
        try await PlainServer.withSession("newtags", habit) { server, session async throws in
            let remote = try #require(session.webDAV)
            let made = try await session.create(ProviderSession.template("file"), content: [1]).item
            try await server.request(".gateway=0")
            let bytes = [UInt8](repeating: 2, count: size)
            await giveUp(bytes, on: remote) {
                remote.server.hiddenFiles.sources(ofMovesTo: file).first?.replacement.digest != nil
            }
            let acknowledged = try await session.modify(made, .contents, content: bytes).item
            let tag = try await remote.entry(at: file).tag
            #expect(remote.server.hiddenFiles.sources(ofMovesTo: file).count == 1)
            try await server.request(".release")
            #expect(await eventually { (try? await server.state().hidden) == [] })
            #expect(try await remote.entry(at: file).tag != tag)
            try await test(session, acknowledged)
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
            try await session.webDAV?.write([4, 4, 4], to: self.file)
            let error = await failureCode { _ = try await session.modify(file, .contents, content: [3, 3]) }
            #expect(error == .localVersionConflictingWithServer)
            #expect(try await session.fetch(file.itemIdentifier).bytes == [4, 4, 4])
        }
    }

    @Test("DAV-29: a move during which the daemon is killed keeps its source, and replaces nothing newer")
    func killed() async throws {
        try await PlainServer.withSession { server, session async throws in
            let remote = try #require(session.webDAV)
            _ = try await session.create(ProviderSession.template("file"), content: [1])
            let before = try await server.state().counts
            try await server.request(".hang=0")
            let upload = Task { try await remote.write([2], to: file) }
            #expect(
                await eventually {
                    (try? await server.state().counts["MOVE"]) == before["MOVE", default: 0] + 1
                })
            // The next daemon reads what this one has stored until now.
            let next = try server.session()
            let later = try #require(next.webDAV)
            #expect(await isHeldBack { try await later.write([3], to: file) })
            #expect(try await server.state().hidden.count == 1)
            try await server.request(".release")
            #expect(await eventually { (try? await later.write([3], to: file)) != nil })
            _ = try? await upload.value
            #expect(try await next.fetch(next.find("file").itemIdentifier).bytes == [3])
            #expect(try await server.state().paths == ["/", "/file"])
            await next.provider.invalidate()
        }
    }

    private final class Waits: Sendable {
        private let count = Mutex((begun: 0, open: 0))
        var begun: Int { count.withLock { $0.begun } }
        var open: Int { count.withLock { $0.open } }

        func note(_ isWaiting: Bool) {
            count.withLock { count in
                count.begun += isWaiting ? 1 : 0
                count.open += isWaiting ? 1 : -1
            }
        }
    }

    @Test("HTTP-1: a call is not watched while the server moves or removes a directory")
    func largeDirectories() async throws {
        try await PlainServer.withSession { _, session async throws in
            let remote = try #require(session.webDAV)
            let (old, new) = (RemotePath(["old"]), RemotePath(["new"]))
            _ = try await remote.makeDirectory(at: old, attributes: RemoteAttributes())
            let waits = Waits()
            let context = CallContext(urgency: CallUrgency(true), wait: { waits.note($0) })
            try await CallContext.$current.withValue(context) {
                _ = try await remote.move(old, to: new, kind: .directory)
            }
            let moved = waits.begun
            #expect(moved > 0)
            try await CallContext.$current.withValue(context) {
                try await remote.delete(new, kind: .directory, if: .always)
            }
            #expect(waits.begun > moved)
            #expect(waits.open == 0)
        }
    }

    @Test("HTTP-1: the move of a small file has the ordinary time, and a long one when it is repeated")
    func smallFiles() async throws {
        try await PlainServer.run { server async throws in
            let session = try server.session {
                $0.stallTimeout = .seconds(2)
                $0.longTimeout = .seconds(60)
            }
            let remote = try #require(session.webDAV)
            try await remote.write([1], to: file)
            #expect(try await remote.entry(at: file).size == 1)
            let waits = Waits()
            let context = CallContext(urgency: CallUrgency(true), wait: { waits.note($0) })
            func move() async throws {
                try await CallContext.$current.withValue(context) {
                    _ = try await remote.move(file, to: RemotePath(["moved"]), kind: .file)
                }
            }
            try await server.request(".hang=0")
            #expect(await failureCode { try await move() } == .timedOut)
            #expect(waits.begun == 0)
            try await move()
            #expect(waits.begun == 1 && waits.open == 0)
            #expect(await eventually { (try? await server.state().paths) == ["/", "/moved"] })
            await session.provider.invalidate()
        }
    }

    /// Whether a change waits for an earlier move, and it is known that nothing was sent for it.
    private func isHeldBack(_ body: () async throws -> Void) async -> Bool {
        guard let error = await failure(of: body) else { return false }
        return error.code == .providerDomainTemporarilyUnavailable && !OperationLedger.isOutcomeUnknown(after: error)
    }
}
