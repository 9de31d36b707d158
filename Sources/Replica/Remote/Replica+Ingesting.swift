import FileProvider
import GRDB

extension Replica {
    /// Runs a batch of what the provider said in one transaction, and removes the files that it made obsolete.
    ///
    /// - Parameter changingNames: false for a batch that changes neither names nor directories, or says so itself before
    ///   it does (``Ingestion/willChangeNames()``).
    /// - Returns: what is left to tell the kernel, and what was wrong with the batch.
    package func ingest<Value: Sendable>(
        open: any OpenInodes, changingNames: Bool = true,
        _ body: @escaping @Sendable (inout Ingestion) throws -> Value
    ) async throws -> (Value, ReplicaEffects) {
        let (contents, ordering, hasByteNames) = (contents, ordering, ignoredNames.sendsByteNames)
        let (value, effects) = try await database.write(async: changingNames ? .everything : .contents) { db, turn in
            var ingestion = Ingestion(
                db: db, open: open, now: .now, contents: contents, turn: turn, ordering: ordering,
                hasByteNames: hasByteNames)
            let value = try body(&ingestion)
            return (value, ingestion.effects)
        }
        try await removeObsoleteContents(effects)
        return (value, effects)
    }

    /// Remembers that something could not be done for an item.
    package func recordFailure(_ error: FileProviderError, of number: InodeNumber) async throws {
        try await database.write { db in try db.recordFailure(error, of: number, at: FileTimestamp.now) }
    }
}
