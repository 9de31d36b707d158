import FileProvider
import Replica

/// Decides about one item that a call of the provider has not found. Where the provider has a change feed, what else has changed is taken
/// in before the item is removed: where another has replaced it, the name is not missing in between.
actor AbsenceCheck: SyncPart {
    let context: SyncContext
    private let feed: ChangeFeed
    private let request = FileProviderRequest(reason: .synchronization)
    /// The taking in of changes that callers wait for.
    private var takingIn: Task<Void, any Error>?
    /// Whether it has not ended within ``timeToTakeIn``.
    private var isTakingInLate = false
    private static let timeToTakeIn = Duration.seconds(5)

    init(_ context: SyncContext, feed: ChangeFeed) {
        self.context = context
        self.feed = feed
    }

    /// Looks up an item and records what the remote has: its version and place, or that it was removed.
    func refresh(_ identifier: ItemIdentifier) async throws {
        let observation = replica.ordering.observe()
        if let item = try await remoteLookup.lookUp(identifier, for: request) {
            return try await remoteLookup.record(item, of: identifier, observed: observation, for: request)
        }
        // It may have been replaced by another, as in ``findAgainOrRemove(_:searches:)``.
        if calls.provider.features.changeFeed, guardian.warning == nil { _ = await takeInChanges() }
        guard try replica.database.item(identifier) != nil else { return }
        try await remoteLookup.refresh(identifier, for: request)
    }

    /// The provider does not know a file that is shown here. Where it does not report changes by itself, only a comparison of all
    /// directories tells whether another client has moved the file, or a directory above it. Otherwise what it has to report is taken
    /// in, and a lookup confirms that the file is gone, before it is removed.
    ///
    /// - Returns: whether a search has found it, and its content can be asked for again.
    func findAgainOrRemove(_ number: InodeNumber, searches: Bool) async -> Bool {
        do {
            guard let identifier = try replica.database.item(ofInode: number)?.identifier else { return false }
            // While removals are held, every file may be missing, and what has changed is not taken in for each.
            if searches, guardian.warning == nil {
                let areTakenIn = await takeInChanges()
                if calls.provider.features.changeFeed {
                    // The item may be removed by now, and another have its name: the name was not missing in between.
                    let current = try replica.database.item(ofInode: number)?.identifier
                    guard current == identifier else { return current != nil }
                } else {
                    // A comparison that goes on, or has failed, does not show that the file is gone.
                    guard areTakenIn else { return false }
                    if try await remoteLookup.lookUp(identifier, for: request) != nil { return true }
                }
            }
            try await remoteLookup.refresh(identifier, for: request)
        } catch {
            if Task.isCancelled { return false }
            warnings.report("inode \(number) seems to be gone from the remote and cannot be looked up: \(error)")
        }
        return false
    }

    // MARK: - Private

    /// Takes in what has changed on the remote. Callers that come while everything is compared wait for that. Those that come while a
    /// change feed is asked share another question after it: its answer may be older than what they have found.
    ///
    /// - Returns: whether it has ended well in time.
    private func takeInChanges() async -> Bool {
        if calls.provider.features.changeFeed, let takingIn {
            guard await hasTakenIn(takingIn) else { return false }
        }
        let running: Task<Void, any Error>
        if let takingIn {
            running = takingIn
        } else {
            running = Task {
                defer { (takingIn, isTakingInLate) = (nil, false) }
                if calls.provider.features.changeFeed {
                    try await feed.takeNewsOnly()
                } else {
                    try await feed.refresh()
                }
            }
            takingIn = running
        }
        return await hasTakenIn(running)
    }

    /// Waits for a taking in of changes.
    ///
    /// - Returns: whether it has ended well in time. If it is late, a comparison goes on, and asking a change feed is cancelled.
    private func hasTakenIn(_ running: Task<Void, any Error>) async -> Bool {
        // A reader has waited ``timeToTakeIn`` for it.
        guard !isTakingInLate else { return false }
        guard let result = await running.result(within: Self.timeToTakeIn) else {
            // One that is interrupted has not waited long, and others may wait on.
            guard !Task.isCancelled else { return false }
            isTakingInLate = takingIn == running
            if calls.provider.features.changeFeed { running.cancel() }
            return false
        }
        guard case .success = result else { return false }
        return true
    }
}
