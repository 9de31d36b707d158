import FileProvider
import Synchronization

/// Lists the trash, or a directory in it. It is read once and given page by page; the token of a page is the number of items
/// before it.
final class TrashEnumerator: FileProviderEnumerator {
    private let container: ItemIdentifier
    private let trash: RemoteTrash
    private let mayBeOlder: Bool
    private let items = Mutex<[FileProviderItem]>([])

    /// - Parameter mayBeOlder: whether an earlier listing will do where nothing seems to have changed.
    init(container: ItemIdentifier, trash: RemoteTrash, mayBeOlder: Bool) {
        self.container = container
        self.trash = trash
        self.mayBeOlder = mayBeOlder
    }

    func enumerateItems(startingAt page: FileProviderPage, suggestedPageSize: Int) async throws -> ItemPage {
        if page == .initial {
            let found = try await trash.items(in: container, mayBeOlder: mayBeOlder)
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
