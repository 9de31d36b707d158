import FileProvider
import Replica

struct ChangeBatches: SyncPart {
    let context: SyncContext
    let request: FileProviderRequest

    /// Commits a batch. Items of which an operation was answered after the batch was requested are looked up again: the
    /// batch may be older than the answer. Items with an operation in flight are left as they are.
    ///
    /// - Parameters:
    ///   - vanished: the items that are gone, by this batch and those before it: they are not removed here.
    ///   - notesAnchor: whether the batches before it were taken in as a whole, so that its anchor may be noted.
    /// - Returns: whether that is so of this one as well.
    func takeIn(
        _ first: ChangeBatch, vanished: inout Set<ItemIdentifier>, notesAnchor: Bool, observed requested: Observation
    ) async throws -> Bool {
        var (batch, observation, isWhole) = (first, requested, notesAnchor)
        // One that is looked up and not found is gone again.
        vanished.subtract(first.updated.map(\.itemIdentifier))
        while true {
            // Begun before the question, so that no answer can come between the two.
            let next = replica.ordering.observe()
            let unsettled = await replica.ordering.settle(batch.updated, deleted: batch.deleted, observation)
            let inFlight = unsettled.inFlight
            if !inFlight.isEmpty {
                isWhole = false
                vanished.subtract(inFlight)
                batch.updated.removeAll { inFlight.contains($0.itemIdentifier) }
                batch.deleted.removeAll { inFlight.contains($0) }
            }
            var stale = unsettled.stale
            let others = stale.isEmpty ? [] : batch.updated.filter { !stale.contains($0.itemIdentifier) }
            if stale.isEmpty {
                vanished.subtract(batch.updated.map(\.itemIdentifier))
                vanished.formUnion(batch.deleted)
                batch.deleted = []
                stale = try await commit(batch, later: vanished, notesAnchor: isWhole, observed: observation)
                if stale.isEmpty { return isWhole }
            }
            batch.deleted.removeAll { stale.contains($0) }
            try await lookUpAgain(stale, in: &batch)
            batch.updated = others + batch.updated
            observation = next
        }
    }

    /// - Returns: the items that were acknowledged after the batch was requested: they were not taken in.
    private func commit(
        _ batch: ChangeBatch, later: Set<ItemIdentifier>, notesAnchor: Bool, observed observation: Observation
    ) async throws -> Set<ItemIdentifier> {
        var complete = batch
        var upcoming: [ItemIdentifier: FileProviderItem] = [:]
        for item in batch.updated { upcoming[item.itemIdentifier] = item }
        var directories = UnknownDirectories(in: replica.database, upcoming: upcoming)
        for item in batch.updated
        where try item.defect == nil && replica.database.item(item.itemIdentifier) != nil {
            let found = try await directories.find(above: item) { try await remoteLookup.lookUp($0, for: request) }
            complete.updated += found.filter { upcoming[$0.itemIdentifier] == nil }
        }
        replica.ordering.report(complete.updated.map(\.itemIdentifier) + later)
        let (extended, taken) = (complete, directories.found)
        return try await commits.commit { ingestion in
            try ingestion.changes.apply(
                extended, required: taken, later: later, notesAnchor: notesAnchor, observed: observation)
        }
    }

    /// Replaces a batch by the present state of some items on the remote. An item whose version in the batch is
    /// already known is left out.
    private func lookUpAgain(_ doubtful: Set<ItemIdentifier>, in batch: inout ChangeBatch) async throws {
        let said = batch.updated
        batch.updated = []
        for identifier in doubtful {
            let known = try replica.database.item(identifier)?.base.version
            if known != nil, said.first(where: { $0.itemIdentifier == identifier })?.itemVersion == known { continue }
            if let item = try await remoteLookup.lookUp(identifier, for: request) {
                batch.updated.append(item)
            } else {
                batch.deleted.append(identifier)
            }
        }
    }
}
