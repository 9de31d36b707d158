import FileProvider
import Replica

/// What `stat` shows of an inode.
package struct Attributes: Hashable, Sendable {
    /// The inode's number: `st_ino`, and what the kernel calls the node by.
    package var node: UInt64
    package var kind: ItemKind
    /// The lower twelve bits of the mode.
    package var permissions: UInt16
    package var size: Int64
    /// Space on the local disk in units of 512 bytes.
    package var blocks: Int64
    package var linkCount: Int
    package var owner: UInt32
    package var group: UInt32
    package var modifiedAt: FileTimestamp
    package var changedAt: FileTimestamp
    package var createdAt: FileTimestamp

    /// - Parameter ownership: whose an item is that says nothing itself.
    init(_ inode: InodeRecord, ownership: Ownership) {
        node = UInt64(bitPattern: inode.number.rawValue)
        kind = inode.kind
        permissions = inode.permissions ?? Self.usualPermissions(of: inode.kind)
        size = inode.size
        blocks = Self.blocks(of: inode)
        // A directory's count of subdirectories is not known before it is listed; one link means "not told".
        linkCount = inode.kind == .directory ? 1 : inode.linkCount
        owner = inode.owner ?? ownership.user
        group = inode.group ?? ownership.group
        modifiedAt = inode.modifiedAt
        changedAt = inode.changedAt
        createdAt = inode.createdAt
    }

    private static func usualPermissions(of kind: ItemKind) -> UInt16 {
        switch kind {
        case .file: 0o644
        case .directory: 0o755
        case .symbolicLink: 0o777
        }
    }

    /// A dataless file that is not empty has one block: tools take a file without blocks for one that is all hole, and
    /// would archive zeros in place of what is not here.
    private static func blocks(of inode: InodeRecord) -> Int64 {
        guard inode.kind == .file, inode.size > 0 else { return 0 }
        switch inode.content {
        case .dataless: return 1
        case .partial: return max(1, inode.localBytes / 512)
        case .materialized: return (inode.size + 511) / 512
        }
    }
}

/// Whose the items of a domain are that do not say so themselves.
package struct Ownership: Hashable, Sendable {
    package var user: UInt32
    package var group: UInt32

    package init(user: UInt32, group: UInt32) {
        self.user = user
        self.group = group
    }
}

/// An entry of a directory as `readdir` gives it.
package struct VolumeEntry: Hashable, Sendable {
    package var name: String
    package var attributes: Attributes
    /// Where reading goes on after this entry.
    package var offset: UInt64
}
