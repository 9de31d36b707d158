import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Changes that were made on a remote that knows only paths, and whose answers did not come.
@Suite struct LostRenamingTests {
    @Test("PATH-8: a change that was made and never answered is known again")
    func lostAnswers() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("file"), kind: .file, [1]) }
            let base = try await session.find("file")
            // The upload arrived, its answer did not.
            remote.change { $0.make(path("file"), kind: .file, [1, 2, 3]) }
            let stored = try await session.modify(base, .contents, content: [1, 2, 3])
            #expect(stored.item.documentSize == 3)
            // So did the rename.
            remote.change { $0.move(path("file"), to: path("renamed")) }
            let renamed = stored.item.renamed("renamed")
            let moved = try await session.modify(renamed, .filename)
            #expect(moved.item.itemIdentifier == base.itemIdentifier)
            #expect(remote.names(in: .root) == ["renamed"])
        }
    }

    /// Renames an item so that the answer is lost.
    private func renameUnanswered(
        _ remote: MemoryPathRemote, _ session: ProviderSession, _ name: String, to newName: String,
        error code: FileProviderError.Code = .serverUnreachable,
        afterMove: @escaping @Sendable (MemoryPathRemote) -> Void = { _ in }
    ) async throws -> FileProviderItem {
        let base = try await session.find(name)
        let renamed = base.renamed(newName)
        remote.duringMove.withLock {
            $0 = {
                afterMove(remote)
                throw FileProviderError(code)
            }
        }
        await #expect(throws: FileProviderError.self) { try await session.modify(renamed, .filename) }
        remote.duringMove.withLock { $0 = nil }
        return base
    }

    @Test("PATH-8: a renaming that arrived, and whose answer did not, is no reason to take anything for gone")
    func lostRenamings() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change {
                $0.make(path("one"), kind: .file, [1])
                $0.make(path("two"), kind: .file, [2])
                $0.make(path("three"), kind: .directory)
                $0.make(path("three/file"), kind: .file, [3])
            }
            let inner = try await session.list(try await session.find("three").itemIdentifier)[0]
            // Renamed again before it is known.
            let one = try await renameUnanswered(remote, session, "one", to: "uno").renamed("eins")
            let moved = try await session.modify(one, .filename)
            #expect(moved.item.itemIdentifier == one.itemIdentifier)
            #expect(remote.names(in: .root) == ["eins", "three", "two"])
            // Removed before it is known.
            let two = try await renameUnanswered(remote, session, "two", to: "due")
            try await session.delete(two)
            #expect(remote.names(in: .root) == ["eins", "three"])
            // What is below is looked for while it is not known.
            _ = try await renameUnanswered(remote, session, "three", to: "tre")
            let found = try await session.provider.item(
                for: inner.itemIdentifier, request: FileProviderRequest(reason: .listing))
            #expect(found.filename == "file")
        }
    }

    @Test("PATH-8: what a renaming without an answer may have brought to a name is no other item of that name")
    func collisionsWithLostRenamings() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("one"), kind: .file, [1]) }
            // Copied, and the original is not removed yet.
            let base = try await renameUnanswered(remote, session, "one", to: "uno") { remote in
                remote.change { $0.copy(RemotePath(["uno"]), to: RemotePath(["one"])) }
            }
            func failureOfCreation() async -> FileProviderError? {
                await failure {
                    _ = try await session.create(ProviderSession.template("uno", size: 2), content: [2, 2])
                }
            }
            #expect(await failureOfCreation()?.code == .providerDomainTemporarilyUnavailable)
            remote.change { $0.delete(path("one")) }
            let collision = await failureOfCreation()
            #expect(collision?.code == .filenameCollision)
            let there = collision?.item?.itemIdentifier
            #expect(there == base.itemIdentifier)
        }
    }

    @Test("PATH-8: what is deleted while the renaming of its directory loses its answer is deleted in the new place")
    func deletedDuringLostRenamings() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change {
                $0.make(path("dir"), kind: .directory)
                $0.make(path("dir/file"), kind: .file, [1])
            }
            var directory = try await session.find("dir")
            let file = try await session.list(directory.itemIdentifier)[0]
            directory.filename = "renamed"
            let renamed = directory
            let gate = Gate()
            remote.duringMove.withLock {
                $0 = {
                    try await gate.pass()
                    throw FileProviderError(.serverUnreachable)
                }
            }
            let renaming = Task { try await session.modify(renamed, .filename) }
            #expect(await eventually { gate.waiting == 1 })
            _ = remote.takeCalls()
            let deletion = Task { try await session.delete(file) }
            // It has been looked for in the old place.
            #expect(await eventually { remote.takeCalls().contains("entry /dir/file") })
            gate.open()
            try await deletion.value
            await #expect(throws: FileProviderError.self) { try await renaming.value }
            #expect(remote.names(in: path("renamed")) == [])
        }
    }

    @Test("PATH-8: and one that did not arrive is made again") func renamingsThatDidNotArrive() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("one"), kind: .file, [1]) }
            var one = try await renameUnanswered(remote, session, "one", to: "uno", error: .timedOut) { remote in
                remote.change { $0.move(RemotePath(["uno"]), to: RemotePath(["one"])) }
            }
            one.filename = "uno"
            let moved = try await session.modify(one, .filename)
            #expect(moved.item.filename == "uno")
            #expect(remote.names(in: .root) == ["uno"])
        }
    }

    @Test("PATH-3: what loses its answer in the middle of a listing is known in it as itself")
    func lostDuringListings() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("from"), kind: .directory)
                contents.make(path("to"), kind: .directory)
                contents.make(path("from/one"), kind: .directory)
                contents.make(path("from/one/file"), kind: .file, [1])
            }
            let from = try await session.find("from").itemIdentifier
            let to = try await session.find("to").itemIdentifier
            let before = try await session.find("from/one")
            let listings = remote.listDuringMove(
                [from, to], by: session, failing: FileProviderError(.serverUnreachable))
            var item = before
            item.parentItemIdentifier = to
            item.filename = "uno"
            let moved = item
            await #expect(throws: FileProviderError.self) {
                try await session.modify(moved, [.parentItemIdentifier, .filename])
            }
            remote.duringMove.withLock { $0 = nil }
            let listed = try await listings()
            #expect(listed.map(\.itemIdentifier) == [before.itemIdentifier])
            #expect(listed.first?.filename == "uno")
        }
    }

    @Test("PATH-12: a directory is not kept because of what was moved there without an answer, and is removed as well")
    func deletedWithUnansweredMoves() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { contents in
                contents.make(path("one"), kind: .file, [1])
                contents.make(path("folder"), kind: .directory)
            }
            let folder = try await session.find("folder")
            let one = try await session.find("one")
            let change = one.moved(to: folder.itemIdentifier)
            remote.duringMove.withLock { $0 = { throw FileProviderError(.serverUnreachable) } }
            await #expect(throws: FileProviderError.self) { try await session.modify(change, .parentItemIdentifier) }
            remote.duringMove.withLock { $0 = nil }
            let error = await #expect(throws: FileProviderError.self) { try await session.delete(folder) }
            #expect(error?.code == .providerDomainTemporarilyUnavailable)
            try await session.delete(one)
            try await session.delete(folder)
            #expect(remote.names(in: .root) == [])
        }
    }
}
