import FileProvider

/// The effects that a transaction leaves to be done after the commit.
package struct ReplicaEffects: Sendable {
    /// The entries that the kernel has to drop from its caches, in order.
    package var invalidations: [KernelInvalidation] = []
    /// The last of the invalidations that the transaction has recorded, for ``ReplicaDatabase/forgetInvalidations(upTo:)``; 0 if it
    /// has recorded none.
    package var lastInvalidation: Int64 = 0
    /// What the user should know: what the provider gave and cannot be shown, what was lost. Each is a sentence that can stand
    /// alone.
    package var defects: [String] = []
    /// Defects of earlier transactions that are over.
    package var endedDefects: [String] = []
    /// The conflict copies that were made, each with what happened.
    package var conflictCopies: [(number: InodeNumber, text: String)] = []
    /// The items that are shown under another name than their own, because another item has that, each with what happened.
    package var decoratedItems: [(identifier: ItemIdentifier, text: String)] = []
    /// Files that the remote may have written without another content version.
    package var doubtfulContents: [DoubtfulContent] = []

    /// Whether what the remote has told made something due, at once or earlier than before: the uploads have to plan again.
    package var isSomethingToSend = false

    package init() {}

    /// The messages for the user.
    var texts: [String] { defects + conflictCopies.map(\.text) + decoratedItems.map(\.text) }

    package mutating func append(_ other: ReplicaEffects) {
        invalidations += other.invalidations
        lastInvalidation = max(lastInvalidation, other.lastInvalidation)
        defects += other.defects
        endedDefects += other.endedDefects
        conflictCopies += other.conflictCopies
        decoratedItems += other.decoratedItems
        doubtfulContents += other.doubtfulContents
        isSomethingToSend = isSomethingToSend || other.isSomethingToSend
    }
}

/// A file whose content the remote may have written without another content version. Of several names of one inode each is a file of
/// its own there.
package struct DoubtfulContent: Hashable, Sendable {
    package var row: Int64
    package var inode: InodeNumber

    package init(row: Int64, inode: InodeNumber) {
        self.row = row
        self.inode = inode
    }
}

/// Something that the kernel must forget.
package enum KernelInvalidation: Hashable, Sendable {
    /// A name in a directory: it is new, gone, or means another inode now.
    case entry(parent: InodeNumber, name: String)
    /// A name that a file had and has no more. The kernel lets the file go; after ``entry(parent:name:)`` it would keep it until the
    /// name is looked up, and with it the content of one that was removed elsewhere.
    case departedFile(parent: InodeNumber, name: String)
    case deletion(parent: InodeNumber, child: InodeNumber, name: String)
    case attributes(InodeNumber)
    /// The attributes and the cached bytes, or cached listing, of an inode.
    case contents(InodeNumber)
}

extension KernelInvalidation {
    /// A name that an item had and has no more. A directory in use stays connected, so that no process loses its working directory.
    static func departure(of item: ItemRecord, from parent: InodeNumber) -> KernelInvalidation {
        item.inode.kind == .directory
            ? .entry(parent: parent, name: item.name) : .departedFile(parent: parent, name: item.name)
    }
}

package protocol KernelCache: Sendable {
    /// Hands the invalidations of effects to a queue and returns at once.
    func forget(_ effects: ReplicaEffects)
}

package protocol OpenInodes: Sendable {
    /// Whether a process has the inode open. Callable from any thread, also inside a transaction.
    func isOpen(_ number: InodeNumber) -> Bool

    /// Whether a process that has the inode open may have seen content of the version that it opened. Callable as
    /// ``isOpen(_:)``.
    func isOpenAndUsed(_ number: InodeNumber) -> Bool

    /// Whether a process has the inode open for writing, so that its content file may change at any time without a request to
    /// the daemon. Callable as ``isOpen(_:)``.
    func isOpenForWriting(_ number: InodeNumber) -> Bool

    /// Whether an inode that has lost its last name has to stay, because a process has it open or the kernel may still use
    /// it. If so, the caller of ``ContentVersions/settle(_:)`` is told when that has ended. Callable as ``isOpen(_:)``.
    func keepsNameless(_ number: InodeNumber) -> Bool

    /// A transaction is about to ask whether the inode is open, and relies on the answer until it has ended: a process that opens
    /// the inode meanwhile must not take what it finds in the database, because the transaction may be removing it.
    func claim(_ number: InodeNumber)

    /// A transaction has ended, whether with success or not.
    ///
    /// - Parameter numbers: those that it has claimed, each as often as it did.
    func endClaims(_ numbers: [InodeNumber])

    /// Calls a closure, once, when no transaction has claimed the inode: at once or from another thread.
    func whenUnclaimed(_ number: InodeNumber, _ body: @escaping @Sendable () -> Void)
}

extension OpenInodes {
    package func claim(_ number: InodeNumber) {}

    package func endClaims(_ numbers: [InodeNumber]) {}

    package func whenUnclaimed(_ number: InodeNumber, _ body: @escaping @Sendable () -> Void) { body() }

    package func isOpenAndUsed(_ number: InodeNumber) -> Bool { isOpen(number) }

    package func isOpenForWriting(_ number: InodeNumber) -> Bool { isOpen(number) }

    package func keepsNameless(_ number: InodeNumber) -> Bool { isOpen(number) }
}

/// No inode is open: for use before the replica is mounted.
package struct NothingOpen: OpenInodes {
    package init() {}

    package func isOpen(_ number: InodeNumber) -> Bool { false }
}
