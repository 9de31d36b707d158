import FileProvider
import Replica

/// Brings the remote's trash in: what lies there, and what does not any more.
struct TrashListing: Sendable {
    let replica: Replica
    let calls: ProviderCalls
    let listings: Listings
    let commits: Commits
    let warnings: Warnings

    /// Takes in what is in the remote's trash, where there is one.
    ///
    /// - Returns: what is there; nil when that could not be found out.
    /// - Throws: what concerns the whole domain.
    func takeIn(request: FileProviderRequest) async throws -> Set<ItemIdentifier>? {
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
            for identifier in try replica.database.itemsTrashedOnRemote(otherThan: listed) {
                try await lookUp(identifier, request: request)
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

    private func list(request: FileProviderRequest) async throws -> Set<ItemIdentifier> {
        let ordering = replica.ordering
        let observation = ordering.observe()
        let enumerator = try await calls.make(for: request) {
            try $0.enumerator(for: .trashContainer, request: request)
        }
        defer { enumerator.invalidate() }
        var listed: Set<ItemIdentifier> = []
        var page = FileProviderPage.initial
        var check = PageValidator(of: .trashContainer)
        while true {
            try Task.checkCancellation()
            let position = page
            let result = try await calls.make(for: request) { _ in
                try await enumerator.enumerateItems(startingAt: position, suggestedPageSize: PageValidator.pageSize)
            }
            try check.take(result) { listed.contains($0) }
            let items = result.items.filter(\.isTrashed)
            listed.formUnion(items.map(\.itemIdentifier))
            _ = await ordering.settle(items, observation)
            replica.ordering.report(items.map(\.itemIdentifier))
            try await commits.commit { try $0.trash(items) { ordering.isStale($0, observation) } }
            guard let next = result.nextPage else { return listed }
            page = next
        }
    }

    private func lookUp(_ identifier: ItemIdentifier, request: FileProviderRequest) async throws {
        do {
            let item = try await calls.make(for: request) { try await $0.item(for: identifier, request: request) }
            try await commits.commit { try $0.move(item) }
        } catch let error as FileProviderError {
            guard error.code == .noSuchItem else { throw error }
            try await commits.commit { try $0.removeIfKnown(identifier) }
        }
    }
}
