import FileProvider
import Replica

/// Brings the remote's trash in: what lies there, and what does not any more.
struct TrashListing: SyncPart {
    let context: SyncContext

    /// Takes in what is in the remote's trash, where there is one.
    ///
    /// - Returns: what is there, and whether all of it was taken in, which is not so of items with an operation in flight; nil when that
    ///   could not be found out.
    /// - Throws: what concerns the whole domain.
    func takeIn(request: FileProviderRequest) async throws -> (listed: Set<ItemIdentifier>, isWhole: Bool)? {
        guard calls.provider.features.trash else { return nil }
        do {
            return try await list(request: request)
        } catch let error as FileProviderError {
            try report(error)
            return nil
        }
    }

    /// Sees to what was in the trash and is not any more, once all else was compared: what has not come up anywhere is
    /// looked up before it is believed gone.
    ///
    /// - Throws: what concerns the whole domain.
    func settle(_ listed: Set<ItemIdentifier>, request: FileProviderRequest) async throws {
        do {
            for identifier in try replica.database.remoteItems.trashedItems(otherThan: listed) {
                try await remoteLookup.refresh(identifier, for: request)
            }
        } catch let error as FileProviderError {
            try report(error)
        }
    }

    private func report(_ error: FileProviderError) throws {
        switch error.code.reaction {
        case .latchDomain, .stop: throw error
        case .parkItem, .changeState, .giveUpAsking, .retry:
            warnings.report("the remote's trash cannot be compared: \(error)")
        }
    }

    private func list(
        request: FileProviderRequest
    ) async throws -> (listed: Set<ItemIdentifier>, isWhole: Bool) {
        let ordering = replica.ordering
        let observation = ordering.observe()
        var listed: Set<ItemIdentifier> = []
        var isWhole = true
        try await calls.enumerate(.trashContainer, for: request, wasSeen: { listed.contains($0) }) { found in
            let trashed = found.filter(\.isTrashed)
            listed.formUnion(trashed.map(\.itemIdentifier))
            let inFlight = await ordering.settle(trashed, observation).inFlight
            if !inFlight.isEmpty { isWhole = false }
            let items = trashed.filter { !inFlight.contains($0.itemIdentifier) }
            ordering.report(items.map(\.itemIdentifier))
            try await commits.commit { try $0.changes.placeTrashed(items) { ordering.isStale($0, observation) } }
            return true
        }
        return (listed, isWhole)
    }
}
