import FileProvider
import GRDB
import SystemPackage

/// A writing transaction of the replica, with the effects that are left for after its commit.
class ReplicaTransaction {
    let db: Database
    let open: any OpenInodes
    let contents: ContentStore
    let now: FileTimestamp
    /// Nil for a transaction that ends no generation of content.
    let withdrawals: ContentWithdrawals?
    /// What the kernel and the user are told after the commit.
    var effects = ReplicaEffects()

    init(
        db: Database, open: any OpenInodes, contents: ContentStore, withdrawals: ContentWithdrawals?,
        now: FileTimestamp = .now
    ) {
        self.withdrawals = withdrawals
        self.db = db
        self.open = open
        self.contents = contents
        self.now = now
    }
}

/// The changes of one subject within a transaction.
protocol TransactionPart {
    associatedtype Transaction: ReplicaTransaction
    var transaction: Transaction { get }
}

extension TransactionPart {
    var db: Database { transaction.db }
    var open: any OpenInodes { transaction.open }
    var contents: ContentStore { transaction.contents }
    var now: FileTimestamp { transaction.now }

    func tellKernel(_ invalidations: [KernelInvalidation]) { transaction.effects.invalidations += invalidations }

    /// Makes a file dataless, and withdraws its content file.
    func withdrawContent(of inode: InodeRecord) throws {
        // A file that stays is replaced by that of the next generation.
        _ = try withdrawFile(of: inode)
        try db.dropContent(of: inode.number)
    }

    /// Withdraws a content file that another takes the place of. One that cannot be moved, on a full disk, is replaced where
    /// it is.
    func withdrawReplacedContent(of inode: InodeRecord) {
        try? transaction.withdrawals?.withdraw(inode.number, generation: inode.contentGeneration)
    }

    /// Deletes an inode that has no name and is not in use, with its content. One whose content file cannot be withdrawn
    /// stays until the next start.
    func deleteNameless(_ inode: InodeRecord) throws {
        guard try db.hasContentFile(inode.number) else {
            try db.deleteNameless(inode.number)
            return
        }
        var isMoved = true
        do {
            guard try withdrawFile(of: inode, isGone: true, orThrow: .noSpace) else { return }
        } catch Errno.noSpace {
            isMoved = false
        }
        let isDeleted = try db.deleteNameless(inode.number)
        if isMoved, !isDeleted { transaction.withdrawals?.putBack(inode.number) }
        if !isMoved, isDeleted { transaction.withdrawals?.deleteInPlace(inode.number) }
    }

    /// - Returns: false when it cannot be done; the user is told.
    private func withdrawFile(
        of inode: InodeRecord, isGone: Bool = false, orThrow exception: Errno? = nil
    ) throws -> Bool {
        guard let withdrawals = transaction.withdrawals else {
            throw ReplicaDefect("a transaction that cannot end content ends that of inode \(inode.number)")
        }
        do throws(Errno) {
            try withdrawals.withdraw(inode.number, generation: inode.contentGeneration, isGone: isGone)
            return true
        } catch {
            if error == exception { throw error }
            report("the content file of inode \(inode.number) is of no use and cannot be removed: \(error)")
            return false
        }
    }

    /// Tells the user.
    func report(_ text: String) { transaction.effects.defects.append(text) }

    /// A conflict copy was made.
    ///
    /// - Parameter text: the warning, which ends when the copy is removed or renamed.
    func reportConflict(_ copy: InodeNumber, _ text: String) {
        transaction.effects.conflictCopies.append((copy, text))
        noteSomethingToSend()
    }

    /// An item of the remote's gets another name than its own, because another item has that.
    ///
    /// - Parameter text: the warning, in the place of an earlier one; it ends when the item is gone or has another name
    ///   (``ItemRecord/isDecorated``).
    func reportDecoration(of identifier: ItemIdentifier, _ text: String) {
        transaction.effects.decoratedItems.append((identifier, text))
    }

    /// Something is due, or will be earlier than before: the uploads plan again after the transaction.
    func noteSomethingToSend() { transaction.effects.isSomethingToSend = true }

    func reportEnd(of text: String) { transaction.effects.endedDefects.append(text) }
}
