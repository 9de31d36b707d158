import FileProvider
import GRDB

/// The transaction that takes in what the provider reports or answers: the parts of ``Ingestion`` share it.
final class RemoteTransaction: ReplicaTransaction {
    /// Whether the provider may give names that are not UTF-8.
    let hasByteNames: Bool
    /// Whether the provider may give two contents one version.
    let versionsMayRepeat: Bool
    /// Items that are still to come in this batch: they make room for those that come before them.
    var upcoming: Set<ItemIdentifier> = []
    /// The listing that this batch belongs to: items of its directory that it has not confirmed make room.
    var listing: Int64?
    /// Items of which something newer than the listing is known: they keep their names although it has not confirmed them.
    var newer: Set<ItemIdentifier> = []
    /// Whether that listing is of a directory whose names are not here yet.
    var isFirstListing = false
    /// Whether an item of the remote's may be one that is to be deleted, or was sent without an answer: false spares three queries for
    /// each new item of a listing.
    var mayBeDeletedOrSent = true
    /// As ``Replica/lastSync``.
    let lastSync: FileTimestamp?
    fileprivate let turn: WriteTurn
    fileprivate let ordering: RemoteOrdering

    /// - Parameters:
    ///   - turn: the writer's.
    ///   - ordering: told of the acknowledgements that are recorded.
    ///   - hasByteNames: as the provider's features say.
    ///   - versionsMayRepeat: as the provider's features say.
    init(
        db: Database, open: any OpenInodes, contents: ContentStore, withdrawals: ContentWithdrawals, turn: WriteTurn,
        ordering: RemoteOrdering, hasByteNames: Bool, versionsMayRepeat: Bool, lastSync: FileTimestamp?
    ) {
        self.lastSync = lastSync
        self.turn = turn
        self.ordering = ordering
        self.hasByteNames = hasByteNames
        self.versionsMayRepeat = versionsMayRepeat
        super.init(db: db, open: open, contents: contents, withdrawals: withdrawals)
    }
}

/// One subject of the provider's reports and answers, within a transaction.
protocol RemotePart: TransactionPart where Transaction == RemoteTransaction {}

extension RemotePart {
    /// The statements that follow change names or directories: files that are being created are written before them.
    func willChangeNames() throws { try transaction.turn.claim() }

    /// As ``Database/retryItem(_:)``, because of news: nothing else wakes the uploads before the time that it waited for.
    func retryItem(_ row: Int64) throws {
        try db.retryItem(row)
        noteSomethingToSend()
    }

    /// As ``Database/retryFailed(in:)``, because of news: the remote may permit now what is changed in the directory.
    func retryFailed(in directory: ItemRecord) throws {
        if try db.retryFailed(in: directory) { noteSomethingToSend() }
    }

    /// As ``Database/noteWhereItIs(_:at:)``, because of news. The item itself may be due now, or another that waited for its name or
    /// for the directory.
    func noteWhereItIs(_ row: Int64) throws {
        try db.noteWhereItIs(row, at: now)
        noteSomethingToSend()
    }

    /// The answer to a change of an item is recorded: observations that were requested before do not undo it.
    func noteAnswer(of identifier: ItemIdentifier) throws {
        transaction.ordering.acknowledge(identifier)
        if try mayHoldRemovals() { try db.forgetHeldRemoval(of: identifier) }
    }

    /// Holds these removals and no others. (``Database/setHeldRemovals(_:heldBefore:)``)
    func setHeldRemovals(_ identifiers: Set<ItemIdentifier>, heldBefore before: Set<ItemIdentifier>) throws {
        guard try mayHoldRemovals() || !identifiers.isEmpty else { return }
        transaction.ordering.noteHeldRemovals()
        try db.setHeldRemovals(identifiers, heldBefore: before)
    }

    private func mayHoldRemovals() throws -> Bool {
        try transaction.ordering.mayHoldRemovals { try !db.heldRemovals().isEmpty }
    }

    /// Whether an acknowledgement of an item is newer than an observation; for a listing, also a report.
    func isStale(_ identifier: ItemIdentifier, _ observation: Observation, isListing: Bool = false) -> Bool {
        transaction.ordering.isStale(identifier, observation, isListing: isListing)
    }

    /// Whether anything newer than a listing may be known.
    func hasNews(since observation: Observation) -> Bool { transaction.ordering.hasNews(since: observation) }
}
