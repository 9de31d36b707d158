import FileProvider
import Replica

/// Looks up items on the remote, and the directories above them that the replica does not know: an item that was
/// moved into such a directory would have no place.
struct RemoteLookup: Sendable {
    let replica: Replica
    let calls: ProviderCalls

    /// No path on Linux has more components.
    private static let deepest = 4096

    /// An item as it is on the remote now; nil when it is not there.
    func lookUp(
        _ identifier: ItemIdentifier, for request: FileProviderRequest, ticket: CallLanes.Ticket? = nil
    ) async throws(FileProviderError) -> FileProviderItem? {
        do throws(FileProviderError) {
            return try await calls.make(for: request, ticket: ticket) {
                try await $0.item(for: identifier, request: request)
            }
        } catch {
            guard error.code == .noSuchItem else { throw error }
            return nil
        }
    }

    /// The directories above an item that are not known here, the uppermost first.
    ///
    /// - Parameter upcoming: items that need no looking up.
    func unknown(
        above item: FileProviderItem, upcoming: [ItemIdentifier: FileProviderItem] = [:],
        for request: FileProviderRequest
    ) async throws -> [FileProviderItem] {
        var directories: [FileProviderItem] = []
        var parent = item.parentItemIdentifier
        while parent != .rootContainer, parent != .trashContainer, directories.count < Self.deepest,
            try replica.database.item(parent) == nil
        {
            var directory = upcoming[parent]
            if directory == nil { directory = try await lookUp(parent, for: request) }
            // If it was removed since, a later change says so.
            guard let directory, directory.kind == .directory else { return [] }
            directories.append(directory)
            parent = directory.parentItemIdentifier
        }
        return directories.reversed()
    }
}
