import FileProvider
import Replica

/// Removes what the remote has no more, unless it has moved, or is suspiciously much.
actor MissingItems: SyncPart {
    let context: SyncContext
    private let listings: Listings
    private let request: FileProviderRequest

    /// The newest item that was here when the round began that settled last what is missing, or the first one; nil before that.
    private var newestBefore: Int64?
    /// The newest item that was here when the last round began.
    private var newestAtBeginning: Int64 = 0
    /// The newest item that was here when nothing was missing last; nil before that.
    private var newestWhenSettled: Int64?
    /// The new directories that were searched since then for what is missing.
    private var searched: Set<InodeNumber> = []

    init(_ context: SyncContext, listings: Listings, request: FileProviderRequest) {
        self.context = context
        self.listings = listings
        self.request = request
    }

    /// Forgets what was missed before.
    func begin() throws {
        _ = replica.ordering.takeMissing()
        newestAtBeginning = try replica.database.newestItem()
    }

    /// As ``begin()``, for a round that settles what is missing.
    func beginRound() throws {
        try begin()
        newestBefore = newestBefore ?? newestAtBeginning
    }

    /// Nothing is missing that was not removed: from now on, other items are new.
    func noteSettled() throws {
        newestWhenSettled = try replica.database.newestItem()
        newestBefore = newestAtBeginning
        searched = []
    }

    /// Removes what comparisons have missed and not found elsewhere.
    ///
    /// - Returns: whether it was removed; false while ``DeletionGuard`` holds it.
    /// - Throws: the failure of a new directory that cannot be listed for now. What is missing may be in it: nothing is removed.
    func remove() async throws -> Bool {
        let newest = try replica.database.newestItem()
        let new = NewDirectories(context: context, listings: listings, request: request, after: newestBefore ?? newest)
        var tried = searched
        defer { searched.formUnion(tried) }
        try await new.search(except: &tried)
        guard try await remove(replica.ordering.takeMissing(), knownUpTo: newest) else { return false }
        try noteSettled()
        tried = []
        return true
    }

    /// Removes items.
    ///
    /// - Parameter newest: items of higher numbers do not count as known: a search for what is missing has brought them.
    /// - Returns: whether they were removed; false while ``DeletionGuard`` holds them.
    func remove(_ vanished: Set<ItemIdentifier>, knownUpTo newest: Int64? = nil) async throws -> Bool {
        guard !vanished.isEmpty else { return true }
        var gone = try replica.database.countVanishing(vanished)
        let known = try replica.database.countKnown(upTo: newest)
        if gone > DeletionGuard.mostItems {
            gone -= try replica.database.countFoundElsewhere(
                vanished, settled: newestWhenSettled, begun: newestAtBeginning)
        }
        try guardian.forgetReturned { try replica.database.item($0) != nil }
        guard guardian.admits(gone: gone, of: known) else { return false }
        replica.ordering.report(vanished)
        try await commits.commit { try $0.changes.vanish(vanished) }
        return true
    }
}
