import FileProvider

extension PathAddressedProvider {
    public func fetchThumbnails(
        for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ) async throws {
        guard let remote = remote as? any ThumbnailRemote else {
            throw FileProviderError(.featureUnsupported, "this remote has no thumbnails")
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, identifier) in identifiers.enumerated() {
                if index >= Self.thumbnailsAtOnce { try await group.next() }
                group.addTask { [tree] in
                    let result: Result<[UInt8]?, any Error>
                    do {
                        result = .success(
                            try await tree.locate(identifier) { path in
                                try await remote.thumbnail(of: path, size: requestedSize)
                            })
                    } catch let error as FileProviderError where error.code.reaction == .latchDomain {
                        throw error
                    } catch {
                        result = .failure(error)
                    }
                    perThumbnailCompletionHandler(identifier, result)
                }
            }
            try await group.waitForAll()
        }
    }

    private static let thumbnailsAtOnce = 6
}
