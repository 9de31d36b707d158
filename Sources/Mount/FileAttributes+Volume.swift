import FUSE
import FileProvider
import Volume

extension Entry {
    /// The volume's attributes as the kernel is told them with a name: of a file that is being written it has to ask
    /// each time.
    init(_ attributes: Attributes) {
        self.init(
            attributes: FileAttributes(attributes), attributesLifetime: attributes.lifetime)
    }
}

extension Attributes {
    /// How long the kernel may believe them. What it writes by itself it knows; only what is written through a mapping it
    /// does not notice.
    var lifetime: Lifetime { isVolatile ? .zero : .infinite }
}

extension Entry {
    /// A file that has just been made: nobody has mapped it yet, and who made it looks at it first of all.
    init(new attributes: Attributes) {
        self.init(
            attributes: FileAttributes(attributes), attributesLifetime: Lifetime(seconds: 0, nanoseconds: 500_000_000))
    }
}

extension FileAttributes {
    /// The volume's attributes as the kernel wants them.
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
