import FUSE
import FileProvider
import Volume

extension Entry {
    /// An entry with the volume's attributes. Those of a file that is being written are not cached.
    init(_ attributes: Attributes) {
        self.init(
            attributes: FileAttributes(attributes), attributesLifetime: attributes.lifetime)
    }
}

extension Attributes {
    /// How long the kernel may cache the attributes. Writes through a shared mapping change size and times without the
    /// daemon's knowledge.
    var lifetime: Lifetime { isVolatile ? .zero : .infinite }
}

extension Entry {
    /// An entry of a new file. No process can have mapped it yet, and its creator usually calls `stat` next.
    init(new attributes: Attributes) {
        self.init(
            attributes: FileAttributes(attributes), attributesLifetime: Lifetime(seconds: 0, nanoseconds: 500_000_000))
    }
}

extension FileAttributes {
    init(_ attributes: Attributes) {
        self.init(
            node: NodeID(rawValue: attributes.node), kind: FileKind(mode: attributes.mode) ?? .regular,
            permissions: UInt32(attributes.permissions), size: UInt64(max(0, attributes.size)),
            blocks: UInt64(max(0, attributes.blocks)), linkCount: UInt32(clamping: attributes.linkCount),
            owner: attributes.owner, group: attributes.group, device: attributes.device,
            accessTime: FileTime(attributes.accessedAt),
            modificationTime: FileTime(attributes.modifiedAt), changeTime: FileTime(attributes.changedAt))
    }
}

extension FileTime {
    init(_ time: FileTimestamp) {
        self.init(seconds: time.seconds, nanoseconds: time.nanoseconds)
    }
}
