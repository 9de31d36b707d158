import FileProvider
import Replica

/// Warnings, and the reasons why nothing is sent.
extension SyncEngine {
    package var warnings: Warnings { context.warnings }

    /// The texts of the warnings. That of a conflict ends when its copy is removed or renamed, that of an item whose name another one has
    /// when it is gone, has its own name or is renamed here, that of a full disk when there is space, that of an upload, a download or an
    /// eviction that a caller has asked for when it is done or the item is removed, that of a deletion that the remote has refused when the
    /// item is removed, and that of what a directory leaves out when the directory is removed.
    package func currentWarnings() throws -> [String] {
        budget.withdrawWarningIfPossible()
        // In this order: a conflict that is found meanwhile keeps its warning.
        let reported = warnings.causes
        let hasConflicts = reported.contains { if case .conflict = $0 { true } else { false } }
        let copies = hasConflicts ? Set(try replica.database.conflictCopies().map(\.item.inode.number)) : []
        // Damage of the database may be what the warning is about: it stays then.
        for cause in reported {
            if (try? isOver(cause, conflictCopies: copies)) == true {
                warnings.succeeded(cause)
            } else if case .deletion(let identifier, _) = cause, let path = try? self.path(of: identifier) {
                warnings.moveDeletion(cause, to: path)
            }
        }
        return warnings.texts
    }

    private func path(of identifier: ItemIdentifier) throws -> String? {
        guard let item = try replica.database.item(identifier) else { return nil }
        return try replica.database.path(of: item.inode.number, isForUser: true)?.joined(separator: "/")
    }

    /// Whether the cause of a warning has ended. Of the other causes that is reported when it happens.
    private func isOver(_ cause: Warnings.Cause, conflictCopies: Set<InodeNumber>) throws -> Bool {
        let database = replica.database
        switch cause {
        case .conflict(let number): return !conflictCopies.contains(number)
        case .decoratedName(let identifier): return try database.item(identifier)?.isDecorated != true
        case .upload(let number): return try database.firstPending(below: number, since: .distantFuture) == nil
        case .download(let number): return try database.item(ofInode: number).map { try database.isHere($0) } ?? true
        case .eviction(let number):
            return try database.item(ofInode: number).map { $0.inode.content == .dataless } ?? true
        case .deletion(let identifier, let directory):
            guard try database.item(identifier) == nil else { return false }
            // What the remote has there may not be taken in yet.
            return try database.item(directory).map { try !database.isToBeCompared($0.inode.number) } ?? true
        case .omissions(let number): return try database.item(ofInode: number) == nil
        case .sending, .keepingDownloaded, .localContent, .freeSpace, .reimport, .changes, .listing, .comparison,
            .content:
            return false
        }
    }

    /// The warning about removals on the remote that are held here; nil when none are.
    package var heldRemovals: String? { context.guardian.warning }

    /// The warning about changes on the remote that cannot be taken in; nil when they can.
    package var failureOfChanges: String? { warnings.text(of: .changes) }

    /// Why nothing is sent at present: the domain is read-only, the remote is not asked, or nearly all of it is missing.
    package var obstacleToSending: FileProviderError? {
        if isReadOnly { return ProviderCalls.readOnlyRefusal }
        return connection.failure ?? refusalWhileHeld
    }

    /// Why nothing is sent while nearly all is missing on the remote; nil at all other times.
    var refusalWhileHeld: FileProviderError? {
        guard context.holdsChanges else { return nil }
        return FileProviderError(.removalsAreHeld, context.guardian.warning ?? "nearly all is missing on the remote")
    }
}
