import FileProvider

extension ProviderCalls {
    /// Enumerates a container page by page, until `take` returns false.
    ///
    /// - Parameters:
    ///   - wasSeen: whether an item was on an earlier page.
    ///   - take: receives the items of each page.
    /// - Throws: ``FileProviderError``, `malformedResponse` for pages that ``PageValidator`` refuses; what `take` throws.
    func enumerate(
        _ container: ItemIdentifier, for request: FileProviderRequest,
        wasSeen: (ItemIdentifier) -> Bool = { _ in false }, take: ([FileProviderItem]) async throws -> Bool
    ) async throws {
        let enumerator = try await make(.enumerator, for: request) {
            try $0.enumerator(for: container, request: request)
        }
        defer { enumerator.invalidate() }
        var validator = PageValidator(of: container)
        var next: FileProviderPage? = .initial
        while let page = next {
            try Task.checkCancellation()
            let result = try await make(.enumerateItems, for: request) { _ in
                try await enumerator.enumerateItems(startingAt: page, suggestedPageSize: PageValidator.pageSize)
            }
            try validator.take(result, wasSeen: wasSeen)
            guard try await take(result.items) else { return }
            next = result.nextPage
        }
    }
}
