import FileProvider
import GRDB

/// A writing transaction of the replica, with the effects that are left for after its commit.
class ReplicaTransaction {
    let db: Database
    let open: any OpenInodes
    let contents: ContentStore
    let now: FileTimestamp
    /// What the kernel and the user are told after the commit.
    var effects = ReplicaEffects()

    init(db: Database, open: any OpenInodes, contents: ContentStore, now: FileTimestamp = .now) {
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

    /// Tells the user.
    func report(_ text: String) { transaction.effects.defects.append(text) }
}
