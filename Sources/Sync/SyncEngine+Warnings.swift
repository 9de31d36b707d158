import FileProvider
import Replica

/// Warnings, and the reasons why nothing is sent.
extension SyncEngine {
    package var warnings: Warnings { context.warnings }

    /// The texts of the warnings. That of a conflict ends when its copy is removed or renamed, that of a full disk when
    /// there is space.
    package func currentWarnings() throws -> [String] {
        budget.withdrawWarningIfPossible()
        // In this order: a conflict that is found meanwhile keeps its warning.
        let reported = warnings.conflictCopies
        if !reported.isEmpty {
            let copies = Set(try replica.database.conflictCopies().map(\.item.inode.number))
            for number in reported where !copies.contains(number) { warnings.succeeded(.conflict(number)) }
        }
        return warnings.texts
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
