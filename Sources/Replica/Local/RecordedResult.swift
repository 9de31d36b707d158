import SystemPackage

/// How the result of a change is recorded for its request, and restored when the kernel sends the request again.
package struct RecordedResult<Value> {
    let inode: (Value) -> InodeNumber?
    let restore: (LocalTransaction, InodeNumber) throws -> Value?

    /// - Parameters:
    ///   - inode: the inode that is recorded with the request; nil for none.
    ///   - restore: returns the result from the recorded inode (0: none), and changes nothing that a process can see;
    ///     nil if the inode is gone, and then the request is carried out again.
    init(
        inode: @escaping (Value) -> InodeNumber? = { _ in nil },
        restore: @escaping (LocalTransaction, InodeNumber) throws -> Value?
    ) {
        self.inode = inode
        self.restore = restore
    }
}

extension RecordedResult where Value == Void {
    package static var nothing: Self { Self { _, _ in () } }

    /// The change prepared a file for writing. Recovery removes the mark of a file that is not open, and without a mark
    /// the writes that follow would not be noticed.
    package static func writing(_ number: InodeNumber, caller: LocalCaller) -> Self {
        Self { transaction, _ in
            try ContentChanges(transaction: transaction).beginWriting(number, truncating: false, caller: caller)
        }
    }
}

extension RecordedResult where Value == InodeRecord {
    /// The change returns an inode. It is returned as it is now.
    package static var inode: Self {
        Self(inode: \.number) { transaction, number in try transaction.db.inode(number) }
    }
}

extension RecordedResult where Value == (inode: InodeRecord, content: FileDescriptor) {
    /// The change returns a new file that is open for writing. Its content file is opened again.
    package static var file: Self {
        Self(inode: { $0.inode.number }) { transaction, number in
            guard var inode = try transaction.db.inode(number) else { return nil }
            let content = try transaction.contents.open(number, .readWrite)
            transaction.opened = content
            // Recovery removes the mark of a file that is not open, and the writes that follow have to be noticed.
            if inode.contentStamp == nil {
                try transaction.db.setContentStamp(of: number, to: ContentStamp.unknown)
                inode.contentStamp = ContentStamp.unknown
            }
            return (inode, content)
        }
    }
}
