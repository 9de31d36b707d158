import FileProvider
import Replica

/// Takes in what a provider with a change feed reports since the last anchor.
struct AnchoredChanges: SyncPart {
    let context: SyncContext
    let request: FileProviderRequest
    let missing: MissingItems

    private static let batchSize = 1000

    enum Outcome {
        /// The provider cannot tell what has changed since the last anchor, or there is none.
        case unknown
        case all
        /// More is coming, and what came before the time was over is recorded.
        case unfinished
        /// All but items with an operation in flight: the same has to be asked for again after the answer.
        case setAside
        /// The provider says that more is coming and makes no progress. What came before counts.
        case stalled(FileProviderError)
    }

    /// From where a round goes on.
    private struct Start {
        let anchor: SyncAnchor
        /// What was reported as deleted before the anchor, and is held.
        let held: Set<ItemIdentifier>
    }

    /// Removals are applied when all of it is known: an item that moved outlives the directory it moved out of, and ``DeletionGuard``
    /// sees all removals at once, also those that were held before.
    ///
    /// - Parameter longest: after this time it ends although the provider says that more changes are coming: a busy remote may report
    ///   without end.
    func takeIn(by enumerator: any FileProviderEnumerator, for longest: Duration) async throws -> Outcome {
        let begun = ContinuousClock.now
        guard var anchor = try replica.database.bytes(of: .syncAnchor).map(SyncAnchor.init(rawValue:)) else {
            return .unknown
        }
        let start = try Start(anchor: anchor, held: replica.database.heldRemovals())
        let batches = ChangeBatches(context: context, request: request)
        var vanished = start.held
        /// What was held, and of which this round has reported nothing.
        var unreported = start.held
        var check = CycleCheck(from: anchor)
        var isWhole = true
        while true {
            let last = anchor
            let observation = replica.ordering.observe()
            let batch: ChangeBatch
            do {
                batch = try await calls.make(.enumerateChanges, for: request) { _ in
                    try await enumerator.enumerateChanges(from: last, suggestedBatchSize: Self.batchSize)
                }
            } catch {
                guard error.code == .syncAnchorExpired else { throw error }
                return .unknown
            }
            guard isShortEnough(batch.anchor) else { return .unknown }
            let count = batch.updated.count + batch.deleted.count
            if count > 100 * Self.batchSize { warnings.report("the provider gave a batch of \(count) changes") }
            if count > 0 || batch.anchor != anchor {
                isWhole = try await batches.takeIn(
                    batch, vanished: &vanished, notesAnchor: isWhole, observed: observation)
                unreported.subtract(batch.deleted)
                unreported.formIntersection(vanished)
            }
            anchor = batch.anchor
            let end = isWhole ? anchor : nil
            guard batch.moreComing else {
                let isAll = try await remove(vanished, unreported: unreported, since: start, reportedUpTo: end)
                return isWhole && isAll ? .all : .setAside
            }
            do throws(FileProviderError) {
                try check.check(anchor, isEmpty: count == 0, of: "the changes after a sync anchor")
            } catch {
                _ = try await remove(vanished, unreported: unreported, since: start, reportedUpTo: end)
                return .stalled(error)
            }
            if .now - begun >= longest {
                let isAll = try await remove(vanished, unreported: unreported, since: start, reportedUpTo: end)
                return isWhole && isAll ? .unfinished : .setAside
            }
        }
    }

    /// Removes what the provider reports as deleted, and notes how far it has reported. While removals are held, they are noted with
    /// that: the next round goes on from there, so that other changes arrive, and no change is asked for twice.
    ///
    /// - Parameters:
    ///   - unreported: what was held before, and of which this round has reported nothing.
    ///   - anchor: nil where something before it was not taken in.
    /// - Returns: false where an operation on an item that was held is in flight: it is decided about after the answer.
    private func remove(
        _ vanished: Set<ItemIdentifier>, unreported: Set<ItemIdentifier>, since start: Start,
        reportedUpTo anchor: SyncAnchor?
    ) async throws -> Bool {
        let inFlight = await replica.ordering.settle(
            [], deleted: Array(unreported), replica.ordering.observe()
        ).inFlight
        // An item of which a change was answered since is on the remote. An operation that has failed says nothing of that.
        let answered = try unreported.subtracting(replica.database.heldRemovals())
        let gone = vanished.subtracting(inFlight).subtracting(answered)
        let isRemoved = try await missing.remove(gone)
        let held = isRemoved ? inFlight : gone.union(inFlight)
        if let anchor, anchor != start.anchor || held != start.held {
            try await commits.commit { try $0.changes.noteAnchor(anchor, holding: held, heldBefore: unreported) }
        }
        return inFlight.isEmpty
    }

    /// Whether an anchor can be stored.
    func isShortEnough(_ anchor: SyncAnchor) -> Bool {
        if anchor.rawValue.count <= SyncAnchor.maximumLength { return true }
        warnings.report("the provider gave a sync anchor of \(anchor.rawValue.count) bytes")
        return false
    }
}
