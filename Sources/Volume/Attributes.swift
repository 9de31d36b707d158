import FileProvider
import Replica

/// What `stat` shows of an inode.
package struct Attributes: Hashable, Sendable {
    /// The inode's number: `st_ino`, and what the kernel calls the node by.
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
    /// What device a device file stands for.
    package var device: UInt32
    package var accessedAt: FileTimestamp
    package var modifiedAt: FileTimestamp
    package var changedAt: FileTimestamp
    package var createdAt: FileTimestamp
    /// Whether they change without the daemon being told, because the kernel writes the file by itself.
    package var isVolatile = false

    /// - Parameter ownership: whose an item is that says nothing itself.
    init(_ inode: InodeRecord, ownership: Ownership) {
        node = UInt64(bitPattern: inode.number.rawValue)
        kind = inode.kind
        permissions = inode.permissions ?? Self.usualPermissions(of: inode.kind)
        size = inode.size
        blocks = Self.blocks(of: inode)
        linkCount = Self.linkCount(of: inode)
        owner = inode.owner ?? ownership.user
        group = inode.group ?? ownership.group
        device = inode.device
        accessedAt = inode.accessedAt ?? inode.modifiedAt
        modifiedAt = inode.modifiedAt
        changedAt = inode.changedAt
        createdAt = inode.createdAt
    }

    /// Of a file that is being written: what its content file says counts.
    init(_ inode: InodeRecord, content: ContentStatus, ownership: Ownership) {
        self.init(inode, ownership: ownership)
        isVolatile = true
        size = content.size
        blocks = content.allocated / 512
        guard content.stamp != inode.contentStamp || content.size != inode.size else { return }
        modifiedAt = content.modifiedAt
        changedAt = inode.changeTime(afterWritingAt: content.changedAt)
    }

    /// Kind and permissions in one, as `st_mode`.
    package var mode: UInt32 { kind.modeBits | UInt32(permissions) }

    private static func usualPermissions(of kind: InodeKind) -> UInt16 {
        switch kind {
        case .directory: 0o755
        case .symbolicLink: 0o777
        case .file, .fifo, .characterDevice, .blockDevice, .socket: 0o644
        }
    }

    /// Of a directory that was never listed nobody knows how many subdirectories it has: one link means "not told", and
    /// tools that count links look for themselves.
    private static func linkCount(of inode: InodeRecord) -> Int {
        guard inode.kind == .directory else { return inode.linkCount }
        if inode.linkCount == 0 { return 0 }
        return inode.content == .materialized ? 2 + inode.subdirectories : 1
    }

    /// A dataless file that is not empty has one block: tools take a file without blocks for one that is all hole, and
    /// would archive zeros in place of what is not here.
    private static func blocks(of inode: InodeRecord) -> Int64 {
        guard inode.kind == .file, inode.size > 0 else { return 0 }
        switch inode.content {
        case .dataless: return 1
        case .partial: return max(1, inode.localBytes / 512)
        case .materialized: return inode.size / 512 + (inode.size % 512 == 0 ? 0 : 1)
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

    /// The kind that a full mode names; a mode that names none is a file's, as `mknod(2)` has it.
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
