extension FileProviderReplicatedExtension {
    /// Fetches thumbnails with one call each, a few at the same time. An error that concerns the whole domain ends the other calls.
    ///
    /// - Parameter fetch: returns the thumbnail of one file; nil where it has none.
    /// - Throws: the error that concerns the whole domain. Others are the results of their files.
    package func fetchEachThumbnail(
        of identifiers: [ItemIdentifier],
        perThumbnailCompletionHandler: @escaping @Sendable (ItemIdentifier, Result<[UInt8]?, any Error>) -> Void,
        fetch: @escaping @Sendable (ItemIdentifier) async throws -> [UInt8]?
    ) async throws {
        try await inParallel(identifiers, width: max(1, min(6, features.concurrentCalls))) { identifier in
            let result: Result<[UInt8]?, any Error>
            do {
                result = .success(try await fetch(identifier))
            } catch let error as FileProviderError where error.code.reaction == .latchDomain {
                throw error
            } catch {
                // Another one has ended the call: this says nothing of the file.
                try Task.checkCancellation()
                result = .failure(error)
            }
            perThumbnailCompletionHandler(identifier, result)
        }
    }
}
