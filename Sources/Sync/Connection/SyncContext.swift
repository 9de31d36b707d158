import Replica

/// What every part of the engine uses.
struct SyncContext: Sendable {
    let replica: Replica
    let open: any OpenInodes
    let calls: ProviderCalls
    let commits: Commits
    let guardian: DeletionGuard
    let warnings: Warnings
    let events: SyncEvents

    /// Whether nothing may be sent now. Not while items are reimported: that finds out whether they are there under other
    /// identifiers.
    var holdsChanges: Bool { guardian.holdsChanges && !isReimporting }

    var isReimporting: Bool { (try? replica.database.reimports.requests().isEmpty) == false }
}

protocol SyncPart: Sendable {
    nonisolated var context: SyncContext { get }
}

extension SyncPart {
    nonisolated var replica: Replica { context.replica }
    nonisolated var open: any OpenInodes { context.open }
    nonisolated var calls: ProviderCalls { context.calls }
    nonisolated var connection: Connection { context.calls.connection }
    nonisolated var commits: Commits { context.commits }
    nonisolated var guardian: DeletionGuard { context.guardian }
    nonisolated var warnings: Warnings { context.warnings }
    nonisolated var events: SyncEvents { context.events }

    /// The name that an inode has here; empty for none.
    nonisolated func name(of number: InodeNumber) -> String {
        (try? replica.database.item(ofInode: number))?.name ?? ""
    }

    /// The path from the mount's root of what is to be deleted, for a message.
    nonisolated func path(of deletion: PendingDeletion) -> String {
        ((try? replica.database.path(of: deletion)) ?? [deletion.name]).joined(separator: "/")
    }
}
