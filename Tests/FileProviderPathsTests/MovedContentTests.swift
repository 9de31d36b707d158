import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import Testing

/// Renames, without new content, of files that another client writes just before.
@Suite struct MovedContentTests {
    /// Has another client write a file just before the next move.
    private func writeBeforeMove(_ remote: MemoryPathRemote, _ name: String, isUnsettled: Bool) {
        remote.beforeMove.withLock { hook in
            hook = {
                remote.beforeMove.withLock { $0 = nil }
                remote.change { contents in
                    contents.make(path(name), kind: .file, [7])
                    contents.setUnsettled(path(name), isUnsettled)
                }
            }
        }
    }

    @Test(
        "PATH-5: what another client wrote just before a rename goes along, is another version, and is in doubt for a while"
    )
    func writtenBeforeARename() async throws {
        try await MemoryPathRemote.run { remote, session async throws in
            remote.change { $0.make(path("file"), kind: .file, [1]) }
            let known = try await session.find("file")
            let item = known.renamed("new")
            writeBeforeMove(remote, "file", isUnsettled: true)
            let moved = try await session.modify(item, .filename).item
            #expect(remote.names(in: .root) == ["new"])
            #expect(moved.itemIdentifier == known.itemIdentifier)
            #expect(moved.itemVersion.contentVersion != known.itemVersion.contentVersion)
            remote.change { $0.setUnsettled(path("new"), false) }
            let settled = try await session.find("new")
            #expect(settled.itemIdentifier == known.itemIdentifier)
            #expect(settled.itemVersion.contentVersion != moved.itemVersion.contentVersion)
            #expect(try await session.fetch(settled.itemIdentifier).bytes == [7])
        }
    }

    @Test(
        "CONFLICT-1: a date that is sent with a rename does not make what another client wrote just before look like ours"
    )
    func writtenBeforeADate() async throws {
        let habits = MemoryPathRemote.Habits(storesEverything: true, datesMakeTags: true)
        for isWritten in [false, true] {
            try await MemoryPathRemote.run(habits) { remote, session async throws in
                remote.change { $0.make(path("file"), kind: .file, [1]) }
                var item = try await session.find("file")
                item.filename = "new"
                item.contentModificationDate = FileTimestamp(seconds: 2_000_000)
                if isWritten { writeBeforeMove(remote, "file", isUnsettled: false) }
                let stored = try await session.modify(item, [.filename, .contentModificationDate])
                #expect(stored.shouldFetchContent == isWritten)
                #expect(try await session.fetch(item.itemIdentifier).bytes == [isWritten ? 7 : 1])
            }
        }
    }
}
