import FileProvider
import Replica

/// Looks up items on the remote, and the directories above them that the replica does not know: an item that was
/// moved into such a directory would have no place.
struct RemoteLookup: Sendable {
    let context: SyncContext

    /// An item as it is on the remote now; nil when it is not there.
    func lookUp(
        _ identifier: ItemIdentifier, for request: FileProviderRequest, urgency: CallUrgency? = nil
    ) async throws(FileProviderError) -> FileProviderItem? {
        do throws(FileProviderError) {
            return try await context.calls.make(.item, for: request, urgency: urgency) {
                try await $0.item(for: identifier, request: request)
            }
        } catch {
            guard error.code == .noSuchItem else { throw error }
            return nil
        }
    }

    /// The directories above an item that are not known here, the uppermost first.
    func unknown(
        above item: FileProviderItem, for request: FileProviderRequest
    ) async throws -> [FileProviderItem] {
        var directories = UnknownDirectories(in: context.replica.database)
        return try await directories.find(above: item) { try await lookUp($0, for: request) }
    }

    /// Looks up an item and records what the remote has: its version and place, or that it was removed.
    func refresh(_ identifier: ItemIdentifier, for request: FileProviderRequest) async throws {
        let observation = context.replica.ordering.observe()
        let item = try await lookUp(identifier, for: request)
        try await record(item, of: identifier, observed: observation, for: request)
    }

    /// The most items in no directory that one round looks up.
    private static let mostUnplaced = 100

    /// Looks up items that are in no directory here, because the remote has moved them into one that was not known: no comparison
    /// shows where they are by now, or that they are gone.
    ///
    /// - Parameter row: the row number after which this begins.
    /// - Returns: the row number after which the next round goes on.
    /// - Throws: what concerns the whole domain.
    func refreshUnplaced(after row: Int64, for request: FileProviderRequest) async throws -> Int64 {
        let items = try context.replica.database.itemsWithoutDirectory(after: row, limit: Self.mostUnplaced)
        for item in items {
            do {
                try await refresh(item.identifier, for: request)
            } catch {
                let failure = ProviderCalls.failure(from: error)
                switch failure.code.reaction {
                case .latchDomain, .stop: throw failure
                case .retry: return item.id
                case .parkItem, .changeState, .giveUpAsking: continue
                }
            }
        }
        return items.count < Self.mostUnplaced ? 0 : items.last?.id ?? 0
    }

    /// Records attributes that came with an item's content. Another place or version is left to the changes that report it.
    func recordAttributes(of item: FileProviderItem, observed observation: Observation) async throws {
        guard let known = try context.replica.database.item(item.itemIdentifier),
            known.base.version != item.itemVersion,
            known.base.version.contentVersion == item.itemVersion.contentVersion,
            known.base.parent == item.parentItemIdentifier,
            known.base.name?.utf8.elementsEqual(item.filename.utf8) == true
        else { return }
        let request = FileProviderRequest(reason: .synchronization)
        try await record(item, of: item.itemIdentifier, observed: observation, for: request)
    }

    /// Records what the remote was observed to have, unless an operation on the item was answered since, or has not been answered yet:
    /// its answer is newer.
    ///
    /// - Parameter item: nil when the remote does not have it.
    func record(
        _ item: FileProviderItem?, of identifier: ItemIdentifier, observed observation: Observation,
        for request: FileProviderRequest
    ) async throws {
        let ordering = context.replica.ordering
        let deleted = item == nil ? [identifier] : []
        guard await ordering.settle(item.map { [$0] } ?? [], deleted: deleted, observation).all.isEmpty else { return }
        guard let item else {
            try await remove(missing: identifier, observed: observation)
            return
        }
        let ancestors = try await unknown(above: item, for: request)
        ordering.report([identifier])
        try await context.commits.commit { try $0.changes.move(item, below: ancestors, observed: observation) }
    }

    /// Removes an item that was looked up alone and is missing, with all below it, unless the remote as a whole is doubtful.
    ///
    /// - Returns: whether it could be removed.
    @discardableResult
    func remove(missing identifier: ItemIdentifier, observed observation: Observation? = nil) async throws -> Bool {
        guard try mayRemove(identifier) else { return false }
        context.replica.ordering.report([identifier])
        try await context.commits.commit { try $0.changes.removeIfKnown(identifier, observed: observation) }
        return true
    }

    /// Whether an item may be removed that was looked up alone and is missing. What another client has deleted from the trash
    /// may always be.
    func mayRemove(_ identifier: ItemIdentifier) throws -> Bool {
        let database = context.replica.database
        if try database.item(identifier)?.trash != nil { return true }
        let gone = try database.countVanishing([identifier])
        return try context.guardian.admitsOne(
            identifier, gone: gone, of: { try database.countKnown() }, isKnown: { try database.item($0) != nil })
    }
}

extension SyncPart {
    nonisolated var remoteLookup: RemoteLookup { RemoteLookup(context: context) }
}
