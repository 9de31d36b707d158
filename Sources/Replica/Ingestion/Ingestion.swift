import FileProvider
import Synchronization

/// Applies the provider's reports and answers to the mount: one call, one transaction.
package struct Ingestion {
    let transaction: RemoteTransaction

    package var listings: DirectoryListings { DirectoryListings(transaction: transaction) }
    package var changes: RemoteChanges { RemoteChanges(transaction: transaction) }
    package var placement: Placement { Placement(transaction: transaction) }
    package var removal: ItemRemoval { ItemRemoval(transaction: transaction) }
    package var versions: ContentVersions { ContentVersions(transaction: transaction) }
    package var answers: UploadAnswers { UploadAnswers(transaction: transaction) }
    package var conflicts: Conflicts { Conflicts(transaction: transaction) }
    package var refusals: Refusals { Refusals(transaction: transaction) }
    package var offers: OfferAnswers { OfferAnswers(transaction: transaction) }
}

extension Replica {
    /// Runs a batch of what the provider said in one transaction, and deletes the content files that it ends.
    ///
    /// - Parameter changingNames: false for a batch that changes neither names nor directories, or says so itself before
    ///   it does (``RemotePart/willChangeNames()``).
    /// - Parameter versionsMayRepeat: as the provider's features say.
    /// - Parameter kernel: is told what to forget after the commit, before a process can open a file that the batch has changed while it
    ///   was closed: the open would find the new version, and that the kernel has nothing of an earlier one. With nil the caller tells.
    /// - Returns: what is left to tell the kernel, or was told, and what was wrong with the batch.
    package func ingest<Value: Sendable>(
        open: any OpenInodes, changingNames: Bool = true, versionsMayRepeat: Bool = false,
        telling kernel: (any KernelCache)? = nil,
        _ body: @escaping @Sendable (Ingestion) throws -> Value
    ) async throws -> (Value, ReplicaEffects) {
        let (contents, ordering, hasByteNames) = (contents, ordering, ignoredNames.sendsByteNames)
        let lastSync = lastSync.withLock { $0 }
        let withdrawals = ContentWithdrawals(from: contents, of: database)
        return try await withdrawals.run {
            try await ClaimingOpenInodes.run(open) { [database] open -> (Value, ReplicaEffects) in
                let (value, effects): (Value, ReplicaEffects) = try await database.write(
                    async: changingNames ? .everything : .contents, undoing: TransactionUndo { withdrawals.begin() }
                ) { db, turn in
                    withdrawals.begin()
                    let transaction = RemoteTransaction(
                        db: db, open: open, contents: contents, withdrawals: withdrawals, turn: turn,
                        ordering: ordering, hasByteNames: hasByteNames, versionsMayRepeat: versionsMayRepeat,
                        lastSync: lastSync)
                    let value = try body(Ingestion(transaction: transaction))
                    return (value, try db.recordInvalidations(of: transaction.effects))
                }
                if !effects.invalidations.isEmpty { kernel?.forget(effects) }
                return (value, effects)
            }
        }
    }

    /// Remembers that something other than sending a change could not be done for an item.
    package func recordFailure(_ error: FileProviderError, of number: InodeNumber) async throws {
        try await database.write { db in
            // That says when the change is sent.
            if try db.waitsForRemovals(number) { return }
            try db.recordFailure(error, of: number, at: FileTimestamp.now)
        }
    }
}
