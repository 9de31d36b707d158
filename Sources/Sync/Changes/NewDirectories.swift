import FileProvider
import Replica

/// Lists directories that are new here while items are missing elsewhere: these may have moved there.
struct NewDirectories: SyncPart {
    let context: SyncContext
    let listings: Listings
    let request: FileProviderRequest
    /// Items of higher numbers are new.
    let after: Int64

    private static let mostDirectories = 1000
    private static let atOnce = 8

    /// Returns as soon as nothing is missing, all new directories are listed, or as many as items are missing. One that cannot be
    /// listed is left alone.
    ///
    /// - Throws: what the database says; `CancellationError`.
    func search() async throws {
        var missing = replica.ordering.missing
        var remaining = min(try replica.database.countVanishing(missing), Self.mostDirectories)
        var tried: Set<InodeNumber> = []
        while !missing.isEmpty, remaining > 0 {
            let new = try replica.database.unlistedDirectories(after: after).filter { !tried.contains($0) }
            if new.isEmpty { return }
            let next = new.prefix(min(remaining, Self.atOnce))
            try await list(next)
            tried.formUnion(next)
            remaining -= next.count
            missing = replica.ordering.missing
        }
    }

    private func list(_ directories: ArraySlice<InodeNumber>) async throws {
        try await withThrowingTaskGroup(of: Void.self) { [listings, request] group in
            for directory in directories {
                group.addTask { try? await listings.list(directory, beyond: nil, request: request) }
            }
            try await group.waitForAll()
        }
        try Task.checkCancellation()
    }
}
