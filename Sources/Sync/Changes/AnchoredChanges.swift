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

    /// Removals are applied when all of it is known: an item that moved outlives the directory it moved out of, and ``DeletionGuard``
    /// sees all removals at once.
    ///
    /// - Parameter longest: after this time it ends although the provider says that more changes are coming: a busy remote may report
    ///   without end.
    func takeIn(by enumerator: any FileProviderEnumerator, for longest: Duration) async throws -> Outcome {
        guard var anchor = try replica.database.bytes(of: .syncAnchor).map(SyncAnchor.init(rawValue:)) else {
            return .unknown
        }
        let batches = ChangeBatches(context: context, request: request)
        var vanished: Set<ItemIdentifier> = []
        var check = CycleCheck(from: anchor)
        var isWhole = true
        let begun = ContinuousClock.now
        while true {
            let start = anchor
            let observation = replica.ordering.observe()
            let batch: ChangeBatch
            do {
                batch = try await calls.make(.enumerateChanges, for: request) { _ in
                    try await enumerator.enumerateChanges(from: start, suggestedBatchSize: Self.batchSize)
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
            }
            anchor = batch.anchor
            guard batch.moreComing else { break }
            do throws(FileProviderError) {
                try check.check(anchor, isEmpty: count == 0, of: "the changes after a sync anchor")
            } catch {
                _ = try await remove(vanished, reportedUpTo: isWhole ? anchor : nil)
                return .stalled(error)
            }
            if .now - begun >= longest {
                // While removals are held, the anchor stays: the next round asks for the same.
                let isRemoved = try await remove(vanished, reportedUpTo: isWhole ? anchor : nil)
                return isWhole ? (isRemoved ? .unfinished : .all) : .setAside
            }
        }
        _ = try await remove(vanished, reportedUpTo: isWhole ? anchor : nil)
        return isWhole ? .all : .setAside
    }

    /// Removes what the provider reports as deleted, and notes how far it has reported.
    ///
    /// - Parameter anchor: nil where something before it was not taken in.
    /// - Returns: whether it was removed; see ``MissingItems/remove(_:except:knownUpTo:)``.
    private func remove(_ vanished: Set<ItemIdentifier>, reportedUpTo anchor: SyncAnchor?) async throws -> Bool {
        guard try await missing.remove(vanished) else { return false }
        // Otherwise the last batch has noted it.
        if let anchor, !vanished.isEmpty { try await commits.commit { try $0.changes.noteAnchor(anchor) } }
        return true
    }

    /// Whether an anchor can be stored.
    func isShortEnough(_ anchor: SyncAnchor) -> Bool {
        if anchor.rawValue.count <= SyncAnchor.maximumLength { return true }
        warnings.report("the provider gave a sync anchor of \(anchor.rawValue.count) bytes")
        return false
    }
}
