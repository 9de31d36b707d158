import FileProvider
import FileProviderTesting
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import FileProviderPaths

/// A remote that moves directories file by file, and is interrupted after the first one.
final class PartwiseRemoteInMemory: PartwiseRemote {
    let memory = MemoryPathRemote()
    /// With what the next moves fail.
    let failure = Mutex<FileProviderError?>(nil)
    /// What happens when a part of a directory was moved.
    let halfway = Mutex<(@Sendable () async throws -> Void)?>(nil)
    /// Where the rest of a directory is not moved.
    let refused = Mutex<RemotePath?>(nil)
    /// How many times the rest was to be moved.
    let passes = Mutex(0)

    var traits: RemoteTraits { memory.traits }

    func entry(at path: RemotePath) async throws -> RemoteEntry { try await memory.entry(at: path) }

    func entries(in path: RemotePath, from token: [UInt8]?, limit: Int) async throws -> RemoteListing {
        try await memory.entries(in: path, from: token, limit: limit)
    }

    func read(
        _ path: RemotePath, tag: [UInt8]?, range: Range<Int64>?, into sink: any ContentSink
    ) async throws -> RemoteEntry {
        try await memory.read(path, tag: tag, range: range, into: sink)
    }

    func delete(_ path: RemotePath, kind: ItemKind, if condition: RemoteCondition) async throws {
        try await memory.delete(path, kind: kind, if: condition)
    }

    func move(_ path: RemotePath, to newPath: RemotePath, kind: ItemKind) async throws -> RemoteEntry {
        guard kind == .directory, let failure = failure.withLock({ $0 }) else {
            return try await memory.move(path, to: newPath, kind: kind)
        }
        let first = memory.names(in: path).first
        memory.change { contents in
            contents.make(newPath, kind: .directory)
            if let first { contents.move(path.appending(first), to: newPath.appending(first)) }
        }
        if let halfway = halfway.withLock({ $0 }) { try await halfway() }
        throw failure
    }

    func parts(of path: RemotePath, toMoveTo newPath: RemotePath) async throws -> DirectoryParts? {
        if let present = try? await memory.entry(at: newPath) { throw RemoteConditionFailure(present: present) }
        return DirectoryParts([])
    }

    func finishMove(of parts: DirectoryParts, from path: RemotePath, to newPath: RemotePath) async throws {
        passes.withLock { $0 += 1 }
        if let failure = failure.withLock({ $0 }) { throw failure }
        if refused.withLock({ $0 }) == newPath { throw FileProviderError(.fileReadNoPermission) }
        for name in memory.names(in: path) {
            memory.change { $0.move(path.appending(name), to: newPath.appending(name)) }
        }
        memory.change { $0.delete(path) }
    }
}

/// A directory of which a part is in either place after its move was interrupted.
@Suite struct PartwiseMoveTests {
    /// Runs a test with directories and files on a remote of its own.
    private func run(
        _ directories: [String], _ files: [String], store: (any ProviderStore)? = nil,
        _ test: (PartwiseRemoteInMemory, ProviderSession) async throws -> Void
    ) async throws {
        let remote = PartwiseRemoteInMemory()
        remote.memory.change { contents in
            for directory in directories { contents.make(path(directory), kind: .directory) }
            for (number, file) in files.enumerated() { contents.make(path(file), kind: .file, [UInt8(number + 1)]) }
        }
        let under = MemoryRemoteUnderTest(remote: remote.memory)
        let manager = TestManager(domain: under.domain, stateDirectory: under.stateDirectory, store: store)
        let provider = PathAddressedProvider(remote: remote, manager: manager)
        try await withCleanUp({ await provider.invalidate() }) {
            try await test(remote, ProviderSession(provider: provider, manager: manager))
        }
    }

    /// Calls a closure with a directory "above/old" of two files, of which one is in "above/new".
    private func withInterruptedMove(
        _ body: (PartwiseRemoteInMemory, ProviderSession, FileProviderItem) async throws -> Void
    ) async throws {
        try await run(["above", "above/old"], ["above/old/1", "above/old/2"]) { remote, session in
            var item = try await session.find("above/old")
            try await session.list(item.itemIdentifier)
            item.filename = "new"
            let renamed = item
            remote.failure.withLock { $0 = FileProviderError(.serverUnreachable) }
            await #expect(throws: FileProviderError.self) { try await session.modify(renamed, .filename) }
            remote.failure.withLock { $0 = nil }
            try #require(remote.memory.names(in: path("above")) == ["new", "old"])
            try await body(remote, session, item)
        }
    }

    @Test("PATH-8: a directory that was moved in part is moved as a whole before it is seen", arguments: [false, true])
    func finished(isAskedFor: Bool) async throws {
        try await withInterruptedMove { remote, session, item async throws in
            if isAskedFor {
                #expect(try await session.modify(item, .filename).item.itemIdentifier == item.itemIdentifier)
            } else {
                let listed = try await session.list(item.parentItemIdentifier)
                #expect(listed.map(\.itemIdentifier) == [item.itemIdentifier])
            }
            #expect(remote.memory.names(in: path("above")) == ["new"])
            #expect(remote.memory.names(in: path("above/new")) == ["1", "2"])
        }
    }

    @Test("PATH-8: and before a directory that holds it is renamed")
    func finishedBelow() async throws {
        try await withInterruptedMove { remote, session, _ async throws in
            let above = try #require(try await session.list().first).renamed("elsewhere")
            _ = try await session.modify(above, .filename)
            #expect(remote.memory.names(in: path("elsewhere")) == ["new"])
            #expect(remote.memory.names(in: path("elsewhere/new")) == ["1", "2"])
        }
    }

    @Test("PATH-8: what the remote refuses to move stays where it is, until the renaming is repeated")
    func refused() async throws {
        try await withInterruptedMove { remote, session, item async throws in
            remote.failure.withLock { $0 = FileProviderError(.fileReadNoPermission) }
            let error = await #expect(throws: FileProviderError.self) { try await session.item(item.itemIdentifier) }
            #expect(error?.code == .providerDomainTemporarilyUnavailable)
            #expect(try await session.item(item.itemIdentifier).filename == "old")
            remote.failure.withLock { $0 = nil }
            #expect(try await session.modify(item, .filename).item.filename == "new")
            #expect(remote.memory.names(in: path("above/new")) == ["1", "2"])
        }
    }

    @Test(
        "PATH-8: a directory of which the remote refuses to move the rest is renamed otherwise, or keeps its name",
        arguments: ["other", "old"])
    func renamedOtherwise(_ name: String) async throws {
        try await withInterruptedMove { remote, session, item async throws in
            remote.refused.withLock { $0 = path("above/new") }
            await #expect(throws: FileProviderError.self) { try await session.item(item.itemIdentifier) }
            let renamed = item.renamed(name)
            let moved = try await session.modify(renamed, .filename).item
            #expect(moved.filename == name && moved.itemIdentifier == item.itemIdentifier)
            #expect(remote.memory.names(in: path("above")) == ["new", name].sorted())
            #expect(remote.memory.names(in: path("above/" + name)) == ["2"])
            #expect(remote.memory.names(in: path("above/new")) == ["1"])
            // At the next start nothing is moved to where the directory is not wanted any more.
            let records = OperationLedger(in: ReportingStore(of: session.manager)).moves.unknown
            #expect(records.allSatisfy { $0.isMade == true })
        }
    }

    @Test("PATH-8: the refused move stays known while the directory is only to be moved to a name that is taken")
    func renamedToATakenName() async throws {
        try await withInterruptedMove { remote, session, item async throws in
            remote.memory.change { $0.make(path("above/taken"), kind: .directory) }
            remote.refused.withLock { $0 = path("above/new") }
            await #expect(throws: FileProviderError.self) { try await session.item(item.itemIdentifier) }
            let taken = item.renamed("taken")
            let error = await #expect(throws: FileProviderError.self) { try await session.modify(taken, .filename) }
            #expect(error?.code == .filenameCollision)
            remote.refused.withLock { $0 = nil }
            let moved = try await session.modify(item, .filename).item
            #expect(moved.filename == "new" && moved.itemIdentifier == item.itemIdentifier)
            #expect(remote.memory.names(in: path("above")) == ["new", "taken"])
            #expect(remote.memory.names(in: path("above/new")) == ["1", "2"])
        }
    }

    @Test("PATH-8: a renaming whose rest is refused cannot be made, and each later call tries it once")
    func refusedRenaming() async throws {
        try await withInterruptedMove { remote, session, item async throws in
            remote.refused.withLock { $0 = path("above/new") }
            for passes in 1...2 {
                let error = await #expect(throws: FileProviderError.self) { try await session.modify(item, .filename) }
                #expect(error?.code == .cannotSynchronize)
                #expect(remote.passes.withLock { $0 } == passes)
            }
            remote.refused.withLock { $0 = nil }
            #expect(try await session.modify(item, .filename).item.filename == "new")
            #expect(remote.memory.names(in: path("above/new")) == ["1", "2"])
        }
    }

    @Test("PATH-8: and where the refusal comes after the call has ended, the next call tells it")
    func refusedLater() async throws {
        let moves = UnfinishedMoves()
        let move = UnfinishedMoves.Target(item: ItemIdentifier("d"), directory: .rootContainer, name: "new")
        let passes = Mutex(0)
        let isOver = Mutex(false)
        var codes: [FileProviderError.Code?] = []
        for _ in 0..<3 {
            if codes.count == 1 {
                isOver.withLock { $0 = true }
                #expect(await eventually { moves.isRefused(move) })
            }
            // The first call ends before the move does. The others have time also on a busy machine.
            let patience = codes.isEmpty ? Duration.milliseconds(50) : .seconds(20)
            codes.append(
                await failureCode {
                    try await moves.renaming(to: move) {
                        try await moves.finish(move, within: patience) {
                            passes.withLock { $0 += 1 }
                            while !isOver.withLock({ $0 }) { try await Task.sleep(for: .milliseconds(5)) }
                            throw FileProviderError(.fileReadNoPermission)
                        }
                    }
                })
        }
        #expect(codes == [.providerDomainTemporarilyUnavailable, .cannotSynchronize, .cannotSynchronize])
        #expect(passes.withLock { $0 } == 2)
    }

    @Test("PATH-8: a refused move costs no requests, and what it has moved is recognized")
    func refusedForLong() async throws {
        try await withInterruptedMove { remote, session, item async throws in
            let file = try #require(session.manager.identifier(ofChildNamed: "1", in: item.itemIdentifier))
            remote.refused.withLock { $0 = path("above/new") }
            await #expect(throws: FileProviderError.self) { try await session.item(item.itemIdentifier) }
            _ = remote.memory.takeCalls()
            _ = try await session.item(item.itemIdentifier)
            #expect(remote.memory.takeCalls().count == 1)
            let listed = try await session.list(item.parentItemIdentifier)
            #expect(listed.map(\.filename).sorted() == ["new", "old"])
            let other = try #require(listed.first { $0.filename == "new" })
            #expect(try await session.list(other.itemIdentifier).map(\.itemIdentifier) == [file])
        }
    }

    @Test(
        "PATH-8: where another client has moved what the remote refuses to move, the directory is found",
        arguments: [false, true])
    func finishedByAnother(isListed: Bool) async throws {
        try await withInterruptedMove { remote, session, item async throws in
            remote.refused.withLock { $0 = path("above/new") }
            await #expect(throws: FileProviderError.self) { try await session.item(item.itemIdentifier) }
            remote.memory.change { contents in
                contents.move(path("above/old/2"), to: path("above/new/2"))
                contents.delete(path("above/old"))
            }
            if isListed {
                let listed = try await session.list(item.parentItemIdentifier)
                #expect(listed.map(\.itemIdentifier) == [item.itemIdentifier])
            } else {
                #expect(try await session.item(item.itemIdentifier).filename == "new")
            }
        }
    }

    @Test("PATH-8: an item is not reported as removed while its directory is being moved, however long that takes")
    func lookedUpHalfway() async throws {
        try await run(["old"], ["old/1", "old/2"]) { remote, session in
            let directory = try await session.find("old").itemIdentifier
            let file = try await session.find("old/1").itemIdentifier
            let tree = PathTree(
                remote: remote, manager: session.manager,
                ledger: OperationLedger(in: ReportingStore(of: session.manager)),
                patience: .milliseconds(50))
            let codes = Mutex<[FileProviderError.Code?]>([])
            remote.failure.withLock { $0 = FileProviderError(.serverUnreachable) }
            remote.halfway.withLock { hook in
                hook = {
                    let code = await failureCode { _ = try await tree.locate(file) { try await remote.entry(at: $0) } }
                    codes.withLock { $0.append(code) }
                }
            }
            let places = ["old", "new"].map { PathMap.Place(directory: .rootContainer, name: $0) }
            await #expect(throws: FileProviderError.self) {
                try await tree.paths.moving(
                    directory, tag: [], parts: DirectoryParts([]), from: path("old"), at: places[0], to: places[1]
                ) {
                    try await remote.move(path("old"), to: path("new"), kind: .directory)
                }
            }
            #expect(codes.withLock { $0 } == [.providerDomainTemporarilyUnavailable])
        }
    }

    /// A store whose disk is too full for what has to be confirmed by it.
    private struct FullStore: ProviderStore {
        private let store = InMemoryProviderStore()

        func read<Value>(_ body: (any ProviderStoreSnapshot) throws -> Value) throws -> Value { try store.read(body) }

        func write<Value>(
            _ durability: ProviderStoreDurability, _ body: (any ProviderStoreTransaction) throws -> Value
        ) throws -> Value {
            if durability == .synced { throw FileProviderError.posix(.noSpace, "full") }
            return try store.write(durability, body)
        }
    }

    @Test("PATH-8: nothing of a directory is moved before its record is on the disk")
    func unrecorded() async throws {
        try await run(["old"], ["old/1"], store: FullStore()) { remote, session in
            let renamed = try await session.find("old").renamed("new")
            let error = await #expect(throws: FileProviderError.self) { try await session.modify(renamed, .filename) }
            #expect(error?.code == .posix)
            #expect(remote.memory.names(in: .root) == ["old"])
            #expect(OperationLedger(in: ReportingStore(of: session.manager)).moves.unknown.isEmpty)
        }
    }

    @Test("the parts of a directory are stored in few bytes, and are found again")
    func storedParts() throws {
        let digests = (0..<1000).map { DirectoryParts.digest(of: "\($0)", version: "") }
        let encoded = try JSONEncoder().encode([DirectoryParts(digests)])
        #expect(encoded.count < 1000 * 8 * 3 / 2)
        let parts = try #require(try JSONDecoder().decode([DirectoryParts].self, from: encoded).first)
        #expect(parts == DirectoryParts(digests.reversed()))
        #expect(digests.allSatisfy { parts.contains($0) })
        #expect(!parts.isEmpty && !parts.contains(DirectoryParts.digest(of: "0", version: "later")))
    }
}
