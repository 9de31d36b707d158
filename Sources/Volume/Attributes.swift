import FileProvider
import Replica

/// The attributes of an inode, as `stat` shows them.
package struct Attributes: Hashable, Sendable {
    /// The inode number: `st_ino` and the kernel's node ID.
    package var node: UInt64
    package var kind: InodeKind
    /// The lower twelve bits of the mode.
    package var permissions: UInt16
    package var size: Int64
    /// Space on the local disk in units of 512 bytes.
    package var blocks: Int64
    package var linkCount: Int
    package var owner: UInt32
    package var group: UInt32
    /// The device number of a device file (`st_rdev`).
    package var device: UInt32
    package var accessedAt: FileTimestamp
    package var modifiedAt: FileTimestamp
    package var changedAt: FileTimestamp
    /// Whether the attributes change without a request to the daemon, because the kernel writes the file directly.
    package var isVolatile = false

    /// - Parameter ownership: the owner, the group and the permissions of items that have none of their own.
    init(_ inode: InodeRecord, ownership: Ownership) {
        node = UInt64(bitPattern: inode.number.rawValue)
        kind = inode.kind
        permissions = inode.permissions ?? ownership.permissions(of: inode.kind)
        size = inode.size
        blocks = Self.blocks(of: inode)
        linkCount = Self.linkCount(of: inode)
        owner = inode.owner ?? ownership.user
        group = inode.group ?? ownership.group
        device = inode.device
        accessedAt = inode.accessedAt ?? inode.modifiedAt
        modifiedAt = inode.modifiedAt
        changedAt = inode.changedAt
    }

    /// The attributes of a file that is being written: size and times come from its content file.
    init(_ inode: InodeRecord, content: ContentStatus, ownership: Ownership) {
        self.init(inode, ownership: ownership)
        isVolatile = true
        size = content.size
        blocks = content.allocated / 512
        guard content.stamp != inode.contentStamp || content.size != inode.size else { return }
        modifiedAt = inode.modificationTime(afterWritingAt: content.modifiedAt)
        changedAt = inode.changeTime(afterWritingAt: content.changedAt)
    }

    /// Kind and permissions as `st_mode`.
    package var mode: UInt32 { kind.modeBits | UInt32(permissions) }

    /// The link count of a directory that was never listed is 1 ("unknown"), so that tools that count subdirectories
    /// by it search the directory.
    private static func linkCount(of inode: InodeRecord) -> Int {
        guard inode.kind == .directory else { return inode.linkCount }
        if inode.linkCount == 0 { return 0 }
        return inode.content == .materialized ? 2 + inode.subdirectories : 1
    }

    /// A dataless file that is not empty has one block: archivers treat a file without blocks as one hole, and would
    /// store zeros. A partial file has at least one, too.
    private static func blocks(of inode: InodeRecord) -> Int64 {
        guard inode.kind == .file, inode.size > 0 else { return 0 }
        switch inode.content {
        case .dataless, .partial: return 1
        case .materialized: return ContentSize.usualBlocks(of: inode.size)
        }
    }
}

extension InodeKind {
    /// The kind as the upper bits of `st_mode`.
    var modeBits: UInt32 {
        switch self {
        case .file: 0o100000
        case .directory: 0o040000
        case .symbolicLink: 0o120000
        case .fifo: 0o010000
        case .characterDevice: 0o020000
        case .blockDevice: 0o060000
        case .socket: 0o140000
        }
    }

    /// The kind of a mode; a mode without a kind is a regular file, as in `mknod(2)`.
    init?(mode: UInt32) {
        if mode & 0o170000 == 0 {
            self = .file
        } else if let kind = Self.allCases.first(where: { $0.modeBits == mode & 0o170000 }) {
            self = kind
        } else {
            return nil
        }
    }
}

/// The owner, the group and the permissions of items that have none of their own.
package struct Ownership: Hashable, Sendable {
    package var user: UInt32
    package var group: UInt32
    /// The permissions that files and directories do not get.
    package var umask: UInt16

    package init(user: UInt32, group: UInt32, umask: UInt16 = 0o022) {
        self.user = user
        self.group = group
        self.umask = umask
    }

    /// Those of an item that has none of its own.
    package func permissions(of kind: InodeKind) -> UInt16 {
        switch kind {
        case .directory: 0o777 & ~umask
        case .symbolicLink: 0o777
        case .file, .fifo, .characterDevice, .blockDevice, .socket: 0o666 & ~umask
        }
    }
}

/// A directory entry, as in `readdir`.
package struct VolumeEntry: Hashable, Sendable {
    package var name: String
    package var attributes: Attributes
    /// The offset at which reading continues after this entry.
    package var offset: UInt64
}
