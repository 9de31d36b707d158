import FileProvider
import Replica

/// Lists directories that are new here while items are missing elsewhere: these may have moved there.
struct NewDirectories: SyncPart {
    let context: SyncContext
    let listings: Listings
    let request: FileProviderRequest
    /// Items of higher numbers are new.
    let after: Int64

    /// In how many directories is searched until no removal is held.
    static let most = 1000
    private static let atOnce = 8
    private static let timeLimit = Duration.seconds(60)

    /// Lists new directories, and those that are found in them: the newest first, until nothing is missing, and no more of them than
    /// items are missing. It ends early after a minute.
    ///
    /// - Parameter searched: directories that are not listed any more; all that were tried are added.
    /// - Throws: what may pass by itself, or concerns the whole domain: what is missing may be in the directory that could not be
    ///   listed. Other failures concern one directory, and are ignored.
    func search(except searched: inout Set<InodeNumber>) async throws {
        let end = ContinuousClock.now + Self.timeLimit
        var remaining = min(try replica.database.countVanishing(replica.ordering.missing), Self.most - searched.count)
        var after = after
        while remaining > 0 {
            let newest = try replica.database.newestItem()
            var level = try replica.database.unlistedDirectories(after: after, limit: remaining)
                .filter { !searched.contains($0) }[...]
            if level.isEmpty { return }
            (after, remaining) = (newest, remaining - level.count)
            while !level.isEmpty {
                guard !replica.ordering.missing.isEmpty, .now < end else { return }
                let next = level.prefix(Self.atOnce)
                level = level.dropFirst(Self.atOnce)
                searched.formUnion(next)
                try await list(next)
            }
        }
    }

    private func list(_ directories: ArraySlice<InodeNumber>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { [listings, request] group in
            for directory in directories {
                group.addTask {
                    do throws(FileProviderError) {
                        try await listings.list(directory, beyond: nil, request: request)
                    } catch {
                        switch error.code.reaction {
                        case .latchDomain, .stop, .retry: throw error
                        case .parkItem, .changeState, .giveUpAsking: break
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
