import FileProvider
import Replica

/// Changes that the remote refuses because it does not have the item or its directory.
extension Executor {
    private static let pauseForComparison = Duration.seconds(3)
    static let longestPauseForComparison = Duration.seconds(60)
    /// A change that has waited for a comparison for so long counts as failed, and goes on waiting.
    private static let patienceForComparison = Duration.seconds(600)
    private static let pauseAfterFinding = Duration.seconds(1)
    /// How often in a row a change is sent again soon that was refused because something is missing which a lookup finds.
    private static let mostFindings = 3

    /// The item, or the directory that it was to be put in, is not on the remote any more: both are looked up before that
    /// is believed.
    func lost(_ sent: SentChange, _ failure: FileProviderError) async throws {
        let parent = sent.item.parentItemIdentifier
        if try await root.isEmptied() {
            return try await waitForDecision(sent, missing: sent.identifier ?? parent, failure)
        }
        if let identifier = sent.identifier {
            guard let item = try await remoteLookup.lookUp(identifier, for: request) else {
                if try await waitsForComparison(sent, missing: identifier, failure) { return }
                guard try remoteLookup.mayRemove(identifier) else {
                    return try await waitForDecision(sent, missing: identifier, failure)
                }
                let (row, successor) = (sent.row, try await successor(ofRow: sent.row))
                return try await commits.commit { try $0.changes.lose(row, replacedBy: successor) }
            }
            let ancestors = try await remoteLookup.unknown(above: item, for: request)
            try await commits.commit { try $0.changes.move(item, below: ancestors) }
        }
        guard parent != .rootContainer, parent != .trashContainer,
            try await remoteLookup.lookUp(parent, for: request) == nil
        else { return try await sendAgain(sent, failure) }
        if try await waitsForComparison(sent, missing: parent, failure) { return }
        if try await !remoteLookup.remove(missing: parent) {
            try await waitForDecision(sent, missing: parent, failure)
        }
    }

    /// The item that has the name of a lost one on the remote now. The provider may not have reported it yet, and it gets the policy, rank and
    /// tags of the lost one.
    private func successor(ofRow row: Int64) async throws -> FileProviderItem? {
        guard let lost = try replica.database.item(row: row), lost.trash == nil,
            let directory = lost.base.parent, let name = lost.base.name
        else { return nil }
        let marks = try replica.database.marks(of: lost)
        guard lost.policy != .inherited || marks.favoriteRank != nil || marks.tagData != nil else { return nil }
        return try await item(named: name, in: directory)
    }

    /// The remote has refused a change because its item or directory is missing, and a lookup has found both: it has caught up. The change
    /// is sent again soon, and has failed only when that happens several times in a row.
    private func sendAgain(_ sent: SentChange, _ failure: FileProviderError) async throws {
        // Of a new item in the root nothing was looked up.
        let isFound =
            sent.identifier != nil || ![.rootContainer, .trashContainer].contains(sent.item.parentItemIdentifier)
        let count = missed.noteFound(sent.item.itemIdentifier)
        guard isFound, sent.offer == nil, count <= Self.mostFindings else { return try await postpone(sent, failure) }
        let (row, time) = (sent.row, FileTimestamp.now.advanced(by: Self.pauseAfterFinding))
        try await commits.commit(changingNames: false) { try $0.answers.wait(row, until: time) }
    }

    /// Postpones a change until the user has decided what becomes of removals that are held, or until they are held no longer: a
    /// directory may be a disk that is not mounted on the server, and would hide what is made in its place.
    ///
    /// - Parameter missing: what the remote does not have: the item or its directory.
    private func waitForDecision(
        _ sent: SentChange, missing: ItemIdentifier, _ failure: FileProviderError
    ) async throws {
        guard let held = guardian.warning else { return try await postpone(sent, failure) }
        var what = "it"
        if missing != sent.identifier, missing != .rootContainer, let directory = try replica.database.item(missing) {
            what = "its directory '\(directory.name)'"
        }
        let reason =
            "the remote no longer has \(what), and removals are held; this change is kept, "
            + "and sent once you have decided: \(held)"
        try await postpone(sent, FileProviderError(.removalsAreHeld, reason))
        // What is held has changed meanwhile, so that nothing else has this tried again.
        if guardian.warning != held { try await commits.commit { try $0.answers.retryNow(sent.inode) } }
    }

    /// Where the provider does not report changes by itself, only a comparison of all directories tells whether another client
    /// has moved what is missing: the item counts as gone only after one that began later and ended well, or after a day. One that was
    /// refused because removals are held waits for a decision again: otherwise each attempt would lead to a comparison.
    ///
    /// - Parameter missing: what the remote does not have: the item or its directory.
    /// - Returns: whether the change waits.
    private func waitsForComparison(
        _ sent: SentChange, missing: ItemIdentifier, _ failure: FileProviderError
    ) async throws -> Bool {
        guard !calls.provider.features.changeFeed else { return false }
        if guardian.holdsRemovals,
            try replica.database.failure(of: sent.inode)?.code == FileProviderError.Code.removalsAreHeld.rawValue
        {
            try await waitForDecision(sent, missing: missing, failure)
            return true
        }
        let (since, isNew) = missed.note(sent.item.itemIdentifier)
        let begun = await feed.lastGoodRoundBegan
        // A comparison while an earlier attempt was in flight does not take in where the item is.
        let leftOut = replica.ordering.lastLeftOut(missing)
        if MissedItems.isGone(missedSince: since, lastGoodRoundBegan: begun, lastLeftOut: leftOut) {
            missed.forget(sent.item.itemIdentifier)
            return false
        }
        let waited = ContinuousClock.now - since
        if waited < Self.patienceForComparison {
            let pause = min(Self.longestPauseForComparison, max(Self.pauseForComparison, waited))
            let (row, time) = (sent.row, FileTimestamp.now.advanced(by: pause))
            try await commits.commit(changingNames: false) { try $0.answers.wait(row, until: time) }
        } else {
            try await postpone(
                sent,
                FileProviderError(
                    failure.code,
                    "\(failure.message), and whether it was moved is not known until all directories are compared"))
        }
        // A round that fails is repeated without being asked for. One that has left the item out is not.
        if isNew || (begun ?? since) > since { compareAll() }
        return true
    }
}
