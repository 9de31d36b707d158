import FileProvider
import Synchronization

/// Lists the trash, or a directory in it. It is read once and given page by page.
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
        return try ItemPage(of: items.withLock { $0 }, startingAt: page, size: suggestedPageSize)
    }
}
