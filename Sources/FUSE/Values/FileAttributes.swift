import CFUSEShim

/// What `stat` shows of a node.
package struct FileAttributes: Hashable, Sendable {
    package var node: NodeID
    package var kind: FileKind
    /// Permissions, set-ID and sticky bits; without the kind.
    package var permissions: UInt32
    package var size: UInt64
    /// The allocated space in units of 512 bytes.
    package var blocks: UInt64
    package var linkCount: UInt32
    package var owner: UInt32
    package var group: UInt32
    /// The device number of a device file (`st_rdev`).
    package var device: UInt32
    package var accessTime: FileTime
    package var modificationTime: FileTime
    package var changeTime: FileTime

    package init(
        node: NodeID, kind: FileKind, permissions: UInt32, size: UInt64 = 0, blocks: UInt64 = 0, linkCount: UInt32 = 1,
        owner: UInt32 = 0, group: UInt32 = 0, device: UInt32 = 0,
        accessTime: FileTime = FileTime(seconds: 0), modificationTime: FileTime = FileTime(seconds: 0),
        changeTime: FileTime = FileTime(seconds: 0)
    ) {
        self.node = node
        self.kind = kind
        self.permissions = permissions
        self.size = size
        self.blocks = blocks
        self.linkCount = linkCount
        self.owner = owner
        self.group = group
        self.device = device
        self.accessTime = accessTime
        self.modificationTime = modificationTime
        self.changeTime = changeTime
    }

    package var mode: UInt32 { kind.rawValue | (permissions & 0o7777) }

    var shim: fuseshim_attributes {
        fuseshim_attributes(
            node: node.rawValue, size: size, blocks: blocks,
            access_seconds: accessTime.seconds, modification_seconds: modificationTime.seconds,
            change_seconds: changeTime.seconds,
            access_nanoseconds: UInt32(truncatingIfNeeded: accessTime.nanoseconds),
            modification_nanoseconds: UInt32(truncatingIfNeeded: modificationTime.nanoseconds),
            change_nanoseconds: UInt32(truncatingIfNeeded: changeTime.nanoseconds),
            mode: mode, links: linkCount, owner: owner, group: group, device: device, block_size: 4096)
    }
}
