import FileProvider
import FileProviderPaths
import FileProviderTesting
import Synchronization
import Testing

/// Pages of a listing that are requested once more after a failure, as the system does.
@Suite struct RepeatedPageTests {
    @Test("NAME-12: a page that failed once has its items when it is requested again")
    func failedPage() async throws {
        try await MemoryPathRemote.run(.init(part: 2)) { remote, session async throws in
            remote.change { contents in
                for name in ["a", "b", "c", "d", "e"] { contents.make(path(name), kind: .file, [1]) }
            }
            let items = try await session.list()
            let c = try #require(items.first { $0.filename == "c" })
            let enumerator = try session.provider.enumerator(for: .rootContainer, request: session.request)
            let first = try await enumerator.enumerateItems(startingAt: .initial, suggestedPageSize: 10)
            #expect(first.items.map(\.filename) == ["a", "b"])
            // The entry is older than this change, and is looked up.
            _ = try await session.modify(c, [], content: [1, 2])
            remote.lookupFailure.withLock { $0 = FileProviderError(.providerDomainTemporarilyUnavailable) }
            let page = try #require(first.nextPage)
            let error = await #expect(throws: FileProviderError.self) {
                _ = try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: 10)
            }
            #expect(error?.code == .providerDomainTemporarilyUnavailable)
            let second = try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: 10)
            #expect(second.items.map(\.filename) == ["c", "d"])
            #expect(second.items.first?.documentSize == 2)
            let last = try await enumerator.enumerateItems(
                startingAt: try #require(second.nextPage), suggestedPageSize: 10)
            #expect(last.items.map(\.filename) == ["e"])
            #expect(last.nextPage == nil)
        }
    }
}
