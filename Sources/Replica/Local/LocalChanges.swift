import GRDB
import Syscalls
import SystemPackage

/// What processes and users of the API change on the mount: one call, one transaction, and in the same transaction what the
/// remote has to be told.
///
/// The kernel knows what it requested itself; the effects name only what it does not know.
package struct LocalChanges {
    let transaction: LocalTransaction

    package var names: NameChanges { NameChanges(transaction: transaction) }
    package var contents: ContentChanges { ContentChanges(transaction: transaction) }
    package var attributes: MetadataChanges { MetadataChanges(transaction: transaction) }
    package var trash: TrashMoves { TrashMoves(transaction: transaction) }
    package var items: ItemActions { ItemActions(transaction: transaction) }

    /// Carries a request out and records its result, or returns the result that is recorded for it.
    func carryOut<Value>(
        _ request: RequestNumber?, _ result: RecordedResult<Value>?, _ body: (LocalChanges) throws -> Value
    ) throws -> Value {
        let db = transaction.db
        guard let request, let result else { return try body(self) }
        if request.isResent, let inode = try db.recordedAnswer(to: request),
            let value = try result.restore(transaction, inode)
        {
            return value
        }
        let value = try body(self)
        try db.recordAnswer(to: request, inode: result.inode(value))
        return value
    }
}

extension Replica {
    /// Makes a local change, in one transaction on the calling thread.
    ///
    /// - Parameters:
    ///   - changingNames: false where names and directories stay as they are.
    ///   - request: the kernel's request that is carried out. One that the kernel sends again and that was committed before
    ///     gets its recorded result, and `body` is not run.
    ///   - result: how the result is recorded and restored; nil: it is not recorded.
    ///   - rights: those of the caller, where the kernel has not checked them.
    /// - Returns: what `body` returns, and what is left to tell the kernel.
    /// - Throws: ``LocalObstacle``; what the database says.
    package func change<Value>(
        open: any OpenInodes, changingNames: Bool = true, request: RequestNumber? = nil,
        result: RecordedResult<Value>? = nil, rights: CallerRights? = nil, _ body: (LocalChanges) throws -> Value
    ) throws -> (Value, ReplicaEffects) {
        do {
            return try attempt(open: open, changingNames, rights) { try $0.carryOut(request, result, body) }
        } catch is NamesNeeded {
            return try attempt(open: open, true, rights) { try $0.carryOut(request, result, body) }
        }
    }

    private func attempt<Value>(
        open: any OpenInodes, _ changingNames: Bool, _ rights: CallerRights?, _ body: (LocalChanges) throws -> Value
    ) throws -> (Value, ReplicaEffects) {
        var opened: FileDescriptor?
        var isDone = false
        // The file itself stays: another inode may have its number by now, and creates the file anew.
        defer { if !isDone { try? opened?.close() } }
        do {
            let withdrawals = ContentWithdrawals(from: contents, of: database)
            let (value, effects) = try withdrawals.run {
                try database.change(
                    changingNames ? .everything : .contents, undoing: TransactionUndo { withdrawals.begin() }
                ) { db in
                    // On a full disk it is run twice.
                    withdrawals.begin()
                    try? opened?.close()
                    opened = nil
                    let transaction = LocalTransaction(
                        db: db, open: open, contents: contents, withdrawals: withdrawals, ignored: ignoredNames,
                        mayChangeNames: changingNames, rights: rights,
                        hasRoom: { [reserve = database.reserve] in reserve.hasRoom })
                    defer { opened = transaction.opened }
                    let value = try body(LocalChanges(transaction: transaction))
                    return (value, try db.recordInvalidations(of: transaction.effects))
                }
            }
            isDone = true
            return (value, effects)
        } catch let error as Errno {
            throw LocalObstacle.refused(error)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_FULL {
            throw LocalObstacle.refused(.noSpace)
        }
    }

    /// Puts all that was committed up to now on the disk. (fdatasync)
    package func synchronize() throws { try database.synchronize() }
}
