import FileProvider
import Foundation
import ReplicaTestSupport
import SystemPackage
import Testing

@testable import Replica

/// Evictions that have to be refused, or that fail: the item stays as it is.
@Suite struct EvictionFailureTests {
    let fixture: ReplicaFixture
    let replica: Replica
    private let caller = LocalCaller(user: 0, group: 0)

    init() throws {
        (fixture, replica) = try ReplicaFixture.opened()
    }

    private func refusal(_ number: InodeNumber) async -> EvictionRefusal? {
        do {
            _ = try await replica.evictFile(number, open: fixture.open)
            return nil
        } catch {
            return error as? EvictionRefusal
        }
    }

    @Test("E10: an eviction whose unlink fails says which error, and the item stays materialized")
    func failedUnlinkKeepsTheItem() async throws {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        try await replica.fill(number)
        // A directory in its place cannot be unlinked (EISDIR).
        let path = fixture.directory.appending("contents").appending(number.description).string
        let content = try #require(FileManager.default.contents(atPath: path))
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        guard case .failed(let error)? = await refusal(number) else {
            Issue.record("it was evicted, or refused for another reason")
            return
        }
        #expect(error == .isDirectory || error == .notPermitted)
        let inode = try #require(try replica.database.inode(number))
        #expect(inode.content == .materialized)
        #expect(inode.localBytes == 100)
        #expect(try replica.database.localBytes() == 100)
        try FileManager.default.removeItem(atPath: path)
        try content.write(to: URL(fileURLWithPath: path))
        #expect(await refusal(number) == nil)
        #expect(fixture.contentFiles.isEmpty)
        #expect(try replica.database.inode(number)?.content == .dataless)
    }

    @Test("REIMPORT-3: a file that is being written is not only remembered, although its directory was evicted")
    func writtenBelowAnEvictedDirectory() async throws {
        let directory = try await replica.list(.directory("d"), open: fixture.open)
        try await replica.list([.file("empty", in: "d", size: 0)], in: directory, open: fixture.open)
        _ = try await replica.evictListing(of: directory)
        let evicted = try #require(try replica.database.item("empty"))
        #expect(try replica.database.isOnlyRemembered(evicted))
        _ = try replica.change(open: fixture.open) {
            try $0.contents.beginWriting(evicted.inode.number, truncating: false, caller: caller)
        }
        let written = try #require(try replica.database.item("empty"))
        #expect(try !replica.database.isOnlyRemembered(written))
    }

    @Test("E10: content whose eviction was not committed is put back, and that of a committed one is deleted")
    func interruptedEviction() async throws {
        try await replica.list([.file("a", size: 100), .file("b", size: 100)], open: fixture.open)
        let (kept, gone) = (try #require(try replica.number("a")), try #require(try replica.number("b")))
        for number in [kept, gone] {
            try await replica.fill(number)
            let generation = try #require(try replica.database.inode(number)).contentGeneration
            var content = WithdrawnContent(number, generation: generation, in: replica.contents)
            try content.withdraw()
        }
        #expect(fixture.contentFiles.isEmpty)
        try await replica.database.write { db in try db.dropContent(of: gone) }
        let reopened = try fixture.replica()
        #expect(reopened.findings == [])
        #expect(try reopened.database.inode(kept)?.content == .materialized)
        #expect(fixture.contentFiles == [kept.description])
        let left = try FileManager.default.contentsOfDirectory(atPath: replica.contents.withdrawn.string)
        #expect(left.isEmpty)
    }

    @Test("SEND-8: a file with a pending chmod is not evicted, and no candidate for making room")
    func pendingChmodIsNotEvicted() async throws {
        let number = try await replica.list(.file("a", size: 100), open: fixture.open)
        try await replica.fill(number)
        #expect(try replica.database.evictionCandidates(after: nil, limit: 10).map(\.number) == [number])
        _ = try replica.change(open: fixture.open) {
            let attributes = LocalAttributes(permissions: 0o600)
            return try $0.attributes.setAttributes(of: number, to: attributes, caller: caller)
        }
        #expect(await refusal(number) == .unsyncedEdits)
        #expect(try replica.database.evictionCandidates(after: nil, limit: 10).isEmpty)
        #expect(try replica.database.inode(number)?.content == .materialized)
    }

    @Test("T4: a trashed directory, and what lies below it, is not evicted") func trashIsNotEvicted() async throws {
        try replica.database.set(.hasTrash, to: "1")
        var directory = FileProviderItem.directory("d")
        directory.capabilities.insert(.allowsTrashing)
        try await replica.list([directory], open: fixture.open)
        let number = try #require(try replica.number("d"))
        let below = try await replica.list(.file("below", in: "d", size: 10), in: number, open: fixture.open)
        try await replica.fill(below)
        _ = try replica.change(open: fixture.open) { try $0.items.trash("d", user: 0, group: 0) }
        // As it is once the remote has heard of it.
        try await fixture.sabotage("UPDATE item SET changedFields = 0 WHERE identifier IS NOT NULL")
        #expect(await refusal(below) == .nonEvictable)
        await #expect(throws: EvictionRefusal.nonEvictable) { _ = try await replica.evictListing(of: number) }
        #expect(try replica.database.inode(number)?.content == .materialized)
        #expect(try replica.database.inode(below)?.content == .materialized)
    }
}
