/// Something that a check has found to be wrong.
package struct CheckFinding: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable {
        case database
        /// Rows that contradict each other: orphans, circles, names that come twice, wrong counts.
        case tree
        /// Content files that do not fit their rows, or have none.
        case contents
        /// The provider reports an item, or a directory's children, otherwise.
        case remote
        /// Bytes that are not the remote's.
        case bytes
    }

    package var kind: Kind
    package var inode: InodeNumber?
    /// The item's name, where it has one; of an item without an inode its path.
    package var name: String?
    /// The defect, and its repair.
    package var text: String
    package var isMended: Bool

    package init(
        _ kind: Kind, _ text: String, inode: InodeNumber? = nil, name: String? = nil, isMended: Bool = false
    ) {
        self.kind = kind
        self.text = text
        self.inode = inode
        self.name = name
        self.isMended = isMended
    }
}
