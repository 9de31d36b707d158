import FileProvider

/// Notices what no provider may do while a container is listed, so that nothing goes on for ever and nothing fills the
/// memory or the database: tokens and pages that are too big, tokens that lead in a circle, pages that bring nothing new again and
/// again, ever new pages of ever new items.
struct PageValidator {
    private let container: ItemIdentifier
    private var visited: Set<FileProviderPage> = [.initial]
    private var pages = 0
    private var fruitless = 0
    private var allowance = mostFruitless
    private var empty = 0
    private var listed = 0

    /// Pages whose first item came before, one after the other. While a directory is changed it may happen once or twice.
    static let pageSize = 1000
    private static let mostFruitless = 8
    /// Empty pages, one after the other: a remote may have to look at much of which nothing is shown.
    private static let mostEmpty = 1000
    /// The most items of a container. A page counts for at least ``leastCounted``, because its token is remembered.
    private static let mostItems = 10_000_000
    private static let leastCounted = 100

    init(of container: ItemIdentifier) {
        self.container = container
    }

    /// Checks a page before anything is done with it.
    ///
    /// - Parameter wasSeen: whether an item came in this listing already.
    /// - Throws: `malformedResponse` that says what is wrong.
    mutating func take(
        _ page: ItemPage, wasSeen: (ItemIdentifier) throws -> Bool
    ) throws {
        pages += 1
        if page.items.count > 100 * Self.pageSize { throw mistake("a page of \(page.items.count) items") }
        if let next = page.nextPage {
            if next.rawValue.count > FileProviderPage.maximumLength {
                throw mistake("a page token of \(next.rawValue.count) bytes")
            }
            guard visited.insert(next).inserted else { throw mistake("a page token for the second time") }
        }
        listed += max(page.items.count, Self.leastCounted)
        if listed > Self.mostItems { throw mistake("more than \(Self.mostItems) items") }
        guard let first = page.items.first else {
            empty += 1
            if empty > Self.mostEmpty { throw mistake("one empty page after the other") }
            return
        }
        empty = 0
        fruitless = try wasSeen(first.itemIdentifier) ? fruitless + 1 : 0
        if fruitless > allowance { throw mistake("the same items on one page after the other") }
    }

    /// The listing begins again: what was on its pages comes once more.
    mutating func restart() {
        visited = [.initial]
        allowance += pages
        (pages, fruitless, empty, listed) = (0, 0, 0, 0)
    }

    private func mistake(_ what: String) -> FileProviderError {
        FileProviderError(.malformedResponse, "the provider gave \(what) for '\(container)'")
    }
}
