import FileProvider
import Synchronization

/// Lists the trash, or a directory in it. It is read once and given page by page; the token of a page is how many came
/// before.
final class TrashEnumerator: FileProviderEnumerator {
    private let container: ItemIdentifier
    private let provider: PathAddressedProvider
    private let mayBeOlder: Bool
    private let items = Mutex<[FileProviderItem]>([])

    /// - Parameter mayBeOlder: it need not be asked for where nothing seems to have changed.
    init(container: ItemIdentifier, provider: PathAddressedProvider, mayBeOlder: Bool) {
        self.container = container
        self.provider = provider
        self.mayBeOlder = mayBeOlder
    }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        if page == .initial {
            let found = try await provider.trashedItems(in: container, mayBeOlder: mayBeOlder)
            items.withLock { $0 = found }
        }
        let start = Int(String(decoding: page.rawValue, as: UTF8.self)) ?? 0
        return try items.withLock { items in
            guard start >= 0, start <= items.count else { throw FileProviderError(.pageExpired) }
            let end = start + min(items.count - start, max(1, suggestedPageSize))
            return ItemPage(
                items: Array(items[start..<end]),
                nextPage: end < items.count ? FileProviderPage(rawValue: Array(String(end).utf8)) : nil)
        }
    }
}
