import FileProvider
import Replica

/// The directories above some items that are not known here. Each is asked for once: the items of a deep tree have theirs in common.
struct UnknownDirectories {
    private let database: ReplicaDatabase
    /// Items that need no looking up.
    private let upcoming: [ItemIdentifier: FileProviderItem]
    /// Those that were found.
    private(set) var found: Set<ItemIdentifier> = []
    /// Those that the remote does not have, and what lies below them.
    private var lost: Set<ItemIdentifier> = []

    /// No path on Linux has more components.
    private static let deepest = 4096

    init(in database: ReplicaDatabase, upcoming: [ItemIdentifier: FileProviderItem] = [:]) {
        self.database = database
        self.upcoming = upcoming
    }

    /// Those above an item that were not found before, the uppermost first.
    ///
    /// - Parameter lookUp: asks the remote; nil for an item that it does not have.
    mutating func find(
        above item: FileProviderItem, lookUp: (ItemIdentifier) async throws -> FileProviderItem?
    ) async throws -> [FileProviderItem] {
        var directories: [FileProviderItem] = []
        var passed: Set<ItemIdentifier> = []
        var parent = item.parentItemIdentifier
        while parent != .rootContainer, parent != .trashContainer, directories.count < Self.deepest,
            !found.contains(parent), try database.item(parent) == nil, passed.insert(parent).inserted
        {
            var directory = upcoming[parent]
            if directory == nil, !lost.contains(parent) { directory = try await lookUp(parent) }
            // If it was removed since, a later change says so.
            guard !lost.contains(parent), let directory, directory.kind == .directory else {
                lost.formUnion(passed)
                return []
            }
            directories.append(directory)
            parent = directory.parentItemIdentifier
        }
        found.formUnion(passed)
        return directories.reversed()
    }
}
