import FileProvider
import Replica
import Synchronization

/// Removes what the remote has no more, unless it has moved, or is suspiciously much. One round uses it at a time.
final class MissingItems: SyncPart {
    private struct State {
        /// The newest item that was here when the round began that settled last what is missing, or the first one; nil before that.
        var newestBefore: Int64?
        /// The newest item that was here when the last round began.
        var newestAtBeginning: Int64 = 0
        /// The newest item that was here when nothing was missing last; nil before that.
        var newestWhenSettled: Int64?
        /// The new directories that were searched since then for what is missing.
        var searched: Set<InodeNumber> = []
    }

    let context: SyncContext
    private let listings: Listings
    private let request: FileProviderRequest
    private let state = Mutex(State())

    init(_ context: SyncContext, listings: Listings, request: FileProviderRequest) {
        self.context = context
        self.listings = listings
        self.request = request
    }

    /// Forgets what was missed before.
    func begin() throws {
        _ = replica.ordering.takeMissing()
        let newest = try replica.database.newestItem()
        state.withLock { $0.newestAtBeginning = newest }
    }

    /// As ``begin()``, for a round that settles what is missing.
    func beginRound() throws {
        try begin()
        state.withLock { $0.newestBefore = $0.newestBefore ?? $0.newestAtBeginning }
    }

    /// Nothing is missing that was not removed: from now on, other items are new.
    func noteSettled() throws {
        let newest = try replica.database.newestItem()
        state.withLock { ($0.newestWhenSettled, $0.newestBefore, $0.searched) = (newest, $0.newestAtBeginning, []) }
    }

    /// Removes what comparisons have missed and not found elsewhere. Another client may have moved a missing item to a directory that
    /// could not be compared, and a change feed whose anchor has expired does not tell of it either. An item that was changed here would
    /// become a second one: it stays until all directories could be compared.
    ///
    /// - Parameter isWhole: no directory was left out because of a failure that may pass by itself.
    /// - Returns: whether all of it was removed; false while ``DeletionGuard`` holds it.
    /// - Throws: the failure of a new directory that cannot be listed for now. What is missing may be in it: nothing is removed.
    func remove(isWhole: Bool) async throws -> Bool {
        let newest = try replica.database.newestItem()
        let (before, searched) = state.withLock { ($0.newestBefore, $0.searched) }
        let new = NewDirectories(context: context, listings: listings, request: request, after: before ?? newest)
        var tried = searched
        do {
            defer { note(searched: tried) }
            try await new.search(except: &tried)
        }
        let vanished = replica.ordering.takeMissing()
        let kept = try isWhole ? [] : replica.database.itemsWithPendingChanges(among: vanished)
        guard try await remove(vanished, except: kept, knownUpTo: newest), kept.isEmpty else { return false }
        try noteSettled()
        return true
    }

    private func note(searched directories: Set<InodeNumber>) {
        state.withLock { $0.searched.formUnion(directories) }
    }

    /// Removes items.
    ///
    /// - Parameters:
    ///   - kept: items that are missing, too, and are not removed yet.
    ///   - newest: items of higher numbers do not count as known: a search for what is missing has brought them.
    /// - Returns: whether they were removed; false while ``DeletionGuard`` holds them.
    func remove(
        _ vanished: Set<ItemIdentifier>, except kept: Set<ItemIdentifier> = [], knownUpTo newest: Int64? = nil
    ) async throws -> Bool {
        guard !vanished.isEmpty else { return true }
        var gone = try replica.database.countVanishing(vanished)
        let known = try replica.database.countKnown(upTo: newest)
        if gone > DeletionGuard.mostItems {
            let (settled, begun) = state.withLock { ($0.newestWhenSettled, $0.newestAtBeginning) }
            gone -= try replica.database.countFoundElsewhere(vanished, settled: settled, begun: begun)
        }
        try guardian.forgetReturned { try replica.database.item($0) != nil }
        guard guardian.admits(gone: gone, of: known) else { return false }
        let removed = vanished.subtracting(kept)
        replica.ordering.report(removed)
        try await commits.commit { try $0.changes.vanish(removed) }
        return true
    }
}
