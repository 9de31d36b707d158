import FileProvider
import FileProviderTesting
import TestSupport
import Testing

/// The enumerator of one file of a folder.
@Suite struct DocumentTests {
    @Test("N5 (issue 14, 3.7): a file's enumerator returns the file, and its changes since an anchor")
    func fileEnumeratorReportsItsChanges() async throws {
        try await FolderRemote.run { remote, session in
            #expect(session.provider.features.documentEnumeration)
            try await remote.makeDirectory("directory")
            try await remote.write(Array("old".utf8), to: "directory/file")
            let file = try await session.find("directory/file")
            let enumerator = try session.provider.enumerator(for: file.itemIdentifier, request: session.request)
            #expect(try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10).items == [file])
            let anchor = try #require(try await enumerator.currentSyncAnchor())
            #expect(try await enumerator.enumerateChanges(from: anchor, suggestedBatchSize: 10).updated == [])
            try await remote.write(Array("newer".utf8), to: "directory/file")
            let changes = try await enumerator.enumerateChanges(from: anchor, suggestedBatchSize: 10)
            #expect(changes.updated.map(\.documentSize) == [5])
            #expect(changes.anchor != anchor && changes.anchor.rawValue.count <= SyncAnchor.maximumLength)
            #expect(try await enumerator.enumerateChanges(from: changes.anchor, suggestedBatchSize: 10).updated == [])
            try await remote.delete("directory/file")
            await #expect(throws: FileProviderError.self) {
                _ = try await enumerator.enumerateChanges(from: changes.anchor, suggestedBatchSize: 10)
            }
        }
    }

    @Test("a directory's enumerator lists it, and has no anchor") func directoryEnumeratorHasNoAnchor() async throws {
        try await FolderRemote.run { remote, session in
            try await remote.makeDirectory("directory")
            try await remote.write([1], to: "directory/file")
            let directory = try await session.find("directory")
            let enumerator = try session.provider.enumerator(for: directory.itemIdentifier, request: session.request)
            let page = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            #expect(page.items.map(\.filename) == ["file"])
            #expect(try await enumerator.currentSyncAnchor() == nil)
        }
    }
}
