import Synchronization

/// Lists a container that is read at once, and given page by page.
package final class ReadOnceEnumerator: FileProviderEnumerator {
    private let read: @Sendable () async throws -> [FileProviderItem]
    private let items = Mutex<[FileProviderItem]>([])

    package init(_ read: @escaping @Sendable () async throws -> [FileProviderItem]) {
        self.read = read
    }

    package func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        if page == .initial {
            let found = try await read()
            items.withLock { $0 = found }
        }
        return try ItemPage(of: items.withLock { $0 }, startingAt: page, size: suggestedPageSize)
    }
}
