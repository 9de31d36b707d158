import Replica

extension SyncEngine {
    /// Fetches thumbnails of files, in the background. Their content stays as it is.
    ///
    /// - Parameter found: called with each item once, as soon as it is known; from any thread.
    package func fetchThumbnails(
        of items: [ItemRecord], found: @escaping @Sendable (ItemRecord, ThumbnailOutcome) -> Void
    ) async {
        await Thumbnails(replica: replica, calls: calls).fetch(items, found: found)
    }
}
