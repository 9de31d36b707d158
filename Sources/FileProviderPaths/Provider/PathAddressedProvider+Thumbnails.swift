import FileProvider

extension PathAddressedProvider {
    public func fetchThumbnails(
        for identifiers: [ItemIdentifier], requestedSize: ThumbnailSize, request: FileProviderRequest,
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void
    ) async throws {
        guard let remote = remote as? any ThumbnailRemote, remote.hasThumbnails else {
            throw FileProviderError(.featureUnsupported, "this remote has no thumbnails")
        }
        try await fetchEachThumbnail(
            of: identifiers, perThumbnailCompletionHandler: perThumbnailCompletionHandler
        ) { [tree] identifier in
            try await tree.locate(identifier) { path in try await remote.thumbnail(of: path, size: requestedSize) }
        }
    }
}
